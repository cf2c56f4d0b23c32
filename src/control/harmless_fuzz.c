/* harmless_fuzz.c: whatever a worker writes and however it is cut, only text and whole colours come out, once is enough,
 * and the cuts change nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "control/harmless.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void filter(struct buf *to, const char *bytes, size_t n, size_t step) {
    struct harmless h = {0};
    for (size_t i = 0; i < n; i += step)
        harmless_put(&h, to, bytes + i, n - i < step ? n - i : step);
    harmless_end(&h, to);
}

/* Told apart from harmless.c by another rule: the only control characters are in ESC [ digits and ; m. */
static void judge(const struct buf *b) {
    for (size_t i = 0; i < b->n; i++) {
        unsigned char c = (unsigned char)b->bytes[i];
        if (c == 0x1b) {
            size_t k = b->bytes[i + 1] == '[' ? strspn(b->bytes + i + 2, "0123456789;") : 99;
            if (k > HARMLESS_HELD || b->bytes[i + 2 + k] != 'm')
                abort();
        } else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
            abort();
        }
        if (c == 0xc2 && (unsigned char)b->bytes[i + 1] < 0xa0)
            abort();
    }
    if (b->n && !str_is_utf8(b->bytes, b->n, NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    _cleanup_buf_ struct buf whole = {0}, cut = {0}, again = {0};
    filter(&whole, (const char *)bytes, n, n ? n : 1);
    filter(&cut, (const char *)bytes, n, 1 + n % 3);
    if (whole.n != cut.n || (whole.n && memcmp(whole.bytes, cut.bytes, whole.n) != 0) || whole.n > 4 * n + 4)
        abort();
    judge(&whole);
    filter(&again, whole.bytes, whole.n, 5);
    if (again.n != whole.n || (whole.n && memcmp(again.bytes, whole.bytes, whole.n) != 0))
        abort();
    return 0;
}
