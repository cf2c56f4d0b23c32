/* policy_fuzz.c: any bytes as a policy file; what is accepted compiles, if at all, to plans that keep every rule. */
#include <stdint.h>
#include <stdlib.h>

#include "policy/fake_host.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void compile(const struct policy *p, size_t step) {
    _cleanup_plan_ struct plan plan = {0}, again = {0};
    _cleanup_buf_ struct buf words = {0};
    struct error err = {0};
    char a[DIGEST_HEX], b[DIGEST_HEX];
    if (policy_compile(p, step, &fake_host, &plan, &err) < 0) {
        if (!err.message[0] || !str_is_utf8(err.message, strlen(err.message), NULL) || plan.argv)
            abort();
        return;
    }
    _cleanup_free_ char *text = plan_encode(&plan);
    if (!text || plan_check(&plan, &err) < 0 || plan_decode(text, strlen(text), &again, &err) < 0 ||
        plan_digest(&plan, a) < 0 || plan_digest(&again, b) < 0 || strcmp(a, b) != 0 || plan_print(&plan, &words) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    _cleanup_policy_ struct policy *p = NULL;
    struct error err = {0};
    if (policy_parse("fuzz.yaml", "/home/me/project", (const char *)bytes, n, &p, &err) < 0) {
        if (p || !err.message[0] || !str_is_utf8(err.message, strlen(err.message), NULL))
            abort();
        return 0;
    }
    _cleanup_free_ char *text = policy_canonical(p);
    _cleanup_json_ json_t *findings = policy_lint(p, &fake_host);
    if (!text || !findings)
        abort();
    for (size_t i = 0; i < policy_n_steps(p); i++)
        compile(p, i);
    return 0;
}
