/* harmless_test.c: what passes to a terminal, and what is shown instead. */
#include "base/test.h"

#include "base/str.h"
#include "control/harmless.h"

static const struct {
    const char *in, *out;
} rows[] = {
    {"plain\ttext\n", "plain\ttext\n"},
    {"line\r\nline", "line\nline"},
    {"50%\r100%\r\n", "50%\n100%\n"},
    {"end\r", "end\n"},
    {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"},
    {"\x1b[38;5;208mx\x1b[m", "\x1b[38;5;208mx\x1b[m"},
    {"\x1b[38;2;1;2;3mx", "\x1b[38;2;1;2;3mx\x1b[0m"},
    {"\x1b[8mhidden", "\\x1b[8mhidden"},
    {"\x1b[31;8mhidden", "\\x1b[31;8mhidden"},
    {"\x1b[38;5mx", "\\x1b[38;5mx"},
    {"\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H"},
    {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
    {"\x1b]52;c;aGk=\x1b\\", "\\x1b]52;c;aGk=\\x1b\\"},
    {"\x1b\x1b[31mx", "\\x1b\x1b[31mx\x1b[0m"},
    {"\x1b[1A", "\\x1b[1A"},
    {"\x1b[6n", "\\x1b[6n"},
    {"\x1b[3", "\\x1b[3"},
    {"\x1bP+q\x1b\\", "\\x1bP+q\\x1b\\"},
    {"a\bb\x7f\x0e", "a\\x08b\\x7f\\x0e"},
    {"\xc2\x9b"
     "31m",
     "\\u{009b}31m"},
    {"\x9b"
     "31m",
     "\\x9b31m"},
    {"\xff\xc3", "\\xff\\xc3"},
    {"\xe2\x82(", "\\xe2\\x82("},
    {"\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80"},
    {"\xe2\x80\xae"
     "gpj",
     "\\u{202e}gpj"},
    {"\x1b[000000000000000000000000000000000000000m", "\\x1b[000000000000000000000000000000000000000m"},
};

static void filter(struct buf *to, const char *in, size_t step) {
    struct harmless h = {0};
    size_t n = strlen(in);
    for (size_t i = 0; i < n; i += step)
        harmless_put(&h, to, in + i, n - i < step ? n - i : step);
    harmless_end(&h, to);
}

TEST(rows_at_every_cut) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (size_t step = 1; step < 8; step += 2) {
            _cleanup_buf_ struct buf b = {0};
            filter(&b, rows[i].in, step);
            CHECK_STR(b.bytes, rows[i].out);
        }
}

TEST_MAIN()
