/* cmd_check.c: `doorward check`: is a policy valid, can every step be compiled for this host, and which shapes deserve
 * a second look? Nothing is started and nothing is written.
 * runs in: cli (untrusted input: a policy file's bytes; holds: nothing) */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "cli/output.h"
#include "cli/task.h"

enum { EXIT_FOUND = 1 };

extern const struct verb verb_check;

static bool as_json, strict;
static struct policy_flags no_flags;

static const struct cli_option options[] = {
    {"strict", 0, CLI_FLAG, &strict, NULL, "exit 1 when there is a finding that the policy does not accept"},
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

struct check {
    struct place place;
    struct task task;
    json_t *findings;
    size_t n_open; /* findings that are not accepted */
    char digest[DIGEST_HEX];
};

static void check_free(struct check *c) {
    json_decref(c->findings);
    task_free(&c->task);
    place_close(&c->place);
}
#define _cleanup_check_ _cleanup_(check_free)

static int do_check(struct check *c, const struct cli_words *words, struct error *err) {
    size_t i;
    json_t *finding;
    int r = task_read(&c->task, &verb_check, &no_flags, words, words->args[0], err);
    if (r == 0)
        r = place_find(&c->place, err);
    if (r == 0)
        r = task_compile(&c->task, &no_flags, &c->place, err);
    if (r < 0)
        return r;
    c->findings = policy_lint(c->task.policy, &c->task.host);
    if (!c->findings || policy_digest(c->task.policy, c->digest) < 0)
        return error_set(err, -ENOMEM, "out of memory");
    json_array_foreach(c->findings, i, finding) c->n_open += !json_object_get(finding, "accepted");
    return 0;
}

static int answer_json(const struct check *c, struct error *err) {
    json_t *steps = json_array();
    for (size_t i = 0; i < c->task.n_plans; i++) {
        char digest[DIGEST_HEX];
        if (plan_digest(&c->task.plans[i], digest) < 0)
            return error_set(err, -ENOMEM, "out of memory");
        json_array_append_new(steps, json_pack("{s:s, s:s}", "name", c->task.plans[i].step, "plan", digest));
    }
    _cleanup_json_ json_t *o =
        json_pack("{s:s, s:s, s:s, s:o, s:O}", "task", policy_task(c->task.policy), "purpose",
                  policy_purpose(c->task.policy), "policy", c->digest, "steps", steps, "findings", c->findings);
    return o ? output_json(o, err) : error_set(err, -ENOMEM, "out of memory");
}

static void put_member(struct buf *b, const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    str_put_safe(b, s ? s : "", s ? strlen(s) : 0);
}

static void put_finding(struct buf *b, const json_t *finding) {
    bool accepted = json_object_get(finding, "accepted") != NULL;
    buf_puts(b, accepted ? "accepted " : "warning ");
    put_member(b, finding, "id");
    buf_puts(b, " at ");
    put_member(b, finding, "path");
    buf_puts(b, ":\n  ");
    put_member(b, finding, "message");
    buf_puts(b, accepted ? "\n  accepted: " : "\n  remedy: ");
    put_member(b, finding, accepted ? "accepted" : "remedy");
    buf_puts(b, "\n");
}

static int answer_words(const struct check *c, struct error *err) {
    _cleanup_buf_ struct buf b = {0};
    size_t i, n = json_array_size(c->findings);
    json_t *finding;
    buf_printf(&b, "%s: valid, %zu step%s on this host, policy sha256 %s\n", policy_task(c->task.policy),
               c->task.n_plans, c->task.n_plans == 1 ? "" : "s", c->digest);
    json_array_foreach(c->findings, i, finding) put_finding(&b, finding);
    if (n)
        buf_printf(&b, "%zu finding%s, %zu accepted; `accept: {ID: reason}` in the policy accepts one\n", n,
                   n == 1 ? "" : "s", n - c->n_open);
    return output_page(&b, err);
}

static int run(const struct cli_words *words, struct error *err) {
    _cleanup_check_ struct check c = {.place = PLACE_EMPTY};
    int r = do_check(&c, words, err);
    if (r == 0)
        r = as_json ? answer_json(&c, err) : answer_words(&c, err);
    return r < 0 ? r : strict && c.n_open ? EXIT_FOUND : 0;
}

const struct verb verb_check = {
    .name = "check",
    .args = "POLICY",
    .summary = "Check a policy for this host, and warn about risky shapes",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run,
};
