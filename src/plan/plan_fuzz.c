/* plan_fuzz.c: any bytes as an encoded plan; what is accepted keeps the rules and comes back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Nothing that moves a terminal's cursor leaves plan_print. */
static void print(const struct plan *p) {
    _cleanup_buf_ struct buf b = {0};
    if (plan_print(p, &b) < 0)
        abort();
    for (size_t i = 0; i < b.n; i++)
        if ((unsigned char)b.bytes[i] < 0x20 && b.bytes[i] != '\n')
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    _cleanup_plan_ struct plan p = {0}, again = {0};
    struct error err = {0};
    if (plan_decode((const char *)bytes, n, &p, &err) < 0) {
        if (p.argv || p.inputs || !err.message[0] || !str_is_utf8(err.message, strlen(err.message), NULL))
            abort();
        return 0;
    }
    _cleanup_free_ char *first = plan_encode(&p);
    if (!first || plan_check(&p, &err) < 0 || plan_decode(first, strlen(first), &again, &err) < 0)
        abort();
    _cleanup_free_ char *second = plan_encode(&again);
    if (!second || strcmp(first, second) != 0 || !plan_path_stands(&p, p.workdir))
        abort();
    for (size_t i = 0; i < p.n_exports; i++)
        if (!plan_path_is_writable(&p, p.exports[i].path))
            abort();
    _cleanup_buf_ struct buf packed = {0};
    _cleanup_plan_ struct plan unpacked = {0};
    if (plan_pack(&p, &packed) < 0 || plan_unpack(packed.bytes, packed.n, &unpacked, &err) < 0)
        abort();
    _cleanup_free_ char *third = plan_encode(&unpacked);
    if (!third || strcmp(first, third) != 0)
        abort();
    print(&p);
    return 0;
}
