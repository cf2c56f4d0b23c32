/* sandbox.c: clones the set-up child and hands it what the plan decided.
 *
 * The child can be begun before there is a plan: with every wall, since a plan (but the lab's) takes none away. Where it turns
 * out not to fit, it is thrown away and cloned again; nothing has run in it and nothing is on record of it.
 * runs in: launcher (untrusted input: none; holds: doorward's own rights) */
#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/ns.h"
#include "launch/launch.h"

static uint64_t namespaces(const struct launch *l) {
    static const struct {
        enum plan_wall wall;
        uint64_t flags;
    } rows[] = {
        {PLAN_WALL_USERNS, CLONE_NEWUSER},
        {PLAN_WALL_PIDS, CLONE_NEWPID},
        {PLAN_WALL_IPC, CLONE_NEWIPC | CLONE_NEWUTS},
    };
    uint64_t flags = CLONE_NEWNS; /* also without a root of its own, so that nothing it mounts is seen outside */
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        if (wall_stands(l, rows[i].wall))
            flags |= rows[i].flags;
    return flags;
}

int sandbox_lacks_ids(const struct launch *l, int code, struct error *err) {
    return error_set(
        err, code,
        "wall userns: doorward is root of a user namespace (a container) that lacks the ids of this run, %u to "
        "%u: map them, or run doorward there as another user",
        l->uid_base, l->uid_base + LAUNCH_ID_RANGE - 1);
}

static int write_maps(const struct launch *l, struct error *err) {
    struct ns_maps maps = {.n_uid = 1, .n_gid = 1};
    maps.uid[0] =
        l->root ? (struct ns_extent){0, l->uid_base, LAUNCH_ID_RANGE} : (struct ns_extent){l->id, geteuid(), 1};
    maps.gid[0] =
        l->root ? (struct ns_extent){0, l->uid_base, LAUNCH_ID_RANGE} : (struct ns_extent){l->id, getegid(), 1};
    int r = wall_stands(l, PLAN_WALL_USERNS) ? ns_write_maps(l->init, &maps, !l->root, err) : 0;
    return r == -EPERM && l->root ? sandbox_lacks_ids(l, r, err) : r;
}

/* A half that is gone has said why on its own channel, and may still be read: the watch reads it and tells, so that the
 * reason is not lost to whoever wrote to it last. */
static int sent(int r, struct error *err) {
    return r < 0 && r != -EPIPE ? error_errno(err, r, "cannot speak to the sandbox's first processes") : 0;
}

static void close_pair(int pair[2]) {
    pair[0] = fd_close(pair[0]);
    pair[1] = fd_close(pair[1]);
}

int sandbox_clone(struct launch *l, struct error *err) {
    int inner[2], build[2];
    int r = wire_pair(inner);
    if (r == 0 && (r = wire_pair(build)) < 0)
        close_pair(inner);
    if (r < 0)
        return error_errno(err, r, "cannot make the sandbox's channels");
    pid_t pid = ns_clone(namespaces(l), l->group.dir[CGROUP_V2], &l->pidfd);
    if (pid == 0) {
        fd_close(inner[0]);
        fd_close(build[0]);
        fd_close(LAUNCH_CHANNEL); /* or the controller would not see this launcher's end */
        setup_run(l, inner[1], build[1]);
    }
    fd_close(inner[1]);
    fd_close(build[1]);
    l->inner = inner[0];
    l->build = build[0];
    if (pid < 0) {
        l->inner = fd_close(l->inner);
        l->build = fd_close(l->build);
        return error_errno(err, pid, "wall userns: cannot make the sandbox's namespaces");
    }
    l->init = pid;
    return 0;
}

int sandbox_map(struct launch *l, struct error *err) {
    int r = write_maps(l, err);
    if (r == 0) { /* one that is gone is found when it is handed the rest */
        send(l->inner, "", 1, MSG_NOSIGNAL);
        send(l->build, "", 1, MSG_NOSIGNAL);
    }
    return r;
}

void sandbox_explain(struct launch *l, struct error *err) {
    const int channels[] = {l->build, l->inner};
    for (size_t i = 0; i < ELEMENTS(channels); i++) {
        struct pollfd wait = {channels[i], POLLIN, 0};
        while (channels[i] >= 0 && poll(&wait, 1, 0) > 0 && wire_receive(channels[i], &l->m) > 0) {
            char text[ERROR_MESSAGE_MAX];
            bool why = l->m.type == INNER_FAILED;
            int code = -(int)wire_get_u32(&l->m);
            wire_get_text(&l->m, text, sizeof(text));
            if (!why)
                wire_drop(&l->m);
            else if (wire_end(&l->m) == 0 && code < 0) {
                error_set(err, code, "%s", text);
                return;
            }
        }
    }
}

void sandbox_discard(struct launch *l) {
    if (l->pidfd < 0)
        return;
    ns_kill(l->pidfd, l->init);
    waitpid(l->init, NULL, 0);
    l->pidfd = fd_close(l->pidfd);
    l->inner = fd_close(l->inner);
    l->build = fd_close(l->build);
    l->init = 0;
}

static int put_groups(struct launch *l, struct error *err) {
    int fds[CGROUP_N];
    int n = cgroup_entries(&l->group, fds);
    if (n < 0)
        return error_errno(err, n, "cannot open the step's control groups");
    for (int i = 0; i < n; i++)
        wire_put_fd(&l->m, fds[i]);
    return n;
}

/* Sends and closes the last `n` descriptors of the message, which were opened for it. */
static int send_groups(struct launch *l, int channel, int n, struct error *err) {
    int r = wire_send(channel, &l->m);
    for (int i = 0; i < n; i++)
        fd_close(l->m.fds[l->m.n_fds - 1 - (unsigned)i]);
    return sent(r, err);
}

static int hand_groups(struct launch *l, int channel, struct error *err) {
    wire_begin(&l->m, INNER_GROUPS);
    wire_put_u32(&l->m, setup_walls(l));
    wire_put_u32(&l->m, l->id);
    wire_put_u32(&l->m, limits_by_rlimit(l, PLAN_PROCESSES));
    int n = put_groups(l, err);
    return n < 0 ? n : send_groups(l, channel, n, err);
}

static int hand_build(struct launch *l, struct error *err) {
    const int optional[] = {l->space_inside >= 0 ? l->space_inside : l->space, l->devices, l->program_tree};
    uint32_t there = 0;
    wire_begin(&l->m, INNER_BUILD);
    for (size_t i = 0; i < ELEMENTS(optional); i++)
        there |= (uint32_t)(optional[i] >= 0) << i;
    wire_put_u32(&l->m, there);
    wire_put_u32(&l->m, setup_walls(l));
    wire_put_u32(&l->m, l->id);
    wire_put_fd(&l->m, l->plan_fd);
    for (int i = 0; i < 3; i++)
        wire_put_fd(&l->m, l->std[i]);
    wire_put_fd(&l->m, l->program);
    for (size_t i = 0; i < ELEMENTS(optional); i++)
        if (optional[i] >= 0)
            wire_put_fd(&l->m, optional[i]);
    return sent(wire_send(l->build, &l->m), err);
}

/* The mounts that host root made, as many in a message as it takes. */
static int hand_trees(struct launch *l, struct error *err) {
    int r = 0;
    for (size_t i = 0; r == 0 && l->root && i < l->plan.n_inputs;) {
        size_t n = l->plan.n_inputs - i < WIRE_FDS_MAX ? l->plan.n_inputs - i : WIRE_FDS_MAX;
        wire_begin(&l->m, INNER_TREES);
        wire_put_u32(&l->m, (uint32_t)n);
        for (size_t k = 0; k < n; k++) {
            wire_put_u32(&l->m, (uint32_t)(i + k));
            wire_put_fd(&l->m, l->trees[i + k]);
        }
        r = wire_send(l->build, &l->m);
        for (size_t k = 0; k < n; k++, i++)
            l->trees[i] = fd_close(l->trees[i]);
    }
    return sent(r, err);
}

int sandbox_enter_groups(struct launch *l, struct error *err) {
    int r = hand_groups(l, l->build, err);
    return r < 0 ? r : hand_groups(l, l->inner, err);
}

int sandbox_build(struct launch *l, struct error *err) {
    int r = hand_build(l, err);
    if (r == 0)
        r = hand_trees(l, err);
    l->space_inside = fd_close(l->space_inside);
    for (int i = 0; i < 3; i++)
        l->std[i] = fd_close(l->std[i]); /* the worker's: only it may hold them open */
    return r;
}
