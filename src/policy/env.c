/* env.c: the variables of one step: a closed list, no value of the host unless it is named.
 * runs in: controller, cli (untrusted input: values of doorward's environment; holds: them) */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "policy/compile.h"

/* The host's TERM, where the step has a terminal and the word is one that programs look up as a file's name. */
static const char *find_term(const struct compile *c) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._";
    const char *term = c->p->terminal ? c->host->variable(c->host->data, "TERM") : NULL;
    return term && *term && *term != '.' && strlen(term) < 64 && strspn(term, plain) == strlen(term) ? term : "dumb";
}

static int add(struct compile *c, const char *name, const char *value) {
    _cleanup_buf_ struct buf b = {0};
    buf_printf(&b, "%s=%s", name, value);
    if (b.failed || strv_add(&c->plan.env, b.bytes) < 0)
        return compile_out_of_memory(c);
    return 0;
}

static const struct policy_pair *find_pair(const struct compile *c, const char *name) {
    const struct policy_pair *pairs = c->step->env.items;
    for (size_t i = 0; i < c->step->env.n; i++)
        if (!strcmp(pairs[i].is.name, name))
            return &pairs[i];
    return NULL;
}

static int add_defaults(struct compile *c) {
    const struct {
        const char *name, *value;
    } defaults[] = {
        {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/doorward"},
        {"HOME", "/home/agent"},
        {"USER", plan_user_names[c->step->user]},
        {"LANG", "C.UTF-8"},
        {"TERM", find_term(c)},
        {"TMPDIR", "/tmp"},
    };
    int bad = 0;
    for (size_t i = 0; i < ELEMENTS(defaults) && bad == 0; i++)
        if (!find_pair(c, defaults[i].name) && !strv_contains(c->step->pass_env, defaults[i].name))
            bad = add(c, defaults[i].name, defaults[i].value);
    return bad;
}

/* A variable with its name in front must fit into one string of a command: refused by name. */
static int check_value(struct compile *c, const struct node *n, const char *name, const char *value) {
    char safe[100];
    size_t total = strlen(name) + 1 + strlen(value), at;
    str_safe(safe, sizeof(safe), name);
    if (total > PLAN_ARG_MAX)
        return tree_error(&c->p->tree, n, false, c->err, -EINVAL,
                          "the variable %s has %zu bytes, and one string of a command can have at most %d (execve(2)): "
                          "give it as a file instead",
                          safe, total, PLAN_ARG_MAX);
    if (!str_is_utf8(value, strlen(value), &at))
        return tree_error(&c->p->tree, n, false, c->err, -EINVAL, "the variable %s is not UTF-8 at byte %zu", safe, at);
    return 0;
}

static int add_pairs(struct compile *c) {
    const struct policy_pair *pairs = c->step->env.items;
    for (size_t i = 0; i < c->step->env.n; i++) {
        int bad = check_value(c, pairs[i].is.node, pairs[i].is.name, pairs[i].value);
        if (bad == 0)
            bad = add(c, pairs[i].is.name, pairs[i].value);
        if (bad < 0)
            return bad;
    }
    return 0;
}

static const struct node *item_at(const struct node *list, size_t i) {
    const struct node *n = list->first;
    while (n && i--)
        n = n->next;
    return n ? n : list;
}

static int add_passed(struct compile *c) {
    for (size_t i = 0; c->step->pass_env && c->step->pass_env[i]; i++) {
        const char *name = c->step->pass_env[i];
        const struct node *n = item_at(compile_node(c, "pass-env"), i);
        const char *value = c->host->variable(c->host->data, name);
        char safe[100];
        str_safe(safe, sizeof(safe), name);
        if (find_pair(c, name))
            return tree_error(&c->p->tree, n, false, c->err, -EINVAL, "%s stands in `env` too; remove one of them",
                              safe);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(c->step->pass_env[k], name))
                return tree_error(&c->p->tree, n, false, c->err, -EINVAL, "%s stands in the list twice", safe);
        if (!value)
            return tree_error(&c->p->tree, n, false, c->err, -EINVAL,
                              "%s is not set in doorward's own environment; set it, or remove it here", safe);
        int bad = check_value(c, n, name, value);
        if (bad == 0)
            bad = add(c, name, value);
        if (bad < 0)
            return bad;
    }
    return 0;
}

int compile_env(struct compile *c) {
    int bad = add_defaults(c);
    if (bad == 0)
        bad = add_pairs(c);
    return bad < 0 ? bad : add_passed(c);
}
