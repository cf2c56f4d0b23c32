/* base_test.c: sizes, names, text, files. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"

TEST(sizes_are_exact) {
    uint64_t n;
    CHECK(str_parse_size("512MB", &n) == 0);
    CHECK_EQ(n, 512000000);
    CHECK(str_parse_size("512MiB", &n) == 0);
    CHECK_EQ(n, 536870912);
    CHECK_EQ(str_parse_size("", &n), -EINVAL);
    CHECK_EQ(str_parse_size("-1", &n), -EINVAL);
    CHECK_EQ(str_parse_size("1.5GB", &n), -EINVAL);
    CHECK_EQ(str_parse_size("99999999999TiB", &n), -ERANGE);
    CHECK_EQ(str_parse_size("99999999999999999999999", &n), -ERANGE);
    CHECK(str_parse_duration("20m", &n) == 0);
    CHECK_EQ(n, 1200000);
    CHECK(str_parse_count("2k", &n) == 0);
    CHECK_EQ(n, 2000);
    char t[32];
    CHECK_STR(str_size(t, 2147483648), "2GiB");
    CHECK_STR(str_size(t, 10000000), "10MB");
    CHECK_STR(str_size(t, 1234), "1234B");
    CHECK_STR(str_duration(t, 1800000), "30m");
    CHECK_STR(str_duration(t, 1500), "1500ms");
}

TEST(utf8_is_strict) {
    CHECK(str_is_utf8("gr\xc3\xbc\xc3\x9f", 6, NULL));
    CHECK(!str_is_utf8("\xc0\xaf", 2, NULL));
    CHECK(!str_is_utf8("\xed\xa0\x80", 3, NULL));
    CHECK(!str_is_utf8("a\0b", 3, NULL));
    size_t at;
    CHECK(!str_is_utf8("ab\xff", 3, &at));
    CHECK_EQ(at, 2);
}

TEST(shown_text_is_harmless) {
    char t[64];
    CHECK_STR(str_safe(t, sizeof(t), "a\nb\033[2J\xff"), "a\\x0ab\\x1b[2J\\xff");
    CHECK_STR(str_safe(t, sizeof(t),
                       "\xe2\x80\xae"
                       "x\xc2\x9b"),
              "\\u{202e}x\\u{009b}");
    char s[8];
    CHECK_STR(str_safe(s, sizeof(s), "0123456789"), "0123...");
    CHECK_STR(str_safe(s, sizeof(s),
                       "012\xc3\xa9"
                       "6789"),
              "012...");
}

TEST(a_cut_message_stays_text) {
    char long_text[2 * ERROR_MESSAGE_MAX + 1];
    for (size_t shift = 0; shift < 4; shift++) {
        struct error err = {0};
        memset(long_text, 'x', sizeof(long_text));
        for (size_t i = shift; i + 2 < sizeof(long_text); i += 2)
            memcpy(long_text + i, "\xc3\xbc", 2);
        long_text[sizeof(long_text) - 1] = 0;
        CHECK_EQ(error_set(&err, -EINVAL, "%s", long_text), -EINVAL);
        CHECK(str_is_utf8(err.message, strlen(err.message), NULL));
        CHECK_STR(err.message + strlen(err.message) - 3, "...");
        CHECK(error_wrap(&err, "%.10s", "front") == -EINVAL && str_is_utf8(err.message, strlen(err.message), NULL));
    }
}

TEST(json_strings_are_escaped) {
    _cleanup_buf_ struct buf b = {0};
    CHECK(str_put_json(&b, "a\"b\\c\n\x01\xc3\xbc") == 0);
    CHECK_STR(b.bytes, "\"a\\\"b\\\\c\\u000a\\u0001\xc3\xbc\"");
}

TEST(near_words_are_found) {
    static const char *const words[] = {"memory", "network", "wall", NULL};
    CHECK_STR(str_near("memroy", words), "memory");
    CHECK(str_near("zzzzzz", words) == NULL);
}

TEST(strv_copies_whole) {
    _cleanup_strv_ char **v = NULL, **copy = NULL, **none = NULL;
    CHECK(strv_add(&v, "a") == 0 && strv_add(&v, "") == 0);
    CHECK_EQ(strv_copy(v, &copy), 0);
    CHECK_EQ(strv_count(copy), 2);
    CHECK(copy[0] != v[0]);
    CHECK_STR(copy[0], "a");
    CHECK_EQ(strv_copy(NULL, &none), 0);
    CHECK(none == NULL);
}

TEST(strv_appends_to_what_was_made_whole) {
    for (size_t n = 0; n < 70; n++) { /* a sanitizer or the allocator notices one too many */
        _cleanup_strv_ char **v = NULL, **copy = NULL, **read = NULL;
        _cleanup_json_ json_t *j = json_pack("{s:[]}", "k");
        for (size_t i = 0; i < n; i++) {
            CHECK(strv_add(&v, "x") == 0);
            json_array_append_new(json_object_get(j, "k"), json_string("x"));
        }
        CHECK(strv_copy(v, &copy) == 0 && json_get_strv(j, "p", "k", &read, NULL) == 0);
        for (size_t i = 0; i < 70; i++)
            CHECK(strv_add(&copy, "y") == 0 && strv_add(&read, "y") == 0);
        CHECK(strv_count(copy) == n + 70 && strv_count(read) == n + 70);
    }
}

TEST(strv_grows) {
    _cleanup_strv_ char **v = NULL;
    for (int i = 0; i < 1000; i++) {
        char s[16];
        snprintf(s, sizeof(s), "%d", i);
        CHECK(strv_add(&v, s) == 0);
    }
    CHECK_EQ(strv_count(v), 1000);
    CHECK_STR(v[999], "999");
}

TEST(digests_match_fips) {
    char h[DIGEST_HEX];
    digest_hex("abc", 3, h);
    CHECK_STR(h, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ulids_sort_by_time) {
    char a[ULID_TEXT], b[ULID_TEXT];
    CHECK(ulid_new(a) == 0);
    usleep(2000);
    CHECK(ulid_new(b) == 0);
    CHECK(strcmp(a, b) < 0);
    CHECK(ulid_is_valid(a));
    CHECK(!ulid_is_valid("01ARZ3NDEKTSV4RRFFQ69G5FAl"));
}

TEST(open_beneath_never_follows) {
    char dir[] = "/tmp/dw-base-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    int d = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(mkdirat(d, "in", 0700) == 0);
    CHECK(symlinkat("/etc", d, "out") == 0);
    int fd = fd_open_beneath(d, "in", O_PATH | O_DIRECTORY, 0);
    CHECK(fd >= 0);
    close(fd);
    CHECK_EQ(fd_open_beneath(d, "out/passwd", O_RDONLY, 0), -ELOOP);
    CHECK_EQ(fd_open_beneath(d, "../etc", O_RDONLY, 0), -EXDEV);
    CHECK_EQ(fd_mkdirs_beneath(d, "out/x", 0755), -ELOOP);
    fd = fd_mkdirs_beneath(d, "a/b/c", 0755);
    CHECK(fd >= 0);
    close(fd);
    unlinkat(d, "out", 0);
    unlinkat(d, "in", AT_REMOVEDIR);
    unlinkat(d, "a/b/c", AT_REMOVEDIR);
    unlinkat(d, "a/b", AT_REMOVEDIR);
    unlinkat(d, "a", AT_REMOVEDIR);
    close(d);
    rmdir(dir);
}

TEST(sealed_memory_is_sealed) {
    int fd = fd_sealed("t", "abc", 3);
    CHECK(fd >= 0);
    CHECK(write(fd, "x", 1) < 0);
    close(fd);
}

TEST_MAIN()
