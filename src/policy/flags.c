/* flags.c: the flags of `doorward run` as a policy; see policy_from_flags in policy.h.
 *
 * The flags become the tree that a policy file with the same meaning would have, and go the same way from there.
 * runs in: controller, cli (untrusted input: the arguments; holds: nothing) */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "policy/model.h"

struct builder {
    struct tree *t;
    struct node *step;
    struct error *err;
};

static int out_of_memory(struct builder *b) {
    return error_set(b->err, -ENOMEM, "out of memory, or too many flags");
}

/* The map `key` of the step, made when it is first needed. */
static struct node *map_of(struct builder *b, const char *key, enum node_kind kind) {
    const struct node *there = node_member(b->step, key);
    return there ? (struct node *)there : tree_add(b->t, b->step, kind, key, NULL);
}

static int check_utf8(struct builder *b, const char *flag, const char *text) {
    size_t at;
    if (str_is_utf8(text, strlen(text), &at))
        return 0;
    return error_set(b->err, -EINVAL, "%s: byte %zu is not UTF-8; doorward takes UTF-8 names and values only", flag,
                     at);
}

static int add(struct builder *b, struct node *parent, enum node_kind kind, const char *key, const char *text,
               const char *flag) {
    int bad = check_utf8(b, flag, text);
    if (bad < 0)
        return bad;
    struct node *n = parent ? tree_add(b->t, parent, kind, key, text) : NULL;
    if (!n)
        return out_of_memory(b);
    n->flag = flag;
    return 0;
}

/* -- inputs: FROM:TO -- */

struct input_flag {
    const char *flag, *key;
    char **values;
    bool target_optional; /* without TO the same path inside */
};

static int add_input(struct builder *b, const struct input_flag *f, const char *value, bool sensitive) {
    const char *colon = strrchr(value, ':');
    if (check_utf8(b, f->flag, value) < 0)
        return b->err->code;
    if ((colon && (colon == value || !colon[1])) || (!colon && !f->target_optional)) {
        char safe[200];
        return error_set(b->err, -EINVAL, "%s: found \"%s\", expected FROM:TO, a path outside and one inside", f->flag,
                         str_safe(safe, sizeof(safe), value));
    }
    _cleanup_free_ char *from = colon ? strndup(value, (size_t)(colon - value)) : strdup(value);
    const char *to = colon ? colon + 1 : value;
    struct node *inputs = map_of(b, "inputs", NODE_MAP);
    struct node *input = inputs && from ? tree_add(b->t, inputs, NODE_MAP, to, NULL) : NULL;
    if (!input)
        return out_of_memory(b);
    input->flag = f->flag;
    int bad = add(b, input, NODE_TEXT, f->key, from, f->flag);
    return bad == 0 && sensitive ? add(b, input, NODE_BOOL, "sensitive", "true", "--sensitive") : bad;
}

static int add_inputs(struct builder *b, const struct policy_flags *flags) {
    const struct input_flag kinds[] = {
        {"--overlay", "overlay", flags->overlay, false},
        {"--read", "read", flags->read, true},
        {"--copy", "copy", flags->copy, false},
    };
    for (size_t i = 0; i < ELEMENTS(kinds); i++)
        for (size_t k = 0; kinds[i].values && kinds[i].values[k]; k++) {
            int bad = add_input(b, &kinds[i], kinds[i].values[k], flags->sensitive);
            if (bad < 0)
                return bad;
        }
    if (flags->sensitive && !node_member(b->step, "inputs"))
        return error_set(b->err, -EINVAL, "--sensitive: there is no input that it could concern; remove it");
    return 0;
}

/* -- NAME=VALUE -- */

static int add_pair(struct builder *b, const char *flag, const char *key, const char *value, const char *expected,
                    struct node **ret_map) {
    const char *equals = strchr(value, '=');
    if (check_utf8(b, flag, value) < 0)
        return b->err->code;
    if (!equals || equals == value) {
        char safe[200];
        return error_set(b->err, -EINVAL, "%s: found \"%s\", expected %s", flag, str_safe(safe, sizeof(safe), value),
                         expected);
    }
    _cleanup_free_ char *name = strndup(value, (size_t)(equals - value));
    struct node *map = map_of(b, key, NODE_MAP);
    if (!name || !map)
        return out_of_memory(b);
    if (!ret_map)
        return add(b, map, NODE_TEXT, name, equals + 1, flag);
    *ret_map = tree_add(b->t, map, NODE_MAP, name, NULL);
    if (!*ret_map)
        return out_of_memory(b);
    (*ret_map)->flag = flag;
    return 0;
}

static int add_env(struct builder *b, const struct policy_flags *flags) {
    int bad = 0;
    for (size_t i = 0; flags->env && flags->env[i] && bad == 0; i++)
        bad = add_pair(b, "--env", "env", flags->env[i], "NAME=VALUE", NULL);
    return bad;
}

static int add_exports(struct builder *b, const struct policy_flags *flags) {
    for (size_t i = 0; flags->export && flags->export[i]; i++) {
        struct node *e;
        const char *value = flags->export[i];
        int bad = add_pair(b, "--export", "exports", value, "NAME=PATH, a name and a path inside", &e);
        if (bad == 0)
            bad = add(b, e, NODE_TEXT, "type", "file", "--export");
        if (bad == 0)
            bad = add(b, e, NODE_TEXT, "path", strchr(value, '=') + 1, "--export");
        if (bad < 0)
            return bad;
    }
    return 0;
}

/* -- lists and single values -- */

static int add_lists(struct builder *b, const struct policy_flags *flags) {
    const struct {
        const char *flag, *key;
        char **values;
    } lists[] = {
        {"the command", "run", flags->argv},
        {"--pass-env", "pass-env", flags->pass_env},
        {"--degrade", "degrade", flags->degrade},
    };
    int bad = 0;
    for (size_t i = 0; i < ELEMENTS(lists); i++)
        for (size_t k = 0; lists[i].values && lists[i].values[k] && bad == 0; k++)
            bad = add(b, map_of(b, lists[i].key, NODE_LIST), NODE_TEXT, NULL, lists[i].values[k], lists[i].flag);
    return bad;
}

static int add_limits(struct builder *b, const struct policy_flags *flags) {
    const struct {
        const char *flag, *key, *value;
    } limits[] = {
        {"--timeout", "wall", flags->timeout}, {"--memory", "memory", flags->memory},
        {"--cpus", "cpus", flags->cpus},       {"--processes", "processes", flags->processes},
        {"--disk", "disk", flags->disk},       {"--output", "output", flags->output},
    };
    int bad = 0;
    for (size_t i = 0; i < ELEMENTS(limits) && bad == 0; i++)
        if (limits[i].value)
            bad = add(b, map_of(b, "limits", NODE_MAP), *limits[i].value ? node_plain_kind(limits[i].value) : NODE_TEXT,
                      limits[i].key, limits[i].value, limits[i].flag);
    if (bad == 0 && flags->workdir)
        bad = add(b, b->step, NODE_TEXT, "workdir", flags->workdir, "--workdir");
    return bad;
}

static int check_twice(struct builder *b) {
    int bad = 0;
    for (const struct node *n = b->step->first; n && bad == 0; n = n->next)
        if (n->kind == NODE_MAP)
            bad = tree_check_twice(b->t, n, b->err);
    return bad;
}

/* The parts of the tree that no flag decides. */
static int add_frame(struct builder *b) {
    struct node *root = tree_add(b->t, NULL, NODE_MAP, NULL, NULL);
    struct node *steps =
        root && tree_add(b->t, root, NODE_NUMBER, "version", "1") && tree_add(b->t, root, NODE_TEXT, "task", "run")
            ? tree_add(b->t, root, NODE_MAP, "steps", NULL)
            : NULL;
    b->step = steps ? tree_add(b->t, steps, NODE_MAP, "main", NULL) : NULL;
    return b->step ? 0 : out_of_memory(b);
}

static int build(struct builder *b, const struct policy_flags *flags) {
    int bad = add_frame(b);
    if (bad == 0 && (!flags->argv || !flags->argv[0]))
        bad = error_set(b->err, -EINVAL, "there is no command: doorward run -- PROGRAM [ARGUMENT...]");
    if (bad == 0)
        bad = add_lists(b, flags);
    if (bad == 0)
        bad = add_inputs(b, flags);
    if (bad == 0)
        bad = add_env(b, flags);
    if (bad == 0)
        bad = add_exports(b, flags);
    if (bad == 0)
        bad = add_limits(b, flags);
    return bad < 0 ? bad : check_twice(b);
}

int policy_from_flags(const struct policy_flags *flags, const char *base, struct policy **ret, struct error *err) {
    struct error none = {0};
    _cleanup_policy_ struct policy *p = calloc(1, sizeof(*p));
    err = err ? err : &none;
    if (!p || !(p->base = arena_copy(&p->tree.arena, base, strlen(base))))
        return error_set(err, -ENOMEM, "out of memory");
    struct builder b = {.t = &p->tree, .err = err};
    int bad = build(&b, flags);
    if (bad == 0)
        bad = policy_read(p, err);
    if (bad < 0)
        return bad;
    policy_attach(p, flags->input, flags->terminal);
    *ret = TAKE_PTR(p);
    return 0;
}
