/* parse.c: a policy from bytes; its life, its canonical form, its schema; see policy.h.
 * runs in: controller, cli (untrusted input: the policy file; holds: nothing) */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "policy/model.h"
#include "policy/rules.h"
#include "policy/document.h"

static const struct rule top = {.type = &type_map, .with = &policy_rules};

void policy_free(struct policy *p) {
    if (!p)
        return;
    tree_free(&p->tree);
    free(p);
}

int policy_read(struct policy *p, struct error *err) {
    struct reader_of_tree r = {&p->tree, err};
    int bad = type_map.read(&r, &top, p->tree.root, p);
    return bad < 0 ? bad : policy_order(p, err);
}

int policy_parse(const char *name, const char *base, const char *bytes, size_t n, struct policy **ret,
                 struct error *err) {
    struct error none = {0};
    _cleanup_policy_ struct policy *p = calloc(1, sizeof(*p));
    err = err ? err : &none;
    if (!p || !(p->base = arena_copy(&p->tree.arena, base, strlen(base))) ||
        !(p->tree.name = arena_copy(&p->tree.arena, name, strlen(name))))
        return error_set(err, -ENOMEM, "out of memory");
    int bad = document_read(&p->tree, bytes, n, err);
    if (bad == 0)
        bad = policy_read(p, err);
    if (bad < 0)
        return bad;
    *ret = TAKE_PTR(p);
    return 0;
}

/* -- the order of steps -- */

/* The index in the file of the step before step `i`; its own index when it is the first. */
static int find_before(const struct policy *p, size_t i, size_t *ret, struct error *err) {
    const struct policy_step *steps = p->steps.items, *step = &steps[i];
    const char *names[POLICY_STEPS_MAX + 1] = {0};
    if (!step->after) {
        *ret = i ? i - 1 : i;
        return 0;
    }
    for (size_t k = 0; k < p->steps.n; k++) {
        names[k] = steps[k].is.name;
        if (!strcmp(steps[k].is.name, step->after) && k != i) {
            *ret = k;
            return 0;
        }
    }
    const struct node *n = node_member(step->is.node, "after");
    const char *near = str_near(step->after, names);
    if (!strcmp(step->after, step->is.name))
        return tree_error(&p->tree, n, false, err, -EINVAL, "a step cannot come after itself");
    return tree_error(&p->tree, n, false, err, -EINVAL, "there is no step \"%s\"%s%s%s", step->after,
                      near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* Every step waits for at most one, so a step that cannot start waits for itself somewhere up the line. */
static int refuse_cycle(const struct policy *p, const size_t *before, size_t at, struct error *err) {
    const struct policy_step *steps = p->steps.items;
    _cleanup_buf_ struct buf b = {0};
    for (size_t k = 0; k < p->steps.n; k++) /* walk into the cycle */
        at = before[at];
    size_t start = at;
    const struct policy_step *named = NULL;
    do {
        buf_printf(&b, "%s%s", b.n ? " waits for " : "", steps[at].is.name);
        named = steps[at].after ? &steps[at] : named;
        at = before[at];
    } while (at != start);
    buf_printf(&b, " waits for %s", steps[start].is.name);
    const struct node *n = named ? node_member(named->is.node, "after") : NULL;
    return tree_error(&p->tree, n, false, err, -EINVAL,
                      "the steps wait for each other: %s; a step without `after` waits for the one above it",
                      b.bytes ? b.bytes : "");
}

int policy_order(struct policy *p, struct error *err) {
    size_t before[POLICY_STEPS_MAX] = {0}, n = 0;
    bool placed[POLICY_STEPS_MAX] = {false};
    for (size_t i = 0; i < p->steps.n; i++) {
        int bad = find_before(p, i, &before[i], err);
        if (bad < 0)
            return bad;
    }
    while (n < p->steps.n) { /* each time, the first in the file that may start */
        size_t i = 0;
        while (i < p->steps.n && (placed[i] || (before[i] != i && !placed[before[i]])))
            i++;
        if (i == p->steps.n) {
            for (i = 0; placed[i];)
                i++;
            return refuse_cycle(p, before, i, err);
        }
        placed[i] = true;
        p->order[n++] = i;
    }
    return 0;
}

/* -- what others ask -- */

size_t policy_n_steps(const struct policy *p) {
    return p->steps.n;
}

const char *policy_task(const struct policy *p) {
    return p->task;
}

const char *policy_purpose(const struct policy *p) {
    return p->purpose ? p->purpose : "";
}

const char *policy_step_name(const struct policy *p, size_t step) {
    return policy_step_at(p, step)->is.name;
}

void policy_attach(struct policy *p, bool input, bool terminal) {
    p->input = input;
    p->terminal = terminal;
}

char *policy_canonical(const struct policy *p) {
    _cleanup_json_ json_t *o = type_map.put(&top, p);
    json_t *order = json_array();
    for (size_t i = 0; i < p->steps.n; i++)
        json_array_append_new(order, json_string(policy_step_name(p, i)));
    /* The canonical form sorts keys, and the order of steps means something. */
    if (json_object_set_new(o, "order", order) < 0)
        return NULL;
    return json_canonical(o);
}

int policy_digest(const struct policy *p, char ret[DIGEST_HEX]) {
    _cleanup_free_ char *text = policy_canonical(p);
    if (!text)
        return -ENOMEM;
    digest_hex(text, strlen(text), ret);
    return 0;
}

json_t *policy_schema(void) {
    json_t *o = type_map.schema(&top);
    json_object_set_new(o, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(o, "title", json_string("Doorward policy"));
    return o;
}
