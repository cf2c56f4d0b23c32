/* scan_fuzz.c: any bytes as a text that is searched for secrets: lines are counted from 1 and found once. */
#include <stdlib.h>
#include <string.h>

#include "survey/survey.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void found(void *data, uint64_t line, const char *rule) {
    uint64_t *last = data;
    if (line <= *last || !*rule)
        abort();
    *last = line;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    uint64_t last = 0, lines = 1;
    char *copy = malloc(n + 1); /* of its exact size, so that a read past the end is seen */
    if (!copy)
        return 0;
    char *exact = realloc(copy, n ? n : 1);
    memcpy(exact ? exact : copy, bytes, n);
    for (size_t i = 0; i < n; i++)
        lines += bytes[i] == '\n';
    scan_text(exact ? exact : copy, n, found, &last);
    if (last > lines)
        abort();
    free(exact ? exact : copy);
    return 0;
}
