/* freeze.c: stops every process of the step, confirms it, and lets it go on.
 *
 * By the freezer of a v2 control group where one can be had: the step's own, or (a hybrid host, where the step is held by
 * v1 groups) one made at the first freeze, since a start must not pay for it. What is frozen there can still be killed, so
 * the step ends with its controller as ever; a v1 freezer would keep the dead alive, and is not used. Else by SIGSTOP:
 * whoever is stopped cannot continue another, so once all are, all stay. The worker's processes may notice that (SIGCONT's
 * handlers, waitpid with WUNTRACED); docs/control.md says so.
 * Documentation/admin-guide/cgroup-v2.rst, "cgroup.freeze".
 * runs in: launcher (untrusted input: none that is parsed beyond numbers) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/launch.h"

enum { CONFIRM_MS = 2000, PAUSE_NS = 1000000, OURS_DEPTH = 1 /* init and the reaper, ours, stand above the worker */ };

static uint64_t until(void) {
    return clock_monotonic_us() + CONFIRM_MS * 1000ULL;
}

static void pause_briefly(void) {
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* --- a v2 group --- */

/* The step's own v2 group, or one made now. -1 where this host gives none. */
static int v2_group(struct launch *l) {
    const char *path = l->group.path[CGROUP_V2];
    if (l->group.dir[CGROUP_V2] >= 0)
        return l->group.dir[CGROUP_V2];
    if (l->freezer < 0 && path && wall_stands(l, PLAN_WALL_CGROUP) && (mkdir(path, 0755) == 0 || errno == EEXIST))
        l->freezer = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return l->freezer;
}

static int write_file(int dir, const char *name, const char *text) {
    _cleanup_fd_ int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static bool says_frozen(int dir) {
    char text[256];
    _cleanup_fd_ int fd = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    return strstr(text, "frozen 1") != NULL;
}

struct move {
    int procs;     /* the group's cgroup.procs */
    char name[96]; /* how the v2 line of /proc/PID/cgroup ends for a member */
    unsigned seen, moved;
};

/* cgroups(7): the v2 line is "0::PATH"; v1 groups of the step have the same last name. */
static bool is_member(const char *groups, const char *name) {
    const char *line = !strncmp(groups, "0::", 3) ? groups : strstr(groups, "\n0::");
    const char *end = line ? strchr(line + 1, '\n') : NULL;
    size_t n = strlen(name);
    return end && (size_t)(end - line) > n && !memcmp(end - n, name, n);
}

/* A zombie belongs to no group any more, and runs nothing. */
static void move_in(void *data, pid_t parent, pid_t pid, int depth) {
    struct move *m = data;
    char text[4096], number[16], state;
    pid_t ppid;
    m->seen++;
    if (tree_read(pid, "cgroup", text, sizeof(text)) > 0 && is_member(text, m->name))
        return;
    if (tree_read(pid, "stat", text, sizeof(text)) <= 0 || !tree_stat(text, &state, &ppid) || state == 'Z')
        return;
    m->moved++;
    snprintf(number, sizeof(number), "%d", (int)pid);
    if (ppid == parent || depth == 0) /* else another has its number now */
        (void)!write(m->procs, number, strlen(number));
}

/* Processes that were cloned into the group are all there; others enter one by one and freeze on their way in, until a
 * walk finds none outside. */
static int gather(struct launch *l, int dir, uint64_t give_up, uint32_t *ret_n) {
    struct move m = {.procs = -1};
    _cleanup_fd_ int procs = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (procs < 0)
        return -errno;
    m.procs = procs;
    snprintf(m.name, sizeof(m.name), "%s", strrchr(l->group.path[CGROUP_V2], '/'));
    do {
        m.seen = m.moved = 0;
        tree_each(l->init, move_in, &m);
        *ret_n = m.seen;
        if (m.moved == 0)
            return 0;
    } while (clock_monotonic_us() < give_up);
    return -ETIMEDOUT;
}

static int freeze_group(struct launch *l, int dir, uint32_t *ret_n) {
    uint64_t give_up = until();
    int r = write_file(dir, "cgroup.freeze", "1");
    if (r < 0 || (r = gather(l, dir, give_up, ret_n)) < 0)
        return r;
    while (!says_frozen(dir)) {
        if (clock_monotonic_us() >= give_up)
            return -ETIMEDOUT;
        pause_briefly();
    }
    return 0;
}

/* --- signals --- */

struct pass {
    int number; /* of the signal to send, 0 to look only */
    unsigned seen, running, waiting;
};

/* Stopped, traced or dead runs nothing. Who sleeps uninterruptibly (a parent in vfork, a disk) has the stop pending and
 * will not come back to its own code. */
static void count_thread(struct pass *p, char state) {
    p->waiting += state == 'D';
    p->running += !strchr("TtZXxD", state);
}

static void look_at_threads(struct pass *p, pid_t pid) {
    char path[64], text[1024], name[280], state;
    pid_t parent;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(name, sizeof(name), "task/%s/stat", e->d_name);
        if (e->d_name[0] != '.' && tree_read(pid, name, text, sizeof(text)) > 0 && tree_stat(text, &state, &parent))
            count_thread(p, state);
    }
    if (dir)
        closedir(dir);
}

/* Held by pidfd and looked up again, so that a number which was recycled in between hits nobody. */
static void signal_child(pid_t parent, pid_t pid, int number) {
    char text[1024], state;
    pid_t now;
    _cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0 && tree_read(pid, "stat", text, sizeof(text)) > 0 && tree_stat(text, &state, &now) && now == parent)
        syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

static void visit_process(void *data, pid_t parent, pid_t pid, int depth) {
    struct pass *p = data;
    if (depth <= OURS_DEPTH)
        return;
    p->seen++;
    if (p->number)
        signal_child(parent, pid, p->number);
    look_at_threads(p, pid);
}

/* Two walks in a row find the same number of processes and nobody running. */
static int stop_all(struct launch *l, uint32_t *ret_n) {
    unsigned before = UINT32_MAX;
    for (uint64_t give_up = until(); clock_monotonic_us() < give_up; pause_briefly()) {
        struct pass p = {.number = SIGSTOP};
        tree_each(l->init, visit_process, &p);
        if (p.running == 0 && p.seen == before) {
            *ret_n = p.seen;
            return 0;
        }
        before = p.running == 0 ? p.seen : UINT32_MAX;
    }
    return -ETIMEDOUT;
}

static void continue_all(struct launch *l) {
    struct pass p = {.number = SIGCONT};
    tree_each(l->init, visit_process, &p);
}

/* --- both --- */

int freeze_step(struct launch *l, struct frozen *ret, struct error *err) {
    uint64_t begun = clock_monotonic_us();
    int dir = v2_group(l), r = -ENOENT;
    *ret = (struct frozen){.by = FROZEN_BY_CGROUP};
    if (dir >= 0)
        r = freeze_group(l, dir, &ret->processes);
    if (r < 0) {
        if (dir >= 0)
            write_file(dir, "cgroup.freeze", "0");
        ret->by = FROZEN_BY_SIGNALS;
        r = stop_all(l, &ret->processes);
    }
    if (r < 0) {
        continue_all(l);
        return error_set(err, r,
                         "the step is not frozen: its processes were not all confirmed stopped within %d ms, and go "
                         "on; try again, or `doorward stop` it",
                         2 * CONFIRM_MS);
    }
    ret->took_us = clock_monotonic_us() - begun;
    return 0;
}

int freeze_undo(struct launch *l, const struct frozen *f, struct error *err) {
    int r = 0;
    if (f->by == FROZEN_BY_CGROUP)
        r = write_file(v2_group(l), "cgroup.freeze", "0");
    else
        continue_all(l);
    return r < 0 ? error_errno(err, r, "cannot thaw the step's control group") : 0;
}
