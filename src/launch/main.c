/* main.c: doorward-launch, one process per step.
 *
 * Reads as the order in which things are given up: starts with its socket on 3 and nothing else, begins a sandbox,
 * receives the plan, prepares and hands over what it decides, watches, and ends after the sandbox. If its controller dies, the kernel ends it (and with it
 * the sandbox) at once.
 * runs in: launcher (untrusted input: the plan, init's messages; holds: doorward's own rights until the worker starts)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/host.h"
#include "jail/confine.h"
#include "jail/ns.h"
#include "launch/launch.h"

static int begin(void) {
    struct stat st;
    if (fstat(LAUNCH_CHANNEL, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        fprintf(stderr, "doorward-launch: started by `doorward run`, not by hand\n");
        return -ENOTSOCK;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    /* Mounts are descriptors here, and a caller's soft limit was not set with them in mind. The worker gets its own. */
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    umask(022);
    /* The controller decides when a step ends; the worker's mask is emptied before its exec. Dispositions are the default here,
     * since whoever starts a launcher sets them back. */
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    return 0;
}

static int fail(struct launch *l, struct error *err) {
    wire_begin(&l->m, LAUNCH_FAILED);
    wire_put_u32(&l->m, (uint32_t)-err->code);
    wire_put_text(&l->m, err->message);
    wire_send(LAUNCH_CHANNEL, &l->m);
    return 1;
}

static int read_plan(struct launch *l, int fd, struct error *err) {
    char *bytes = NULL;
    size_t n;
    int r = fd_read_file(fd, PLAN_ENCODED_MAX, &bytes, &n, err);
    _cleanup_free_ char *owned = bytes;
    if (r == 0)
        r = plan_unpack(owned, n, &l->plan, err);
    return r < 0 ? r : plan_check(&l->plan, err);
}

static int receive_begin(struct launch *l, struct error *err) {
    l->uid_base = wire_get_u32(&l->m);
    if (wire_end(&l->m) < 0 || (l->root && l->uid_base == 0))
        return error_set(err, -EPROTO, "BEGIN is malformed, or gives root no range of ids");
    return 0;
}

static int receive_start(struct launch *l, struct error *err) {
    int got = wire_receive(LAUNCH_CHANNEL, &l->m);
    if (got != 1 || l->m.type != LAUNCH_START)
        return error_set(err, got == 0 ? -EPIPE : -EPROTO, "the controller did not say START");
    wire_get_text(&l->m, l->run, sizeof(l->run));
    l->step = wire_get_u32(&l->m);
    l->plan_fd = wire_take_fd(&l->m);
    for (int i = 0; i < 3; i++)
        l->std[i] = wire_take_fd(&l->m);
    if (wire_end(&l->m) < 0 || !ulid_is_valid(l->run))
        return error_set(err, -EPROTO, "START is malformed");
    int r = read_plan(l, l->plan_fd, err);
    if (r < 0)
        return error_wrap(err, "plan");
    l->id = l->plan.user == PLAN_USER_ROOT ? 0 : LAUNCH_AGENT;
    return 0;
}

/* A sandbox can be begun before the plan unless it must be cloned into a control group that is not on record yet (v2
 * alone; a v1 group is entered later). */
static bool can_begin_early(const struct launch *l) {
    const char *v2 = l->group.path[CGROUP_V2];
    if (!v2 || l->group.path[CGROUP_V1_MEMORY])
        return true;
    _cleanup_free_ char *parent = strndup(v2, (size_t)(strrchr(v2, '/') - v2));
    return parent && access(parent, W_OK) < 0;
}

/* One that was begun early has become the agent already, and stands for no plan of the lab's. */
static bool fits(const struct launch *l) {
    for (unsigned w = 0; w < PLAN_WALL_N; w++)
        if (l->plan.lab_off[w])
            return false;
    return l->plan.user == PLAN_USER_AGENT;
}

/* Names the control groups before they are made, and waits until that is on record. */
static int place(struct launch *l, struct error *err) {
    uint32_t n = 0;
    wire_begin(&l->m, LAUNCH_PLACED);
    wire_put_u32(&l->m, 0);
    for (int k = 0; k < CGROUP_N; k++) {
        if (!l->group.path[k] || !wall_stands(l, PLAN_WALL_CGROUP))
            continue;
        wire_put_text(&l->m, l->group.path[k]);
        n++;
    }
    memcpy(l->m.body, &n, sizeof(n));
    int r = wire_send(LAUNCH_CHANNEL, &l->m);
    return r < 0 ? error_errno(err, r, "controller") : 0;
}

static int await_create(struct launch *l, struct error *err) {
    int got = wire_receive(LAUNCH_CHANNEL, &l->m);
    return got == 1 && l->m.type == LAUNCH_CREATE && wire_end(&l->m) == 0
               ? 0
               : error_set(err, got == 0 ? -EPIPE : -EPROTO, "the controller did not say CREATE");
}

/* The descriptors that stay open across a start's own: everything else that was inherited goes. */
static int sweep(const struct launch *l, struct error *err) {
    int keep[] = {l->pidfd, l->inner, l->build, l->plan_fd, l->std[0], l->std[1], l->std[2]};
    if (!wall_stands(l, PLAN_WALL_FDS))
        return 0;
    for (size_t i = 1; i < ELEMENTS(keep); i++) /* ascending, as fd_close_from wants them; seven numbers */
        for (size_t k = i; k > 0 && keep[k] < keep[k - 1]; k--) {
            int t = keep[k];
            keep[k] = keep[k - 1];
            keep[k - 1] = t;
        }
    int r = fd_close_from(LAUNCH_CHANNEL + 1, keep, ELEMENTS(keep));
    return r < 0 ? error_errno(err, r, "cannot close inherited descriptors (close_range and /proc are both missing)")
                 : 0;
}

static int make_groups(struct launch *l, struct error *err) {
    int r = await_create(l, err);
    return r < 0 ? r : limits_make(l, err);
}

static int begin_sandbox(struct launch *l, struct error *err) {
    int r = sandbox_clone(l, err);
    return r < 0 ? r : sandbox_map(l, err);
}

static int make_sandbox(struct launch *l, struct error *err) {
    int r;
    if (l->pidfd >= 0 && !fits(l))
        sandbox_discard(l);
    if (wall_stands(l, PLAN_WALL_SESSION))
        setsid(); /* the terminal's signals are the controller's to forward; already a leader is no error */
    bool into_group = l->pidfd < 0 && !can_begin_early(l); /* else it enters its groups while the root is built */
    if ((r = sweep(l, err)) < 0 || (r = launch_find_program(l, err)) < 0)
        return r;
    if (l->pidfd < 0 && !into_group && (r = begin_sandbox(l, err)) < 0)
        return r;
    if ((r = place(l, err)) < 0 || (r = launch_prepare(l, err)) < 0)
        return r;
    if (into_group && ((r = make_groups(l, err)) < 0 || (r = begin_sandbox(l, err)) < 0))
        return r;
    if ((r = sandbox_build(l, err)) < 0 || (!into_group && (r = make_groups(l, err)) < 0))
        return r;
    return sandbox_enter_groups(l, err);
}

/* A sandbox is begun before it is known what for, while the controller still starts, unless a host with control groups v2
 * alone wants it cloned into one; then it waits for the plan. */
static int begin_early(struct launch *l, struct error *err) {
    struct pollfd channel = {LAUNCH_CHANNEL, POLLIN, 0};
    bool v2_alone = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    if (poll(&channel, 1, 0) != 0 || v2_alone)
        return 0;
    int r = sandbox_clone(l, err);
    if (r == 0 && !l->root) /* an ordinary user's one id is known; root's come with BEGIN */
        r = sandbox_map(l, err);
    return r;
}

static int run_step(struct launch *l, struct error *err) {
    int r = receive_begin(l, err);
    if (r < 0 || (l->pidfd >= 0 && l->root && (r = sandbox_map(l, err)) < 0))
        return r;
    if (l->pidfd >= 0 && !can_begin_early(l))
        sandbox_discard(l);
    if ((r = receive_start(l, err)) < 0)
        return r;
    char name[64];
    snprintf(name, sizeof(name), "doorward-%s-%u", l->run, l->step);
    if ((r = cgroup_name(&l->group, name)) < 0)
        return error_errno(err, r, "control groups");
    if ((r = make_sandbox(l, err)) < 0)
        return r;
    confirm_prepare(l);
    return watch_run(l, err);
}

static void gather_figures(struct launch *l) {
    struct cgroup_figures f;
    cgroup_figures(&l->group, &f);
    l->end.oom_kills = f.oom_kills;
    l->end.process_denials = f.process_denials;
    l->end.processes_peak = f.processes_peak;
    if (f.memory_peak != UINT64_MAX)
        l->end.memory_peak = f.memory_peak;
    if (f.cpu_us != UINT64_MAX)
        l->end.cpu_us = f.cpu_us;
    space_figures(l->space, &l->end);
}

/* What the host's owner can do about it, in the words of `doorward doctor`, and where a policy may do without the wall, that. */
static void add_remedy(const struct launch *l, struct error *err) {
    static const enum plan_wall optional[] = {PLAN_WALL_LANDLOCK, PLAN_WALL_SECCOMP};
    char door[32];
    if (strchr(err->message, ';'))
        return;
    host_add_remedy(err, l->root);
    host_door(err->message, door);
    for (size_t i = 0; i < ELEMENTS(optional); i++) {
        const char *name = plan_wall_names[optional[i]];
        size_t n = strlen(err->message);
        if (!strcmp(door, name))
            snprintf(err->message + n, sizeof(err->message) - n,
                     "; or say `degrade: [%s]` (--degrade %s) to go without it", name, name);
    }
}

/* Whatever happened: the step's processes go, then its groups, and only then is anything called ended. */
static int finish(struct launch *l, int result, struct error *err) {
    struct error late = {0};
    int r = l->pidfd >= 0 ? watch_end(l, &late) : 0;
    gather_figures(l);
    denied_flush(l);
    int groups = cgroup_remove(&l->group);
    if (l->freezer >= 0) {
        l->freezer = fd_close(l->freezer);
        int r2 = cgroup_clean(l->group.path[CGROUP_V2]);
        groups = groups < 0 ? groups : r2;
    }
    if (r == 0 && groups < 0)
        r = error_errno(&late, groups, "the step's control groups cannot be removed");
    if (result < 0 && !l->running) {
        sandbox_explain(l, err);
        add_remedy(l, err);
        return fail(l, err);
    }
    if (result < 0 || r < 0) {
        l->end.reason = LAUNCH_BY_ERROR;
        snprintf(l->end.detail, sizeof(l->end.detail), "%.500s", result < 0 ? err->message : late.message);
    }
    wire_begin(&l->m, LAUNCH_ENDED);
    launch_put_end(&l->m, &l->end);
    return wire_send(LAUNCH_CHANNEL, &l->m) < 0;
}

/* CLEAN: ends and removes control groups that a dead run left. */
static int clean(struct launch *l, struct error *err) {
    uint32_t n = wire_get_u32(&l->m);
    char path[4096];
    int first = 0;
    for (uint32_t i = 0; i < n && !l->m.broken; i++) {
        wire_get_text(&l->m, path, sizeof(path));
        int r = l->m.broken ? -EPROTO : cgroup_clean(path);
        if (r < 0 && first == 0)
            first = error_errno(err, r, "cannot remove what a dead run left: %s", path);
    }
    if (wire_end(&l->m) < 0)
        first = error_set(err, -EPROTO, "CLEAN is malformed");
    if (first < 0)
        return fail(l, err);
    wire_begin(&l->m, LAUNCH_ENDED);
    launch_put_end(&l->m, &l->end);
    return wire_send(LAUNCH_CHANNEL, &l->m) < 0;
}

int main(void) {
    static struct launch l;
    struct error err = {0};
    if (begin() < 0)
        return 125;
    l = (struct launch){.std = {-1, -1, -1},
                        .plan_fd = -1,
                        .program = -1,
                        .program_tree = -1,
                        .space = -1,
                        .space_inside = -1,
                        .devices = -1,
                        .pidfd = -1,
                        .inner = -1,
                        .build = -1,
                        .listener = -1,
                        .loopback = -1,
                        .freezer = -1};
    l.group = (struct cgroup){.dir = {-1, -1, -1, -1}};
    l.end = (struct launch_end){.memory_peak = UINT64_MAX};
    l.root = geteuid() == 0;
    l.core = confine_core_value();
    l.id = LAUNCH_AGENT;
    int early = begin_early(&l, &err);
    if (early == 0)
        early = cgroup_find_here("", &l.group, &err);
    int got = wire_receive(LAUNCH_CHANNEL, &l.m);
    if (got == 1 && l.m.type == LAUNCH_CLEAN) {
        sandbox_discard(&l);
        return clean(&l, &err);
    }
    if (got != 1 || l.m.type != LAUNCH_BEGIN)
        return 1;
    if (early < 0)
        return finish(&l, early, &err);
    return finish(&l, run_step(&l, &err), &err);
}
