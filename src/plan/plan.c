/* plan.c: the names, the places inside and the life of a plan; see plan.h.
 * runs in: controller, launcher, cli */
#include "plan/plan.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "plan/places.h"

const char *const plan_user_names[] = {"agent", "root"};
static_assert(ELEMENTS(plan_user_names) == PLAN_USER_N, "one word per user");

const char *const plan_input_kind_names[] = {"read", "overlay", "copy"};
static_assert(ELEMENTS(plan_input_kind_names) == PLAN_INPUT_KIND_N, "one word per kind of input");

const char *const plan_digest_names[] = {"none", "git", "full"};
static_assert(ELEMENTS(plan_digest_names) == PLAN_DIGEST_N, "one word per way to digest");

const char *const plan_scan_names[] = {"off", "warn", "refuse"};
static_assert(ELEMENTS(plan_scan_names) == PLAN_SCAN_N, "one word per way to scan");

const char *const plan_limit_names[] = {"wall", "memory", "processes", "cpus", "disk", "files", "output", "open-files"};
static_assert(ELEMENTS(plan_limit_names) == PLAN_LIMIT_N, "one word per limit");

const char *const plan_wall_names[] = {"userns", "mounts", "pids", "net",     "ipc",    "seccomp", "landlock",
                                       "caps",   "fds",    "env",  "session", "cgroup", "reap"};
static_assert(ELEMENTS(plan_wall_names) == PLAN_WALL_N, "one word per wall");

const uint64_t plan_limit_defaults[PLAN_LIMIT_N] = {
    [PLAN_WALL] = 30 * 60 * 1000, [PLAN_MEMORY] = 2ULL << 30, [PLAN_PROCESSES] = 512,   [PLAN_CPUS] = 2000,
    [PLAN_DISK] = 2ULL << 30,     [PLAN_FILES] = 200000,      [PLAN_OUTPUT] = 10000000, [PLAN_OPEN_FILES] = 4096,
};

/* Least: what a worker needs to start at all, or the kernel's own grain (cpu.max: 1 ms of a 100 ms period).
 * Most: PID_MAX_LIMIT for processes, fs.nr_open for open files; for the others more than any machine has. */
const struct plan_range plan_limit_ranges[PLAN_LIMIT_N] = {
    [PLAN_WALL] = {1, 366ULL * 24 * 60 * 60 * 1000},
    [PLAN_MEMORY] = {1 << 20, 1ULL << 50},
    [PLAN_PROCESSES] = {1, 4194304},
    [PLAN_CPUS] = {10, 8192000},
    [PLAN_DISK] = {64 << 10, 1ULL << 50},
    [PLAN_FILES] = {16, 1ULL << 32},
    [PLAN_OUTPUT] = {0, 1ULL << 50},
    [PLAN_OPEN_FILES] = {16, 1048576},
};

/* What stands inside before any input. The order does not matter. */
static const struct plan_place places[] = {
    {"/proc", PLACE_CLOSED},
    {"/dev", PLACE_CLOSED},
    {"/dev/shm", PLACE_CLOSED | PLACE_WRITABLE},
    {"/sys", PLACE_CLOSED},
    {"/run", PLACE_CLOSED},
    {"/etc", PLACE_CLOSED},
    {"/usr", PLACE_CLOSED | PLACE_HOST},
    {"/bin", PLACE_CLOSED | PLACE_HOST}, /* folders on hosts without merged /usr, else links into /usr */
    {"/sbin", PLACE_CLOSED | PLACE_HOST},
    {"/lib", PLACE_CLOSED | PLACE_HOST},
    {"/lib32", PLACE_CLOSED | PLACE_HOST},
    {"/lib64", PLACE_CLOSED | PLACE_HOST},
    {"/libx32", PLACE_CLOSED | PLACE_HOST},
    {"/tmp", PLACE_WRITABLE},
    {"/home", 0},
    {"/home/agent", PLACE_WRITABLE},
    {"/out", PLACE_WRITABLE},
};

const struct plan_place *plan_places(size_t *ret_n) {
    *ret_n = ELEMENTS(places);
    return places;
}

bool plan_path_below(const char *path, const char *top) {
    size_t n = strlen(top);
    if (n == 1) /* the root */
        return true;
    return strncmp(path, top, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* The place with the longest path that covers `path`, or NULL. */
static const struct plan_place *place_at(const char *path) {
    const struct plan_place *best = NULL;
    for (size_t i = 0; i < ELEMENTS(places); i++)
        if (plan_path_below(path, places[i].path) && (!best || strlen(places[i].path) > strlen(best->path)))
            best = &places[i];
    return best;
}

bool plan_name_is_valid(const char *s) {
    static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static const char more[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t n = strlen(s);
    return n > 0 && n <= PLAN_NAME_MAX && strchr(first, s[0]) && strspn(s, more) == n;
}

bool plan_variable_is_valid(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (s[i] <= ' ' || s[i] > '~' || s[i] == '=')
            return false;
    return n > 0;
}

bool plan_path_is_canonical(const char *path) {
    size_t n = strlen(path);
    if (path[0] != '/' || n > PLAN_PATH_MAX)
        return false;
    if (n == 1)
        return true;
    for (const char *part = path + 1;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

const struct plan_input *plan_input_at(const struct plan *p, const char *path) {
    const struct plan_input *best = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < p->n_inputs; i++) {
        const char *target = p->inputs[i].target;
        if (!plan_path_below(path, target))
            continue;
        size_t n = strlen(target);
        if (!best || n > longest) {
            best = &p->inputs[i];
            longest = n;
        }
    }
    return best;
}

bool plan_path_is_writable(const struct plan *p, const char *path) {
    const struct plan_input *input = plan_input_at(p, path);
    const struct plan_place *place = place_at(path);
    /* Places are mounted first, so an input that stands on or in one hides that part of it. */
    if (input && (!place || strlen(input->target) >= strlen(place->path)))
        return input->kind != PLAN_READ;
    return place && place->flags & PLACE_WRITABLE;
}

bool plan_path_stands(const struct plan *p, const char *path) {
    const struct plan_input *input = plan_input_at(p, path);
    const struct plan_place *place = place_at(path);
    if (input)
        return input->directory;
    if (!strcmp(path, "/") || (place && (place->flags & PLACE_HOST || !strcmp(place->path, path))))
        return true;
    for (size_t i = 0; i < p->n_inputs; i++)
        if (plan_path_below(p->inputs[i].target, path))
            return true;
    return false;
}

static void input_free(struct plan_input *i) {
    free(i->target);
    free(i->source);
    strv_free(i->exclude);
    strv_free(i->only);
}

void plan_free(struct plan *p) {
    if (!p)
        return;
    free(p->task);
    free(p->step);
    free(p->workdir);
    strv_free(p->argv);
    strv_free(p->env);
    for (size_t i = 0; i < p->n_inputs; i++)
        input_free(&p->inputs[i]);
    free(p->inputs);
    for (size_t i = 0; i < p->n_exports; i++) {
        free(p->exports[i].name);
        free(p->exports[i].path);
    }
    free(p->exports);
    *p = (struct plan){0};
}
