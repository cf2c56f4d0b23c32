/* words_fuzz.c: any record in words: whatever it holds, the words are one harmless line. runs in: tests */
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"
#include "cli/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    _cleanup_json_ json_t *record = NULL;
    _cleanup_buf_ struct buf b = {0}, again = {0};
    if (json_read((const char *)bytes, n, &record, NULL) < 0 || !json_is_object(record))
        return 0;
    words_record(&b, record);
    if (b.n == 0)
        return 0;
    str_put_safe(&again, b.bytes, b.n);
    if (b.failed || again.n != b.n) /* something in it had to be made harmless once more */
        abort();
    return 0;
}
