/* pack_fuzz.c: bytes that unpack to a plan pack to the same bytes; others are refused with a reason. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    _cleanup_plan_ struct plan p = {0};
    _cleanup_buf_ struct buf again = {0};
    struct error err = {0};
    if (plan_unpack((const char *)bytes, n, &p, &err) < 0) {
        if (!err.message[0] || p.argv)
            abort();
        return 0;
    }
    if (plan_pack(&p, &again) < 0 || again.n != n || memcmp(again.bytes, bytes, n) != 0)
        abort();
    return 0;
}
