/* compile.c: one step of a policy to its plan on this host; see policy_compile in policy.h.
 * runs in: controller, cli */
#include "policy/compile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

int compile_out_of_memory(struct compile *c) {
    return error_set(c->err, -ENOMEM, "out of memory");
}

const struct node *compile_node(const struct compile *c, const char *key) {
    const struct node *n = node_member(c->step->is.node, key);
    return n ? n : c->step->is.node;
}

#define BAD(key, ...) tree_error(&c->p->tree, compile_node(c, key), false, c->err, -EINVAL, __VA_ARGS__)

/* -- where the worker starts -- */

/* The folder below `in` at `rest`, links resolved as long as they stay in the input. */
static int resolve_below(struct compile *c, const struct plan_input *in, const char *rest) {
    _cleanup_free_ char *found = NULL;
    _cleanup_buf_ struct buf b = {0};
    char safe[200];
    enum policy_type type;
    str_safe(safe, sizeof(safe), c->step->workdir);
    if (c->host->resolve(c->host->data, in->source, rest, &found, &type, c->err) < 0)
        return tree_wrap(&c->p->tree, compile_node(c, "workdir"), false, c->err);
    size_t n = strlen(in->source) == 1 ? 0 : strlen(in->source);
    if (strncmp(found, in->source, n) != 0 || (found[n] != '/' && found[n] != 0))
        return BAD("workdir", "links lead from %s out of the input that it lies in; name a folder inside", safe);
    if (type != POLICY_FOLDER)
        return BAD("workdir", "%s is no folder", safe);
    buf_printf(&b, "%s%s", in->target, found + n);
    c->plan.workdir = buf_take(&b);
    return c->plan.workdir ? 0 : compile_out_of_memory(c);
}

int compile_workdir(struct compile *c) {
    const char *path = c->step->workdir;
    if (!path)
        path = plan_path_stands(&c->plan, "/work") ? "/work" : "/";
    char safe[200];
    str_safe(safe, sizeof(safe), path);
    if (!plan_path_stands(&c->plan, path))
        return BAD("workdir",
                   "no folder stands at %s inside; name an input's path, a folder below one, /tmp, "
                   "/home/agent, /out or /",
                   safe);
    const struct plan_input *in = plan_input_at(&c->plan, path);
    if (in && strcmp(in->target, path) != 0)
        return resolve_below(c, in, path + strlen(in->target) + 1);
    c->plan.workdir = strdup(path);
    return c->plan.workdir ? 0 : compile_out_of_memory(c);
}

/* -- the rest, as it stands in the policy -- */

static int compile_command(struct compile *c) {
    char *const shell[] = {"/bin/sh", "-c", (char *)c->step->shell, NULL}, *const *argv = shell;
    if (!c->step->shell)
        argv = c->step->run;
    if (!argv[0][0])
        return tree_error(&c->p->tree, compile_node(c, "run")->first, false, c->err, -EINVAL,
                          "the program's name is empty");
    return strv_copy(argv, &c->plan.argv) < 0 ? compile_out_of_memory(c) : 0;
}

static int compile_exports(struct compile *c) {
    const struct policy_export *items = c->step->exports.items;
    size_t n = c->step->exports.n;
    if (n == 0)
        return 0;
    c->plan.exports = calloc(n, sizeof(*c->plan.exports));
    if (!c->plan.exports)
        return compile_out_of_memory(c);
    for (size_t i = 0; i < n; i++) {
        struct plan_export *e = &c->plan.exports[c->plan.n_exports++];
        *e = (struct plan_export){
            .name = strdup(items[i].is.name),
            .path = strdup(items[i].path),
            .max = items[i].max ? items[i].max : c->step->limits[PLAN_DISK],
            .required = items[i].required,
            .executable = items[i].executable,
        };
        if (!e->name || !e->path)
            return compile_out_of_memory(c);
    }
    return 0;
}

static void compile_degrade(struct compile *c) {
    for (size_t i = 0; i < PLAN_WALL_N; i++)
        c->plan.degrade_wall[i] = strv_contains(c->step->degrade, plan_wall_names[i]);
    for (size_t i = 0; i < PLAN_LIMIT_N; i++)
        c->plan.degrade_limit[i] = strv_contains(c->step->degrade, plan_limit_names[i]);
}

static int compile_names(struct compile *c) {
    c->plan.task = strdup(c->p->task);
    c->plan.step = strdup(c->step->is.name);
    c->plan.user = c->step->user;
    c->plan.boundary = c->step->boundary;
    c->plan.input = c->p->input;
    c->plan.terminal = c->p->terminal;
    memcpy(c->plan.limits, c->step->limits, sizeof(c->plan.limits));
    compile_degrade(c);
    return c->plan.task && c->plan.step ? 0 : compile_out_of_memory(c);
}

/* -- errors of the plan, told where the policy says it -- */

static const struct node *node_of_item(const struct compile *c, const char *message) {
    unsigned i;
    const struct policy_export *exports = c->step->exports.items;
    if (sscanf(message, "plan.inputs[%u]", &i) == 1 && i < c->plan.n_inputs)
        return c->inputs[i]->is.node;
    if (sscanf(message, "plan.exports[%u]", &i) == 1 && i < c->plan.n_exports)
        return exports[i].is.node;
    return NULL;
}

/* What plan_check said without the plan's own path, which the policy's replaces: "plan.inputs[3].target: X" gives "X",
 * "plan.inputs[3].source is not UTF-8" gives "source is not UTF-8". */
static const char *without_path(const char *message) {
    size_t n = strcspn(message, ": ");
    if (message[n] == ':')
        return message + n + 2;
    while (n > 0 && message[n - 1] != '.')
        n--;
    return message + n;
}

static int check(struct compile *c) {
    static const char *const keys[][2] = {
        {"workdir", "workdir"}, {"argv", "run"}, {"env", "env"}, {"inputs", "inputs"}, {"exports", "exports"},
    }; /* member of the plan, key of the step */
    struct error err = {0};
    if (plan_check(&c->plan, &err) == 0)
        return 0;
    const struct node *n = node_of_item(c, err.message);
    const char *field = strncmp(err.message, "plan.", 5) ? "" : err.message + 5;
    for (size_t i = 0; i < ELEMENTS(keys) && !n; i++)
        if (!strncmp(field, keys[i][0], strlen(keys[i][0])))
            n = compile_node(c, keys[i][1]);
    error_set(c->err, err.code, "%s", n ? without_path(err.message) : err.message);
    return tree_wrap(&c->p->tree, n ? n : c->step->is.node, false, c->err);
}

static int compile(struct compile *c) {
    int bad = compile_names(c);
    if (bad == 0)
        bad = compile_command(c);
    if (bad == 0)
        bad = compile_inputs(c);
    if (bad == 0)
        bad = compile_env(c);
    if (bad == 0)
        bad = compile_exports(c);
    if (bad == 0)
        bad = compile_workdir(c);
    return bad < 0 ? bad : check(c);
}

int policy_compile(const struct policy *p, size_t step, const struct policy_host *host, struct plan *ret,
                   struct error *err) {
    struct error none = {0};
    struct compile c = {
        .p = p,
        .step = policy_step_at(p, step),
        .host = host,
        .sensitive = {.host = host},
        .err = err ? err : &none,
    };
    int bad = compile(&c);
    sensitive_free(&c.sensitive);
    free(c.inputs);
    if (bad < 0)
        plan_free(&c.plan);
    else
        *ret = c.plan;
    return bad;
}
