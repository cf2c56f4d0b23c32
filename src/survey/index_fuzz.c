/* index_fuzz.c: any bytes as git's index; what is handed on keeps its bounds. */
#include <stdlib.h>
#include <string.h>

#include "survey/survey.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int visit(void *data, const struct index_entry *e) {
    size_t *oid = data;
    if (strlen(e->oid) != 2 * *oid || !*e->path || strlen(e->path) > PLAN_PATH_MAX || e->stage > 3)
        abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    for (size_t oid = 20; oid <= 32; oid += 12)
        if (index_each(bytes, n, oid, visit, &oid) > 0)
            abort();
    return 0;
}
