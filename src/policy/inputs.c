/* inputs.c: the inputs of one step, from what the policy says to what stands on this host.
 * runs in: controller, cli */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "policy/compile.h"
#include "policy/git.h"

enum { SHOWN = 200 };

static int by_target(const void *a, const void *b) {
    return strcmp((*(const struct policy_input *const *)a)->is.name, (*(const struct policy_input *const *)b)->is.name);
}

static enum plan_input_kind kind_of(const struct policy_input *in) {
    return in->from[PLAN_READ] ? PLAN_READ : in->from[PLAN_OVERLAY] ? PLAN_OVERLAY : PLAN_COPY;
}

static const struct node *node_of(const struct policy_input *in) {
    return node_member(in->is.node, plan_input_kind_names[kind_of(in)]);
}

#define BAD(in, ...) tree_error(&c->p->tree, node_of(in), false, c->err, -EINVAL, __VA_ARGS__)

static int check_type(struct compile *c, const struct policy_input *in, const char *source, enum policy_type type) {
    char safe[SHOWN];
    str_safe(safe, sizeof(safe), source);
    if (type == POLICY_OTHER)
        return BAD(in, "%s is neither a file nor a folder (a device, a FIFO): it cannot be an input", safe);
    if (type == POLICY_FILE && kind_of(in) == PLAN_OVERLAY)
        return BAD(in, "%s is a file, and an overlay needs a folder: use copy (writable) or read", safe);
    if (type == POLICY_FILE && (in->exclude || in->only))
        return BAD(in, "%s is a file, and exclude and only are for folders", safe);
    if (type == POLICY_FILE && in->git)
        return BAD(in, "%s is a file, and git is for folders", safe);
    if (type == POLICY_FILE && in->digest != DIGEST_UNSAID)
        return BAD(in, "%s is a file, whose digest is taken in any case; digest is for folders", safe);
    if (type == POLICY_SOCKET)
        return BAD(in,
                   "%s is a socket, and who listens there acts with rights of its own: this version of doorward lets "
                   "in no socket; leave it out",
                   safe);
    return 0;
}

static int check_sensitive(struct compile *c, const struct policy_input *in, const char *source) {
    _cleanup_buf_ struct buf why = {0};
    char safe[SHOWN];
    if (in->sensitive)
        return 0;
    int found = sensitive_find(&c->sensitive, source, &why);
    if (found < 0)
        return compile_out_of_memory(c);
    if (found == 0)
        return 0;
    return BAD(in,
               "the input is refused: %s %s; name only what the step needs, or say `sensitive: true` (--sensitive) "
               "where that is meant",
               str_safe(safe, sizeof(safe), source), why.bytes);
}

/* What is put on record of a folder where the policy does not say: of a repository its commit. */
static enum plan_digest find_digest(const struct compile *c, const struct plan_input *in) {
    _cleanup_free_ char *there = NULL;
    enum policy_type type;
    struct error ignored = {0};
    bool found = in->directory && c->host->resolve(c->host->data, in->source, ".git", &there, &type, &ignored) == 0;
    return found ? PLAN_DIGEST_GIT : PLAN_DIGEST_NONE;
}

static int compile_input(struct compile *c, const struct policy_input *in, struct plan_input *ret) {
    enum policy_type type;
    ret->kind = kind_of(in);
    if (c->host->resolve(c->host->data, c->p->base, in->from[ret->kind], &ret->source, &type, c->err) < 0)
        return tree_wrap(&c->p->tree, node_of(in), false, c->err);
    int bad = check_type(c, in, ret->source, type);
    if (bad == 0)
        bad = check_sensitive(c, in, ret->source);
    if (bad < 0)
        return bad;
    ret->directory = type == POLICY_FOLDER;
    ret->sensitive = in->sensitive;
    ret->scan = in->scan;
    ret->digest_named = in->digest != DIGEST_UNSAID;
    ret->digest = ret->digest_named ? (enum plan_digest)(in->digest - 1) : find_digest(c, ret);
    ret->private = in->label == LABEL_PRIVATE;
    ret->target = strdup(in->is.name);
    if (!ret->target || strv_copy(in->exclude, &ret->exclude) < 0 || strv_copy(in->only, &ret->only) < 0)
        return compile_out_of_memory(c);
    return 0;
}

/* -- git: true -- */

/* Something stands at `path` inside already, and it is `source`. */
static bool is_there(const struct compile *c, const char *path, const char *source) {
    const struct plan_input *above = plan_input_at(&c->plan, path);
    if (!above)
        return false;
    size_t n = strlen(above->source) == 1 ? 0 : strlen(above->source);
    return !strncmp(above->source, source, n) && !strcmp(source + n, path + strlen(above->target));
}

/* The repository of a linked worktree or a submodule becomes an input like any other: it is refused where it is sensitive,
 * and stands in the plan. It is read-only where the worktree is. */
static int add_repository(struct compile *c, size_t index) {
    const struct policy_input *named = c->inputs[index];
    const struct plan_input *in = &c->plan.inputs[index];
    _cleanup_git_place_ struct git_place g = {0};
    struct error err = {0};
    char safe[SHOWN];
    if (git_find(c->host, in->source, in->target, &g) < 0)
        return compile_out_of_memory(c);
    if (g.kind == GIT_NONE)
        return BAD(named, "git: true, and there is no .git in %s: remove the key",
                   str_safe(safe, sizeof(safe), in->source));
    if (g.kind == GIT_STRANGE)
        return BAD(named, "git: true: %s", g.why);
    if (g.kind == GIT_WITHIN || is_there(c, g.inside, g.outside))
        return 0;
    int bad = check_sensitive(
        c,
        &(struct policy_input){.is = named->is,
                               .from = {named->from[PLAN_READ], named->from[PLAN_OVERLAY], named->from[PLAN_COPY]}},
        g.outside);
    if (bad == 0 && plan_target_check(g.inside, &err) < 0)
        bad = BAD(named, "git: true: git looks for its repository where .git says, and %s", err.message);
    if (bad < 0)
        return bad;
    struct plan_input *more = &c->plan.inputs[c->plan.n_inputs];
    *more = (struct plan_input){
        .kind = in->kind == PLAN_READ ? PLAN_READ : PLAN_OVERLAY, .directory = true, .private = in->private};
    more->source = TAKE_PTR(g.outside);
    more->target = TAKE_PTR(g.inside);
    c->inputs[c->plan.n_inputs++] = named;
    return 0;
}

/* Additions go where they belong in the order of targets. */
static void move_to_place(struct compile *c, size_t from) {
    const struct plan_input in = c->plan.inputs[from];
    const struct policy_input *named = c->inputs[from];
    for (; from > 0 && strcmp(c->plan.inputs[from - 1].target, in.target) > 0; from--) {
        c->plan.inputs[from] = c->plan.inputs[from - 1];
        c->inputs[from] = c->inputs[from - 1];
    }
    c->plan.inputs[from] = in;
    c->inputs[from] = named;
}

static int add_repositories(struct compile *c) {
    const size_t n = c->plan.n_inputs;
    int bad = 0;
    for (size_t i = 0; i < n && bad == 0; i++)
        if (c->inputs[i]->git)
            bad = add_repository(c, i);
    for (size_t i = n; i < c->plan.n_inputs; i++)
        move_to_place(c, i);
    return bad;
}

/* The input that holds the target of input `index`: the nearest above it, or NULL. */
static const struct plan_input *find_above(const struct compile *c, size_t index) {
    const char *target = c->plan.inputs[index].target;
    for (size_t n = strlen(target); n > 1;) {
        while (target[--n] != '/')
            ;
        size_t low = 0, high = index; /* a parent sorts before its children */
        while (low < high) {
            size_t middle = (low + high) / 2;
            const char *other = c->plan.inputs[middle].target;
            int order = strncmp(other, target, n);
            order = order ? order : other[n] != 0;
            if (order == 0)
                return &c->plan.inputs[middle];
            if (order < 0)
                low = middle + 1;
            else
                high = middle;
        }
    }
    return NULL;
}

/* An input that lies in another one needs a place to stand there: in a read-only folder it must be there already, and
 * no link may lead to it. */
static int check_stand(struct compile *c, size_t index) {
    const struct plan_input *in = &c->plan.inputs[index], *above = find_above(c, index);
    const struct policy_input *named = c->inputs[index];
    _cleanup_free_ char *found = NULL;
    char where[SHOWN], top[SHOWN];
    enum policy_type type;
    struct error err = {0};
    if (!above)
        return 0;
    const char *rest = in->target + strlen(above->target) + 1;
    str_safe(where, sizeof(where), rest);
    str_safe(top, sizeof(top), above->target);
    if (!above->directory)
        return BAD(named, "%s is a file, so nothing can stand below it", top);
    int bad = c->host->resolve(c->host->data, above->source, rest, &found, &type, &err);
    if (bad == -ENOENT && above->kind != PLAN_READ)
        return 0;
    if (bad == -ENOENT)
        return BAD(named,
                   "it lies in the read-only input %s, which has no %s to stand on: make it on the host, or make "
                   "%s an overlay",
                   top, where, top);
    if (bad < 0) {
        error_set(c->err, bad, "%s", err.message);
        return tree_wrap(&c->p->tree, node_of(named), false, c->err);
    }
    size_t n = strlen(above->source) == 1 ? 0 : strlen(above->source);
    if (strncmp(found, above->source, n) != 0 || found[n] != '/' || strcmp(found + n + 1, rest) != 0)
        return BAD(named, "it lies in the input %s, where a link leads away from %s: choose another path", top, where);
    if ((type == POLICY_FOLDER) != in->directory)
        return BAD(named, "it is a %s, and what stands at %s in the input %s is not", in->directory ? "folder" : "file",
                   where, top);
    return 0;
}

int compile_inputs(struct compile *c) {
    size_t n = c->step->inputs.n;
    const struct policy_input *items = c->step->inputs.items;
    int bad = 0;
    if (n == 0)
        return 0;
    c->inputs = calloc(2 * n, sizeof(struct policy_input *)); /* each may add one, see add_repository */
    c->plan.inputs = calloc(2 * n, sizeof(*c->plan.inputs));
    if (!c->inputs || !c->plan.inputs)
        return compile_out_of_memory(c);
    for (size_t i = 0; i < n; i++)
        c->inputs[i] = &items[i];
    qsort(c->inputs, n, sizeof(struct policy_input *), by_target);
    for (size_t i = 0; i < n && bad == 0; i++, c->plan.n_inputs = i)
        bad = compile_input(c, c->inputs[i], &c->plan.inputs[i]);
    if (bad == 0)
        bad = add_repositories(c);
    for (size_t i = 0; i < c->plan.n_inputs && bad == 0; i++)
        bad = check_stand(c, i);
    return bad;
}
