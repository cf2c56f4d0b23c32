/* plans.c: the plan that runs one probe. See lab.h. runs in: cli */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "lab/lab.h"

#define SLACK_MS 3000 /* the sandbox's own deadline comes after the harness's, but bounds what a lost probe can use */

static const struct {
    enum plan_limit limit;
    uint64_t tight;
} tight[] = {{PLAN_PROCESSES, LAB_PROCESSES}, {PLAN_MEMORY, LAB_MEMORY},         {PLAN_DISK, LAB_DISK},
             {PLAN_FILES, LAB_FILES_CAP},     {PLAN_OPEN_FILES, LAB_OPEN_FILES}, {PLAN_OUTPUT, LAB_OUTPUT},
             {PLAN_WALL, LAB_WALL_MS}};

/* Puts one more input into the list, behind those whose targets come before it, so that parents stay first. */
static int add_input(struct plan *p, enum plan_input_kind kind, const char *source, const char *target,
                     bool directory) {
    struct plan_input *more = reallocarray(p->inputs, p->n_inputs + 1, sizeof(*more));
    if (!more)
        return -ENOMEM;
    p->inputs = more;
    struct plan_input in = {.kind = kind, .target = strdup(target), .source = strdup(source), .directory = directory};
    if (!in.target || !in.source) {
        free(in.target);
        free(in.source);
        return -ENOMEM;
    }
    size_t at = p->n_inputs;
    while (at > 0 && strcmp(more[at - 1].target, target) > 0)
        at--;
    memmove(more + at + 1, more + at, (p->n_inputs - at) * sizeof(*more));
    more[at] = in;
    p->n_inputs++;
    return 0;
}

static int add_below(struct plan *p, const struct lab_scene *s, const char *name, const char *target,
                     enum plan_input_kind kind) {
    char source[PLAN_PATH_MAX + 1];
    snprintf(source, sizeof(source), "%s/%s", s->dir, name);
    return add_input(p, kind, source, target ? target : source, true);
}

/* Targets that lead through links of the workspace: to a folder of the host, to the kernel's knobs, in a circle. */
static int add_links(struct plan *p, const struct lab_scene *s) {
    static const char *const through[] = {"/lab-links/dot/inner", "/lab-links/kernel/inner", "/lab-links/loop/inner"};
    int r = add_below(p, s, "links", "/lab-links", PLAN_OVERLAY);
    for (size_t i = 0; r == 0 && i < ELEMENTS(through); i++)
        r = add_below(p, s, "small", through[i], PLAN_READ);
    return r;
}

/* True when whoever runs as nobody in particular may execute the file: without the wall around mounts the worker has an
 * id of its own there, and doorward may have been built in a folder that is its owner's alone. */
static bool everybody_may_run(const char *path) {
    char folder[PLAN_PATH_MAX + 1];
    struct stat st;
    snprintf(folder, sizeof(folder), "%s", path);
    for (char *slash = folder; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        if (stat(folder, &st) < 0 || !(st.st_mode & S_IXOTH))
            return false;
        *slash = '/';
    }
    return stat(path, &st) == 0 && st.st_mode & S_IXOTH;
}

/* Where the probe stands, inside as outside (without the wall around mounts there is but one path): its own place, or
 * the stage's copy where an input of the step covers that or not everybody may go there. */
static const char *probe_at(const struct plan *p, const struct lab_scene *s, char room[PLAN_PATH_MAX + 1]) {
    if (!plan_input_at(p, s->probe) && everybody_may_run(s->probe))
        return s->probe;
    snprintf(room, PLAN_PATH_MAX + 1, "%s/program", s->dir);
    return room;
}

static int add_inputs(struct plan *p, const struct lab_row *row, const struct lab_scene *s) {
    int r = 0;
    if (strncmp(p->argv[0], "/usr/", 5) != 0)
        r = add_input(p, PLAN_READ, p->argv[0], p->argv[0], false);
    if (r == 0 && row->flags & LAB_SOCKETS)
        r = add_below(p, s, "sock", NULL, PLAN_READ);
    if (r == 0 && row->flags & LAB_STAGED)
        r = add_below(p, s, "staged", NULL, PLAN_READ);
    if (r == 0 && row->flags & LAB_LINKS)
        r = add_links(p, s);
    return r;
}

static int set_command(struct plan *p, const struct lab_row *row, const struct lab_scene *s) {
    char room[PLAN_PATH_MAX + 1];
    strv_free(p->argv);
    p->argv = NULL;
    int r = strv_add(&p->argv, probe_at(p, s, room));
    if (r == 0)
        r = strv_add(&p->argv, "run");
    if (r == 0)
        r = strv_add(&p->argv, row->name);
    for (size_t i = 0; r == 0 && s->facts[i]; i++)
        r = strv_add(&p->argv, s->facts[i]);
    return r;
}

static void set_limits(struct plan *p, const struct lab_row *row) {
    uint64_t wall = row->deadline_ms + SLACK_MS;
    p->limits[PLAN_WALL] = p->limits[PLAN_WALL] < wall ? p->limits[PLAN_WALL] : wall;
    for (size_t i = 0; row->limit != LAB_NO_LIMIT && i < ELEMENTS(tight); i++)
        if ((int)tight[i].limit == row->limit)
            p->limits[row->limit] = tight[i].tight;
}

/* A deep copy; the encoding is the one thing that knows every field. */
static int copy_plan(const struct plan *p, struct plan *ret, struct error *err) {
    _cleanup_free_ char *text = plan_encode(p);
    return text ? plan_decode(text, strlen(text), ret, err) : error_set(err, -ENOMEM, "lab: out of memory");
}

static void drop_exports(struct plan *p) {
    for (size_t i = 0; i < p->n_exports; i++) {
        free(p->exports[i].name);
        free(p->exports[i].path);
    }
    free(p->exports);
    p->exports = NULL;
    p->n_exports = 0;
}

static bool has_variable(char *const *env, const char *entry) {
    size_t n = strcspn(entry, "=");
    for (; env && *env; env++)
        if (!strncmp(*env, entry, n) && (*env)[n] == '=')
            return true;
    return false;
}

/* Leaves the row's walls and limit out. Others that stand on them may be missing then (Landlock on a root of its own,
 * say): this attempt only has to show that the probe can fail. */
static int take_off(struct plan *p, const struct lab_row *row, uint32_t walls) {
    int r = 0;
    for (int w = 0; w < PLAN_WALL_N; w++) {
        p->lab_off[w] = walls >> w & 1;
        p->degrade_wall[w] = true;
    }
    for (int l = 0; l < PLAN_LIMIT_N; l++)
        p->degrade_limit[l] = true;
    if (row->limit != LAB_NO_LIMIT)
        p->lab_limit_off[row->limit] = true;
    if (p->lab_off[PLAN_WALL_MOUNTS]) { /* what stands inside only, the host need not have */
        free(p->workdir);
        p->workdir = strdup("/");
        r = p->workdir ? 0 : -ENOMEM;
    }
    /* The wall around the environment is that a plan has all of it: without, it is passed on. */
    for (char **e = environ; p->lab_off[PLAN_WALL_ENV] && *e && r == 0; e++)
        if (!has_variable(p->env, *e))
            r = strv_add(&p->env, *e);
    return r;
}

int lab_plan(const struct lab_row *row, const struct lab_scene *scene, const struct plan *base, bool off,
             struct plan *ret, struct error *err) {
    _cleanup_plan_ struct plan p = {0};
    int r = copy_plan(base, &p, err);
    if (r < 0)
        return error_wrap(err, "lab: probe %s", row->name);
    drop_exports(&p);
    p.terminal = row->flags & LAB_INTERACTIVE;
    p.input = false;
    set_limits(&p, row);
    if (set_command(&p, row, scene) < 0 || add_inputs(&p, row, scene) < 0)
        return error_set(err, -ENOMEM, "lab: out of memory");
    if (off)
        r = take_off(&p, row, row->off);
    else if (row->flags & LAB_UNDER)
        r = take_off(&p, row, row->off & ~(1u << PLAN_WALL_LANDLOCK));
    if (r < 0)
        return error_set(err, r, "lab: out of memory");
    r = plan_check(&p, err);
    if (r < 0)
        return error_wrap(err, "lab: probe %s", row->name);
    *ret = p;
    p = (struct plan){0};
    return 0;
}
