/* task.c: see task.h. runs in: cli, controller (untrusted input: a policy file's bytes, arguments) */
#include "cli/task.h"

#include <errno.h>

void task_free(struct task *t) {
    for (size_t i = 0; i < t->n_plans; i++)
        plan_free(&t->plans[i]);
    free(t->plans);
    policy_free(t->from_flags);
    cli_policy_free(&t->file);
    cli_host_free(&t->host);
}

/* What a policy file already says. */
static bool describes_task(const struct cli_option *o, const struct policy_flags *flags) {
    const char *at = o->target, *first = (const char *)flags;
    return at >= first && at < first + sizeof(*flags) && o->target != (const void *)&flags->terminal &&
           o->target != (const void *)&flags->input;
}

static bool was_given(const struct cli_option *o) {
    return o->kind == CLI_FLAG ? *(bool *)o->target : *(void **)o->target != NULL;
}

static int refuse_mixture(const struct verb *verb, const struct policy_flags *flags, struct error *err) {
    for (const struct cli_option *o = verb->options; o->kind != CLI_END; o++)
        if (describes_task(o, flags) && was_given(o))
            return error_set(err, -EINVAL,
                             "%s: --%s describes a task, and the policy file does so already; write it there",
                             verb->name, o->name);
    return 0;
}

static int read_flags(struct task *t, const struct verb *verb, struct policy_flags *flags, char **command,
                      struct error *err) {
    _cleanup_free_ char *base = NULL;
    flags->argv = command;
    if (!command || !command[0])
        return error_set(err, -EINVAL, "%s: there is no command; as in: doorward %s -- python3 agent.py", verb->name,
                         verb->name);
    int r = cli_current_folder(&base, err);
    if (r == 0)
        r = policy_from_flags(flags, base, &t->from_flags, err);
    t->policy = t->from_flags;
    return r;
}

int task_read(struct task *t, const struct verb *verb, struct policy_flags *flags, const struct cli_words *words,
              const char *file, struct error *err) {
    if (!file)
        return read_flags(t, verb, flags, words->command, err);
    if (words->command)
        return error_set(err, -EINVAL, "%s: a policy file and a command exclude each other; the file names its own",
                         verb->name);
    int r = refuse_mixture(verb, flags, err);
    if (r == 0)
        r = cli_read_policy(file, &t->file, err);
    t->policy = t->file.policy;
    return r;
}

int task_compile(struct task *t, const struct policy_flags *flags, const struct place *place, struct error *err) {
    size_t n = policy_n_steps(t->policy);
    t->plans = calloc(n, sizeof(*t->plans));
    if (!t->plans)
        return error_set(err, -ENOMEM, "out of memory");
    cli_host(place, &t->host);
    policy_attach(t->policy, flags->input, flags->terminal);
    for (size_t i = 0; i < n; i++) {
        int r = policy_compile(t->policy, i, &t->host, &t->plans[i], err);
        if (r < 0)
            return r;
        t->n_plans++;
    }
    return 0;
}
