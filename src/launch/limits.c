/* limits.c: what holds each limit on this host, asked and in force.
 *
 * A limit is held by a control group where this host lets us have one, else by what the kernel offers a process
 * (rlimit, the size of a file system); where nothing holds it the start is refused, unless the policy says `degrade`.
 * runs in: launcher */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "host/host.h"
#include "jail/confine.h"
#include "launch/launch.h"

void launch_note(struct launch *l, const char *format, ...) {
    va_list args;
    if (l->held.n_notes == NOTES_MAX)
        return;
    va_start(args, format);
    vsnprintf(l->held.notes[l->held.n_notes++], NOTE_ROOM, format, args);
    va_end(args);
}

static void enforce(struct launch *l, enum plan_limit limit, const char *by, uint64_t in_force) {
    l->held.limits[limit].by = by;
    l->held.limits[limit].in_force = in_force;
}

static void print_limit(const struct launch *l, enum plan_limit limit, struct buf *out) {
    uint64_t in_force = l->held.limits[limit].in_force;
    buf_printf(out, "\"%s\":{\"asked\":%llu,\"by\":\"%s\",\"in_force\":", plan_limit_names[limit],
               (unsigned long long)l->plan.limits[limit], l->held.limits[limit].by);
    if (in_force == UINT64_MAX)
        buf_puts(out, "null}");
    else
        buf_printf(out, "%llu}", (unsigned long long)in_force);
}

int held_print(const struct launch *l, struct buf *out) {
    const char *comma = "";
    buf_printf(out, "{\"ids\":{\"inside\":%u,\"outside\":%u},\"limits\":{", l->id,
               l->root ? l->uid_base + l->id : (unsigned)geteuid());
    for (size_t i = 0; i < PLAN_LIMIT_N; i++) {
        if (!l->held.limits[i].by)
            continue;
        buf_puts(out, comma);
        print_limit(l, i, out);
        comma = ",";
    }
    buf_puts(out, "},\"notes\":[");
    for (unsigned i = 0; i < l->held.n_notes; i++) {
        buf_puts(out, i ? "," : "");
        str_put_json(out, l->held.notes[i]);
    }
    buf_puts(out, "],\"walls\":{");
    for (size_t i = 0; i < PLAN_WALL_N; i++) {
        buf_printf(out, "%s\"%s\":", i ? "," : "", plan_wall_names[i]);
        str_put_json(out, l->held.walls[i]);
    }
    return buf_puts(out, "}}");
}

static const char *group_name(const struct launch *l) {
    return l->group.v2_controls ? "cgroup-v2" : "cgroup-v1";
}

/* Why there is no group to hold a limit: the first that could not be made; 0 when all could, -ENOENT when there is none to make. */
static int no_group;

/* A missing folder is told later, by the limit that would have needed it. */
static void make_group(struct launch *l, enum cgroup_kind kind) {
    int r = cgroup_make(&l->group, kind);
    if (r < 0 && no_group == 0)
        no_group = r;
}

static void make_groups(struct launch *l) {
    if (!wall_stands(l, PLAN_WALL_CGROUP))
        return;
    if (!l->group.path[CGROUP_V1_MEMORY]) {
        make_group(l, CGROUP_V2);
        return;
    }
    /* Hybrid: the v2 tree has no controllers then, and entering it would cost more than all of v1. */
    make_group(l, CGROUP_V1_MEMORY);
    make_group(l, CGROUP_V1_PIDS);
    if (l->plan.limits[PLAN_CPUS] < 1000ULL * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN))
        make_group(l, CGROUP_V1_CPU);
}

static int refuse(const struct launch *l, enum plan_limit limit, const char *what, int code, struct error *err) {
    _cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct host_reason *why = host_explain(root, plan_limit_names[limit], code, l->root);
    return error_set(err, code,
                     "limits.%s: nothing on this host can hold it for this user (control group: %s): %s; %s; or say "
                     "`degrade: [%s]` (--degrade %s) to go without: %s",
                     plan_limit_names[limit],
                     no_group == -ENOENT ? "there is none" : strerror(no_group ? -no_group : -code),
                     why ? why->what : "it was refused", why ? why->remedy : "do: see doorward doctor",
                     plan_limit_names[limit], plan_limit_names[limit], what);
}

static int hold_memory(struct launch *l, struct error *err) {
    uint64_t got;
    int r = cgroup_limit_memory(&l->group, l->plan.limits[PLAN_MEMORY], &got);
    if (r == 0) {
        enforce(l, PLAN_MEMORY, group_name(l), got);
        return 0;
    }
    if (!l->plan.degrade_limit[PLAN_MEMORY])
        return refuse(l, PLAN_MEMORY, "it is then watched ten times a second and the step ended when it is passed", r,
                      err);
    enforce(l, PLAN_MEMORY, "watch", l->plan.limits[PLAN_MEMORY]);
    launch_note(l, "memory is watched ten times a second, not held by the kernel: a fast allocation can pass the cap "
                   "for a moment, and memory that is shared or held by descriptors is not seen");
    return 0;
}

/* Without a control group RLIMIT_NPROC holds: set inside the new user namespace it counts that namespace alone. */
static int hold_processes(struct launch *l, struct error *err) {
    uint64_t asked = l->plan.limits[PLAN_PROCESSES], got;
    int r = cgroup_limit_processes(&l->group, asked + LIMITS_OUR_PROCESSES, &got);
    if (r == 0)
        enforce(l, PLAN_PROCESSES, group_name(l), got - LIMITS_OUR_PROCESSES);
    else if (wall_stands(l, PLAN_WALL_USERNS))
        enforce(l, PLAN_PROCESSES, "rlimit", asked);
    else
        return refuse(l, PLAN_PROCESSES, "it is then not limited", r, err);
    return 0;
}

static int hold_cpus(struct launch *l, struct error *err) {
    uint64_t online = 1000ULL * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), got;
    if (l->plan.limits[PLAN_CPUS] >= online) {
        enforce(l, PLAN_CPUS, "host", online);
        return 0;
    }
    int r = cgroup_limit_cpus(&l->group, l->plan.limits[PLAN_CPUS], &got);
    if (r == 0) {
        enforce(l, PLAN_CPUS, group_name(l), got);
        return 0;
    }
    if (!l->plan.degrade_limit[PLAN_CPUS])
        return refuse(l, PLAN_CPUS, "the step may then use every processor", r, err);
    enforce(l, PLAN_CPUS, "none", UINT64_MAX);
    return 0;
}

/* What the worker gets of its open files: a hard limit that doorward itself stands under is never raised. */
static uint64_t open_files(const struct launch *l) {
    struct rlimit own;
    uint64_t asked = l->plan.limits[PLAN_OPEN_FILES];
    return getrlimit(RLIMIT_NOFILE, &own) == 0 && own.rlim_max < asked ? own.rlim_max : asked;
}

int limits_make(struct launch *l, struct error *err) {
    int r = 0;
    make_groups(l);
    enforce(l, PLAN_WALL, "timer", l->plan.limits[PLAN_WALL]);
    if (!l->plan.lab_limit_off[PLAN_MEMORY])
        r = hold_memory(l, err);
    if (r == 0 && !l->plan.lab_limit_off[PLAN_PROCESSES])
        r = hold_processes(l, err);
    if (r == 0 && !l->plan.lab_limit_off[PLAN_CPUS])
        r = hold_cpus(l, err);
    enforce(l, PLAN_DISK, "tmpfs", l->plan.limits[PLAN_DISK]);
    enforce(l, PLAN_FILES, "tmpfs", l->plan.limits[PLAN_FILES]);
    enforce(l, PLAN_OUTPUT, "count", l->plan.limits[PLAN_OUTPUT]);
    enforce(l, PLAN_OPEN_FILES, "rlimit", open_files(l));
    if (r == 0 && l->plan.limits[PLAN_DISK] > l->plan.limits[PLAN_MEMORY] / 2)
        launch_note(l, "disk is held in memory here: what the step writes counts against limits.memory too");
    return r;
}

bool limits_by_rlimit(const struct launch *l, enum plan_limit limit) {
    const char *by = l->held.limits[limit].by;
    return by && !strcmp(by, "rlimit");
}

/* What a process carries: the resource, its line in /proc/PID/limits (proc(5)), and what stands in the policy. */
static const struct {
    int resource;
    const char *line, *name;
} carried[LIMITS_CARRIED] = {
    {RLIMIT_CORE, "Max core file size", "core dumps"},
    {RLIMIT_NOFILE, "Max open files", "limits.open-files"},
    {RLIMIT_NPROC, "Max processes", "limits.processes"},
    {RLIMIT_NICE, "Max nice priority", "priority"},
    {RLIMIT_RTPRIO, "Max realtime priority", "real-time priority"},
};

/* Their values, UINT64_MAX where it is not for an rlimit to hold; in the order of `carried`. */
static void carried_values(const struct launch *l, uint64_t ret[LIMITS_CARRIED]) {
    const struct plan *p = &l->plan;
    bool processes = limits_by_rlimit(l, PLAN_PROCESSES) && !p->lab_limit_off[PLAN_PROCESSES];
    const uint64_t values[] = {
        l->core,
        p->lab_limit_off[PLAN_OPEN_FILES] ? UINT64_MAX : open_files(l),
        processes ? p->limits[PLAN_PROCESSES] + LIMITS_OUR_PROCESSES : UINT64_MAX,
        0,
        0,
    };
    memcpy(ret, values, sizeof(values));
}

int limits_carry(const struct launch *l, struct error *err) {
    uint64_t values[LIMITS_CARRIED];
    carried_values(l, values);
    for (size_t i = 0; i < LIMITS_CARRIED; i++) {
        int r = values[i] == UINT64_MAX ? 0 : confine_limit(carried[i].resource, values[i]);
        if (r < 0)
            return error_errno(err, r, "%s cannot be limited to %llu", carried[i].name, (unsigned long long)values[i]);
    }
    return 0;
}

int limits_check(const struct launch *l, const char *text, struct error *err) {
    uint64_t values[LIMITS_CARRIED];
    carried_values(l, values);
    for (size_t i = 0; i < LIMITS_CARRIED; i++) {
        unsigned long long soft, hard;
        const char *line = strstr(text, carried[i].line);
        if (values[i] == UINT64_MAX)
            continue;
        if (!line || sscanf(line + strlen(carried[i].line), "%llu %llu", &soft, &hard) != 2 || soft != values[i] ||
            hard != values[i])
            return error_set(err, -EPERM, "%s: the kernel does not hold the worker to %llu, although it was told to",
                             carried[i].name, (unsigned long long)values[i]);
    }
    return 0;
}
