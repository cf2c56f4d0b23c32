/* stop_fuzz.c: whatever a launcher reports, there is one stop, its exit status fits, and nothing but success is 0. */
#include <stdlib.h>
#include <string.h>

#include "control/stop.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void must(bool holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct wire_message m;
    struct stop_facts f = {.limits = plan_limit_defaults};
    struct stop s;
    char name[STOP_NAME_MAX];
    if (n < 9 || n - 9 > WIRE_BODY_MAX)
        return 0;
    f.not_started = bytes[0] & 1;
    f.ended = bytes[0] & 2;
    f.output_exceeded = bytes[0] & 4;
    f.operator_asked = bytes[0] & 8;
    f.broken = bytes[0] & 16;
    f.refusal = bytes[0] & 32;
    f.missing_export = bytes[0] & 64 ? "x" : NULL;
    memcpy(&f.output, bytes + 1, 8);
    wire_begin(&m, LAUNCH_ENDED);
    memcpy(m.body, bytes + 9, n - 9);
    m.length = (uint32_t)(n - 9);
    launch_get_end(&m, &f.end);
    if (wire_end(&m) < 0)
        return 0; /* step.c takes no broken message for an end */
    stop_decide(&f, &s);
    must(s.kind < STOP_KIND_N && s.exit_status >= 0 && s.exit_status <= 255);
    must((s.exit_status == 0) == (s.kind == STOP_COMPLETED));
    must(s.kind != STOP_COMPLETED || (f.ended && !f.broken && !f.missing_export && f.end.value == 0));
    must(!f.broken || f.not_started || s.kind == STOP_ERROR);
    must(strlen(stop_name(&s, name)) < STOP_NAME_MAX && memchr(s.message, 0, sizeof(s.message)));
    json_decref(stop_limits_json(&s));
    return 0;
}
