/* doctor.c: walls and limits, tried one by one. See doctor.h. runs in: cli (untrusted input: none) */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "host/host.h"

const char *const doctor_state_names[] = {"held", "degraded", "missing", "untried"};
_Static_assert(ELEMENTS(doctor_state_names) == DOCTOR_STATE_N, "one word per state");

int doctor_open(struct doctor *d, struct error *err) {
    *d = (struct doctor){.place = PLACE_EMPTY, .root = -1, .superuser = geteuid() == 0, .rows = json_array()};
    d->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!d->rows || d->root < 0)
        return error_set(err, -ENOMEM, "doctor: no memory, or no descriptor, is left");
    return place_find(&d->place, err);
}

void doctor_close(struct doctor *d) {
    place_close(&d->place);
    d->root = fd_close(d->root);
    json_decref(d->rows);
    d->rows = NULL;
}

void doctor_row(struct doctor *d, const char *kind, const char *name, enum doctor_state state, const char *by,
                const char *why, const char *remedy) {
    json_t *row = json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:s?}", "kind", kind, "name", name, "state",
                            doctor_state_names[state], "by", by, "why", why, "remedy", remedy);
    d->failed |= json_array_append_new(d->rows, row) < 0;
}

void doctor_failure(struct doctor *d, const char *kind, const char *name, const struct error *err) {
    static const char *const begins[] = {"; type", "; do: ", "; say ", "; "};
    char why[ERROR_MESSAGE_MAX];
    char *at = NULL;
    snprintf(why, sizeof(why), "%s", err->message);
    for (size_t i = 0; !at && i < ELEMENTS(begins); i++)
        at = strstr(why, begins[i]);
    if (at)
        *at = 0;
    doctor_row(d, kind, name, DOCTOR_MISSING, NULL, why, at ? at + 2 : NULL);
}

/* What is tried is the least there is: init's own helper, which says how it is used and ends. */
int doctor_plan(const struct doctor *d, struct plan *ret) {
    struct plan p = {.task = strdup("doctor"), .step = strdup("main"), .workdir = strdup("/tmp")};
    bool failed = strv_add(&p.argv, "/run/doorward/dw") < 0 || strv_add(&p.env, "PATH=/usr/bin:/bin") < 0;
    memcpy(p.limits, plan_limit_defaults, sizeof(p.limits));
    p.limits[PLAN_CPUS] = 500; /* less than any host has, so that it must be held */
    for (size_t i = 0; i < PLAN_LIMIT_N; i++)
        p.degrade_limit[i] = true;
    p.degrade_wall[PLAN_WALL_LANDLOCK] = p.degrade_wall[PLAN_WALL_SECCOMP] = p.degrade_wall[PLAN_WALL_CGROUP] = true;
    memcpy(p.lab_off, d->off, sizeof(p.lab_off));
    if (failed || !p.task || !p.step || !p.workdir) {
        plan_free(&p);
        return -ENOMEM;
    }
    *ret = p;
    return 0;
}

/* What holds each wall where it stands. */
static const char *const holders[PLAN_WALL_N] = {
    [PLAN_WALL_USERNS] = "a user namespace",
    [PLAN_WALL_MOUNTS] = "a root of its own",
    [PLAN_WALL_PIDS] = "a pid namespace with its own /proc",
    [PLAN_WALL_NET] = "a network namespace",
    [PLAN_WALL_IPC] = "ipc and uts namespaces",
    [PLAN_WALL_SECCOMP] = "a system call filter",
    [PLAN_WALL_LANDLOCK] = "a Landlock domain",
    [PLAN_WALL_CAPS] = "empty capability sets and no_new_privs",
    [PLAN_WALL_FDS] = "a closed list of descriptors",
    [PLAN_WALL_ENV] = "a closed list of variables",
    [PLAN_WALL_SESSION] = "a session of its own",
    [PLAN_WALL_CGROUP] = "a control group of its own",
    [PLAN_WALL_REAP] = "the end of the pid namespace",
};

/* The errno with which this kernel refuses a wall that a plan may do without; 0 where that is not known. */
static int code_of(enum plan_wall wall) {
    return wall == PLAN_WALL_LANDLOCK ? host_landlock() : wall == PLAN_WALL_SECCOMP ? -ENOSYS : 0;
}

static void explained(struct doctor *d, const char *kind, const char *name, enum doctor_state state, int code,
                      const char *without) {
    char why[ERROR_MESSAGE_MAX], remedy[ERROR_MESSAGE_MAX];
    const struct host_reason *r = host_explain(d->root, name, code, d->superuser);
    snprintf(why, sizeof(why), "%s", r ? r->what : without);
    snprintf(remedy, sizeof(remedy), "%s%s", r ? r->remedy : "", state == DOCTOR_MISSING ? without : "");
    doctor_row(d, kind, name, state, NULL, why, *remedy ? remedy : NULL);
}

static void wall_row(struct doctor *d, enum plan_wall wall, const char *word) {
    const char *name = plan_wall_names[wall];
    char without[128];
    snprintf(without, sizeof(without), "; or go without it: `degrade: [%s]` (--degrade %s)", name, name);
    if (!strcmp(word, "held"))
        doctor_row(d, "wall", name, DOCTOR_HELD, holders[wall], NULL, NULL);
    else if (wall == PLAN_WALL_CGROUP)
        explained(d, "wall", name, DOCTOR_DEGRADED, 0, word);
    else if (strcmp(word, "off") != 0) /* that one has its row already */
        explained(d, "wall", name, DOCTOR_MISSING, code_of(wall), without);
}

/* Whether a plain start, with the limits that hold by default, is refused without this one. */
static bool refused_without(const char *limit) {
    bool cpus = !strcmp(limit, plan_limit_names[PLAN_CPUS]);
    return !cpus || plan_limit_defaults[PLAN_CPUS] < 1000ULL * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
}

static void limit_row(struct doctor *d, const char *name, const json_t *limit) {
    const char *by = json_string_value(json_object_get(limit, "by"));
    json_t *in_force = json_object_get(limit, "in_force");
    char without[200];
    bool watched = by && !strcmp(by, "watch");
    snprintf(without, sizeof(without), "; or go without it: `degrade: [%s]` (--degrade %s): it is then %s", name, name,
             watched ? "watched ten times a second" : "not limited");
    if (!by || !strcmp(by, "none") || watched) {
        explained(d, "limit", name, refused_without(name) ? DOCTOR_MISSING : DOCTOR_DEGRADED, 0, without);
    } else if (json_is_integer(in_force) &&
               json_integer_value(in_force) < json_integer_value(json_object_get(limit, "asked"))) {
        snprintf(without, sizeof(without), "only %lld are to be had where doorward is started",
                 (long long)json_integer_value(in_force));
        doctor_row(d, "limit", name, DOCTOR_DEGRADED, by, without,
                   "do: raise the hard limit there (ulimit -Hn as root, LimitNOFILE= of a service, or "
                   "/etc/security/limits.conf)");
    } else {
        doctor_row(d, "limit", name, DOCTOR_HELD, by, NULL, NULL);
    }
}

static void untried_rows(struct doctor *d, const char *why) {
    for (size_t i = 0; i < PLAN_WALL_N; i++)
        if (!d->off[i])
            doctor_row(d, "wall", plan_wall_names[i], DOCTOR_UNTRIED, NULL, why, NULL);
    for (size_t i = 0; i < PLAN_LIMIT_N; i++)
        doctor_row(d, "limit", plan_limit_names[i], DOCTOR_UNTRIED, NULL, why, NULL);
}

static void enforced_rows(struct doctor *d, const json_t *enforced) {
    const json_t *walls = json_object_get(enforced, "walls"), *limits = json_object_get(enforced, "limits");
    for (size_t i = 0; i < PLAN_WALL_N; i++) {
        const char *word = json_string_value(json_object_get(walls, plan_wall_names[i]));
        wall_row(d, i, word ? word : "not told");
    }
    for (size_t i = 0; i < PLAN_LIMIT_N; i++)
        limit_row(d, plan_limit_names[i], json_object_get(limits, plan_limit_names[i]));
}

/* The wall that an error names, unless it is missing already; PLAN_WALL_N for none. */
static enum plan_wall named_wall(const struct doctor *d, const struct error *err) {
    char door[32];
    host_door(err->message, door);
    for (size_t i = 0; i < PLAN_WALL_N; i++)
        if (!strcmp(door, plan_wall_names[i]) && !d->off[i])
            return i;
    return PLAN_WALL_N;
}

/* One wall that cannot be had hides those after it: it is left out, and the rest tried again. Without a user namespace an
 * ordinary user can have none of the others. */
int doctor_walls(struct doctor *d, struct error *err) {
    for (;;) {
        _cleanup_plan_ struct plan plan = {0};
        _cleanup_trial_ struct trial trial = {0};
        struct error why = {0};
        if (doctor_plan(d, &plan) < 0)
            return error_set(err, -ENOMEM, "doctor: out of memory");
        int r = trial_run(&d->place, &plan, &trial, &why);
        if (r == 0 && trial.enforced) {
            enforced_rows(d, trial.enforced);
            return 0;
        }
        enum plan_wall wall = named_wall(d, &why);
        doctor_failure(d, wall == PLAN_WALL_N ? "fact" : "wall", wall == PLAN_WALL_N ? "start" : plan_wall_names[wall],
                       &why);
        if (wall < PLAN_WALL_N)
            d->off[wall] = true;
        if (wall == PLAN_WALL_N || (wall == PLAN_WALL_USERNS && !d->superuser)) {
            untried_rows(d, "nothing can be tried until what is missing above is there");
            return 0;
        }
    }
}
