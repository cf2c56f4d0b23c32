/* json_fuzz.c: any bytes into json_read; what it accepts comes back the same through the canonical text. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    _cleanup_json_ json_t *first = NULL, *second = NULL;
    _cleanup_free_ char *text = NULL, *again = NULL;
    struct error err = {0};
    if (json_read((const char *)bytes, n, &first, &err) < 0)
        return 0;
    text = json_canonical(first);
    if (!text || json_read(text, strlen(text), &second, &err) < 0 || !(again = json_canonical(second)) ||
        strcmp(text, again))
        abort();
    return 0;
}
