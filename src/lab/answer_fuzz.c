/* answer_fuzz.c: any bytes as what a probe wrote. The first byte picks the row; what is accepted names a result and
 * is judged without a crash. runs in: tests */
#include <stdlib.h>
#include <string.h>

#include "lab/lab.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    if (n == 0)
        return 0;
    struct lab_outcome o = {.row = &lab_rows[bytes[0] % lab_n_rows], .inside.done = true};
    _cleanup_buf_ struct buf b = {0};
    lab_read_answer(o.row, (const char *)bytes + 1, n - 1, &o.inside);
    if (o.inside.answered && (o.inside.said >= LAB_RESULT_N || strlen(o.inside.detail) >= sizeof(o.inside.detail)))
        abort();
    lab_judge(&o, true, true);
    lab_put_line(&b, &o);
    for (size_t i = 0; i < b.n; i++) /* one line, nothing that a terminal obeys */
        if ((unsigned char)b.bytes[i] < 0x20 && !(b.bytes[i] == '\n' && i + 1 == b.n))
            abort();
    return 0;
}
