/* check.c: the rules that every plan keeps, whatever made it; see plan_check in plan.h.
 *
 * The launcher runs this again on what it decodes, so a mistake in a front end cannot reach the kernel.
 * runs in: controller, launcher, cli */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "plan/fields.h"
#include "plan/places.h"
#include "plan/plan.h"

enum { SHOWN = 200 }; /* bytes of a foreign string that a message repeats */

#define BAD(...) error_set(err, -EINVAL, __VA_ARGS__)

/* -- text: every string is UTF-8 -- */

static int check_text(const char *s, const char *path, const char *name, struct error *err) {
    size_t at;
    if (!s)
        return BAD("%s.%s is missing", path, name);
    if (!str_is_utf8(s, strlen(s), &at))
        return BAD("%s.%s is not UTF-8 at byte %zu; doorward takes UTF-8 names only: rename it", path, name, at);
    return 0;
}

static int check_texts(const struct field *fields, const void *object, const char *path, struct error *err) {
    for (const struct field *f = fields; f->name; f++) {
        char **v = f->type == FIELD_STRINGS ? *(char ***)field_of(f, object) : NULL;
        int r = f->type == FIELD_STRING ? check_text(*(char **)field_of(f, object), path, f->name, err) : 0;
        for (size_t i = 0; v && v[i] && r == 0; i++)
            r = check_text(v[i], path, f->name, err);
        if (r < 0)
            return r;
        if (f->type == FIELD_WORD && *(unsigned *)field_of(f, object) >= f->n_words)
            return BAD("%s.%s is not a known word", path, f->name);
    }
    return 0;
}

static int check_path(const char *s, const char *path, const char *name, struct error *err) {
    char shown[SHOWN];
    if (!plan_path_is_canonical(s))
        return BAD("%s.%s: \"%s\" is not an absolute, normalised path of at most %d bytes", path, name,
                   str_safe(shown, sizeof(shown), s), PLAN_PATH_MAX);
    return 0;
}

static int check_name(const char *s, const char *path, const char *name, struct error *err) {
    char shown[SHOWN];
    if (!plan_name_is_valid(s))
        return BAD("%s.%s: \"%s\" is not a name: lower-case letters, digits, '-' and '_', at most %d, and a letter "
                   "or a digit first",
                   path, name, str_safe(shown, sizeof(shown), s), PLAN_NAME_MAX);
    return 0;
}

/* -- the command and its variables -- */

static int check_size(char *const *v, const char *what, size_t *total, struct error *err) {
    for (size_t i = 0; v && v[i]; i++) {
        size_t n = strlen(v[i]);
        if (n > PLAN_ARG_MAX) {
            char shown[64];
            str_safe(shown, sizeof(shown), v[i]);
            return BAD("plan.%s[%zu] (\"%s\") has %zu bytes, and one string of a command can have at most %d "
                       "(execve(2)): give it as a file instead",
                       what, i, shown, n, PLAN_ARG_MAX);
        }
        *total += n + 1 + sizeof(char *);
    }
    return 0;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Variables that stand twice are found by sorting names; what the worker would see of them depends on its libc. */
static int check_twice(char *const *env, size_t n, struct error *err) {
    _cleanup_free_ char **sorted = calloc(n + 1, sizeof(*sorted));
    if (!sorted)
        return error_set(err, -ENOMEM, "out of memory");
    memcpy(sorted, env, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_text);
    for (size_t i = 1; i < n; i++) {
        size_t name = strcspn(sorted[i], "=");
        if (!strncmp(sorted[i - 1], sorted[i], name + 1))
            return BAD("plan.env: variable %.*s stands there twice", (int)(name < SHOWN ? name : SHOWN), sorted[i]);
    }
    return 0;
}

static int check_command(const struct plan *p, struct error *err) {
    size_t total = 0;
    if (!p->argv || !p->argv[0] || !p->argv[0][0])
        return BAD("plan.argv is empty: name a program");
    int r = check_size(p->argv, "argv", &total, err);
    if (r == 0)
        r = check_size(p->env, "env", &total, err);
    if (r < 0)
        return r;
    if (total > PLAN_ARGS_TOTAL_MAX)
        return BAD("plan.argv and plan.env have %zu bytes together, more than %u (execve(2)): give some of it as files",
                   total, PLAN_ARGS_TOTAL_MAX);
    for (size_t i = 0; p->env && p->env[i]; i++) {
        char shown[SHOWN];
        if (!strchr(p->env[i], '=') || !plan_variable_is_valid(p->env[i], strcspn(p->env[i], "=")))
            return BAD("plan.env[%zu]: \"%s\" is not NAME=value with a name of printable ASCII", i,
                       str_safe(shown, sizeof(shown), p->env[i]));
    }
    return p->env ? check_twice(p->env, strv_count(p->env), err) : 0;
}

/* -- inputs -- */

int plan_target_check(const char *target, struct error *err) {
    char shown[SHOWN];
    size_t n;
    const struct plan_place *places = plan_places(&n);
    str_safe(shown, sizeof(shown), target);
    if (!plan_path_is_canonical(target))
        return BAD("\"%s\" is not an absolute, normalised path of at most %d bytes", shown, PLAN_PATH_MAX);
    for (size_t i = 0; i < n; i++) {
        if (places[i].flags & PLACE_CLOSED && plan_path_below(target, places[i].path))
            return BAD("no input may stand at %s: %s inside is doorward's own; choose a path such as /work or /in/NAME",
                       shown, places[i].path);
        if (strcmp(target, places[i].path) != 0 && plan_path_below(places[i].path, target))
            return BAD("no input may stand at %s: it would cover %s; choose a path such as /work or /in/NAME", shown,
                       places[i].path);
    }
    return 0;
}

static int check_input(const struct plan_input *i, const char *path, struct error *err) {
    int r = check_texts(plan_input_fields, i, path, err);
    if (r == 0)
        r = check_path(i->source, path, "source", err);
    if (r < 0)
        return r;
    r = plan_target_check(i->target, err);
    if (r < 0)
        return error_wrap(err, "%s.target", path);
    if (i->kind == PLAN_OVERLAY && !i->directory)
        return BAD("%s: an overlay needs a folder as its source; use copy for a file", path);
    if (!i->directory && i->digest != PLAN_DIGEST_NONE)
        return BAD("%s: digest is for folders, and the source is a file", path);
    if (!i->directory && (i->exclude || i->only))
        return BAD("%s: exclude and only are for folders, and the source is a file", path);
    return 0;
}

struct place_in_list {
    const char *target;
    size_t n; /* bytes of target that count */
    size_t index;
};

static int by_target(const void *a, const void *b) {
    const struct place_in_list *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int r = memcmp(x->target, y->target, n);
    return r ? r : (x->n > y->n) - (x->n < y->n);
}

/* An ancestor's mount made later would hide its child, so each ancestor must come first, and be a folder. */
static int check_ancestors(const struct plan *p, const struct place_in_list *sorted, size_t index, struct error *err) {
    const char *target = p->inputs[index].target;
    for (const char *slash = strchr(target + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct place_in_list key = {target, (size_t)(slash - target), 0};
        const struct place_in_list *above = bsearch(&key, sorted, p->n_inputs, sizeof(*sorted), by_target);
        char shown[SHOWN];
        if (above && above->index > index)
            return BAD("plan.inputs[%zu]: %s comes before the input it lies in", index,
                       str_safe(shown, sizeof(shown), target));
        if (above && !p->inputs[above->index].directory)
            return BAD("plan.inputs[%zu]: %s lies below an input that is a file", index,
                       str_safe(shown, sizeof(shown), target));
    }
    return 0;
}

static int check_order(const struct plan *p, struct error *err) {
    _cleanup_free_ struct place_in_list *sorted = calloc(p->n_inputs + 1, sizeof(*sorted));
    if (!sorted)
        return error_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < p->n_inputs; i++)
        sorted[i] = (struct place_in_list){p->inputs[i].target, strlen(p->inputs[i].target), i};
    qsort(sorted, p->n_inputs, sizeof(*sorted), by_target);
    for (size_t i = 1; i < p->n_inputs; i++) {
        char shown[SHOWN];
        if (by_target(&sorted[i - 1], &sorted[i]) == 0)
            return BAD("plan.inputs: two inputs stand at %s", str_safe(shown, sizeof(shown), sorted[i].target));
    }
    int r = 0;
    for (size_t i = 0; i < p->n_inputs && r == 0; i++)
        r = check_ancestors(p, sorted, i, err);
    return r;
}

static int check_inputs(const struct plan *p, struct error *err) {
    if (p->n_inputs > PLAN_INPUTS_MAX)
        return BAD("plan.inputs has %zu entries, more than %d: give a folder with exclude or only instead", p->n_inputs,
                   PLAN_INPUTS_MAX);
    for (size_t i = 0; i < p->n_inputs; i++) {
        char path[64];
        snprintf(path, sizeof(path), "plan.inputs[%zu]", i);
        int r = check_input(&p->inputs[i], path, err);
        if (r < 0)
            return r;
    }
    return check_order(p, err);
}

/* -- limits and exports -- */

static int check_limits(const struct plan *p, struct error *err) {
    for (size_t i = 0; i < PLAN_LIMIT_N; i++) {
        const struct plan_range *range = &plan_limit_ranges[i];
        if (p->limits[i] < range->least || p->limits[i] > range->most)
            return BAD("plan.limits.%s is %llu, outside %llu to %llu", plan_limit_names[i],
                       (unsigned long long)p->limits[i], (unsigned long long)range->least,
                       (unsigned long long)range->most);
    }
    return 0;
}

/* Why no file can be exported from exactly this path, or NULL. */
static const char *not_a_file(const struct plan *p, const char *path) {
    size_t n;
    const struct plan_place *places = plan_places(&n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(places[i].path, path))
            return "is a folder";
    const struct plan_input *input = plan_input_at(p, path);
    if (input && input->directory == !strcmp(input->target, path))
        return input->directory ? "is a folder" : "lies below a file";
    return NULL;
}

static int check_export(const struct plan *p, const struct plan_export *e, const char *path, struct error *err) {
    char shown[SHOWN];
    int r = check_texts(plan_export_fields, e, path, err);
    if (r == 0)
        r = check_name(e->name, path, "name", err);
    if (r == 0)
        r = check_path(e->path, path, "path", err);
    if (r < 0)
        return r;
    str_safe(shown, sizeof(shown), e->path);
    if (!plan_path_is_writable(p, e->path))
        return BAD("%s.path: the worker cannot write at %s, so nothing can come from there; use /out/NAME or a path "
                   "below an overlay or copy input",
                   path, shown);
    const char *why = not_a_file(p, e->path);
    if (why)
        return BAD("%s.path: %s %s, and an export is one file: name the file", path, shown, why);
    if (e->max == 0 || e->max > plan_limit_ranges[PLAN_DISK].most)
        return BAD("%s.max is %llu, outside 1 to %llu bytes", path, (unsigned long long)e->max,
                   (unsigned long long)plan_limit_ranges[PLAN_DISK].most);
    return 0;
}

static int check_exports(const struct plan *p, struct error *err) {
    if (p->n_exports > PLAN_EXPORTS_MAX)
        return BAD("plan.exports has %zu entries, more than %d", p->n_exports, PLAN_EXPORTS_MAX);
    for (size_t i = 0; i < p->n_exports; i++) {
        char path[64];
        snprintf(path, sizeof(path), "plan.exports[%zu]", i);
        int r = check_export(p, &p->exports[i], path, err);
        if (r < 0)
            return r;
        for (size_t j = 0; j < i; j++)
            if (!strcmp(p->exports[j].name, p->exports[i].name))
                return BAD("%s: a second export is named %s", path, p->exports[i].name);
    }
    return 0;
}

static int check_workdir(const struct plan *p, struct error *err) {
    char shown[SHOWN];
    int r = check_path(p->workdir, "plan", "workdir", err);
    if (r < 0)
        return r;
    if (!plan_path_stands(p, p->workdir))
        return BAD("plan.workdir: nothing stands at %s inside; name an input's path, a folder below one, /tmp, "
                   "/home/agent, /out or /",
                   str_safe(shown, sizeof(shown), p->workdir));
    return 0;
}

int plan_check(const struct plan *p, struct error *err) {
    int r = check_texts(plan_fields, p, "plan", err);
    if (r == 0)
        r = check_name(p->task, "plan", "task", err);
    if (r == 0)
        r = check_name(p->step, "plan", "step", err);
    if (r == 0)
        r = check_command(p, err);
    if (r == 0)
        r = check_inputs(p, err);
    if (r == 0)
        r = check_limits(p, err);
    if (r == 0)
        r = check_exports(p, err);
    if (r == 0)
        r = check_workdir(p, err);
    return r;
}
