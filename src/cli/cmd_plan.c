/* cmd_plan.c: `doorward plan`: what would be enforced on this host, in words or as the plan itself. Nothing is started
 * and nothing is written.
 * runs in: cli (untrusted input: a policy file's bytes, arguments; holds: variables that the policy passes) */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "cli/output.h"
#include "cli/task.h"

extern const struct verb verb_plan;

static struct policy_flags flags;
static bool as_json;

static const struct cli_option options[] = {
    CLI_TASK_OPTIONS(flags),
    CLI_ATTACH_OPTIONS(flags),
    {"json", 0, CLI_FLAG, &as_json, NULL, "print the plan as JSON, with the values of all variables"},
    {.kind = CLI_END},
};

/* The index of the step that is asked for; all of them when none is named. */
static int find_step(const struct policy *p, const char *name, size_t *ret_from, size_t *ret_to, struct error *err) {
    const char *names[POLICY_STEPS_MAX + 1] = {0};
    size_t n = policy_n_steps(p);
    *ret_from = 0;
    *ret_to = n;
    for (size_t i = 0; name && i < n; i++) {
        names[i] = policy_step_name(p, i);
        if (strcmp(names[i], name) != 0)
            continue;
        *ret_from = i;
        *ret_to = i + 1;
        return 0;
    }
    if (!name)
        return 0;
    char safe[100];
    const char *near = str_near(name, names);
    return error_set(err, -EINVAL, "plan: the policy has no step \"%s\"%s%s%s", str_safe(safe, sizeof(safe), name),
                     near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static json_t *step_json(const struct plan *p) {
    char digest[DIGEST_HEX];
    _cleanup_free_ char *text = plan_encode(p);
    if (!text)
        return NULL;
    digest_hex(text, strlen(text), digest);
    json_t *o = json_loads(text, 0, NULL);
    return o ? json_pack("{s:s, s:o}", "digest", digest, "plan", o) : NULL;
}

static int answer_json(const struct task *t, size_t from, size_t to, struct error *err) {
    char digest[DIGEST_HEX];
    _cleanup_json_ json_t *steps = json_array();
    for (size_t i = from; i < to; i++)
        if (json_array_append_new(steps, step_json(&t->plans[i])) < 0)
            return error_set(err, -ENOMEM, "out of memory");
    if (policy_digest(t->policy, digest) < 0)
        return error_set(err, -ENOMEM, "out of memory");
    _cleanup_json_ json_t *o =
        json_pack("{s:s, s:s, s:O}", "task", policy_task(t->policy), "policy", digest, "steps", steps);
    return o ? output_json(o, err) : error_set(err, -ENOMEM, "out of memory");
}

static int answer_words(const struct task *t, size_t from, size_t to, struct error *err) {
    _cleanup_buf_ struct buf b = {0};
    for (size_t i = from; i < to; i++) {
        char digest[DIGEST_HEX];
        if (plan_print(&t->plans[i], &b) < 0 || plan_digest(&t->plans[i], digest) < 0)
            return error_set(err, -ENOMEM, "out of memory");
        buf_printf(&b, "  %-10ssha256 %s\n%s", "digest", digest, i + 1 < to ? "\n" : "");
    }
    return output_page(&b, err);
}

static int run(const struct cli_words *words, struct error *err) {
    _cleanup_task_ struct task t = {0};
    _cleanup_place_ struct place place = PLACE_EMPTY;
    size_t from = 0, to = 0;
    int r = task_read(&t, &verb_plan, &flags, words, words->n ? words->args[0] : NULL, err);
    if (r == 0)
        r = find_step(t.policy, words->n > 1 ? words->args[1] : NULL, &from, &to, err);
    if (r == 0)
        r = place_find(&place, err);
    if (r == 0)
        r = task_compile(&t, &flags, &place, err);
    if (r < 0)
        return r;
    return as_json ? answer_json(&t, from, to, err) : answer_words(&t, from, to, err);
}

const struct verb verb_plan = {
    .name = "plan",
    .args = "POLICY [STEP] | -- COMMAND [ARG...]",
    .summary = "Show what would be enforced on this host",
    .options = options,
    .least = 0,
    .most = 2,
    .command = true,
    .run = run,
};
