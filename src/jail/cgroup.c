/* cgroup.c: see cgroup.h. runs in: launcher */
#include "jail/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/buf.h"
#include "base/fd.h"

enum { TEXT_MAX = 1 << 20, CPU_PERIOD_US = 100000 };

static const char *const v1_controllers[CGROUP_N] = {
    [CGROUP_V1_MEMORY] = "memory",
    [CGROUP_V1_PIDS] = "pids",
    [CGROUP_V1_CPU] = "cpu",
};

static const struct cgroup nothing = {.dir = {-1, -1, -1, -1}};

/* True when the comma list holds the word. */
static bool lists(const char *list, size_t n, const char *word) {
    size_t w = strlen(word);
    for (const char *p = list, *end = list + n; p < end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t len = comma ? (size_t)(comma - p) : (size_t)(end - p);
        if (len == w && !memcmp(p, word, w))
            return true;
        p += len + 1;
    }
    return false;
}

/* Path of this process in the hierarchy with `controller` (NULL: v2), from lines "ID:CONTROLLERS:PATH". cgroups(7). */
static const char *own_path(const char *text, const char *controller, size_t *ret_n) {
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        const char *a = memchr(p, ':', n);
        const char *b = a ? memchr(a + 1, ':', n - (size_t)(a + 1 - p)) : NULL;
        if (b && (controller ? lists(a + 1, (size_t)(b - a - 1), controller) : b == a + 1)) {
            *ret_n = n - (size_t)(b + 1 - p);
            return b + 1;
        }
        p += n + (p[n] == '\n');
    }
    return NULL;
}

struct mount_line {
    char root[4096], point[4096], type[32], options[1024];
};

/* One line of /proc/self/mountinfo: proc(5). False for a line that is none, or with escapes, where we never stand. */
static bool parse_mount(const char *line, size_t n, struct mount_line *m) {
    char copy[8192];
    if (n >= sizeof(copy) || !memmem(line, n, " - cgroup", 9)) /* most lines are about something else */
        return false;
    memcpy(copy, line, n);
    copy[n] = 0;
    char *dash = strstr(copy, " - ");
    return dash && sscanf(copy, "%*s %*s %*s %4095s %4095s", m->root, m->point) == 2 &&
           sscanf(dash, " - %31s %*s %1023s", m->type, m->options) == 2 && !strchr(m->point, '\\');
}

/* Where the group `path` of a hierarchy is seen in the file system, or NULL. */
static char *seen_at(const char *mountinfo, const char *controller, const char *path, size_t n_path) {
    struct mount_line m;
    for (const char *p = mountinfo; *p;) {
        size_t n = strcspn(p, "\n");
        bool fits = parse_mount(p, n, &m) && !strcmp(m.type, controller ? "cgroup" : "cgroup2") &&
                    (!controller || lists(m.options, strlen(m.options), controller));
        size_t root = fits && strcmp(m.root, "/") ? strlen(m.root) : 0;
        if (fits && n_path >= root && !memcmp(path, m.root, root) &&
            (root == 0 || n_path == root || path[root] == '/')) {
            char *at;
            int tail = (int)(n_path - root);
            const char *rest = path + root;
            if (tail == 1 && *rest == '/')
                tail = 0;
            return asprintf(&at, "%s%.*s", m.point, tail, rest) < 0 ? NULL : at;
        }
        p += n + (p[n] == '\n');
    }
    return NULL;
}

int cgroup_find(const char *cgroup_text, const char *mountinfo, const char *name, struct cgroup *ret) {
    *ret = nothing;
    for (int k = 0; k < CGROUP_N; k++) {
        size_t n;
        const char *own = own_path(cgroup_text, v1_controllers[k], &n);
        _cleanup_free_ char *parent = own ? seen_at(mountinfo, v1_controllers[k], own, n) : NULL;
        if (parent && asprintf(&ret->path[k], "%s/%s", parent, name) < 0)
            return -ENOMEM;
    }
    return 0;
}

int cgroup_name(struct cgroup *g, const char *name) {
    for (int k = 0; k < CGROUP_N; k++) {
        char *whole;
        if (!g->path[k])
            continue;
        if (asprintf(&whole, "%s%s", g->path[k], name) < 0)
            return -ENOMEM;
        free(g->path[k]);
        g->path[k] = whole;
    }
    return 0;
}

static int read_text(int dirfd, const char *name, char *to, size_t room) {
    _cleanup_fd_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = fd_read_all(fd, to, room - 1);
    to[n > 0 ? n : 0] = 0;
    return n < 0 ? (int)n : 0;
}

static int write_text(int dirfd, const char *name, const char *text) {
    _cleanup_fd_ int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return fd_write_all(fd, text, strlen(text));
}

/* Lets the parent hand memory, pids and cpu down, where it can; afterwards: does it? cgroup-v2, "Enabling and
 * Disabling". */
static bool parent_controls(const char *path) {
    _cleanup_free_ char *parent = strdup(path);
    char text[512];
    if (!parent)
        return false;
    *strrchr(parent, '/') = 0;
    _cleanup_fd_ int dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || read_text(dir, "cgroup.controllers", text, sizeof(text)) < 0 || !strstr(text, "memory"))
        return false;
    write_text(dir, "cgroup.subtree_control", "+memory +pids");
    write_text(dir, "cgroup.subtree_control", "+cpu");
    return read_text(dir, "cgroup.subtree_control", text, sizeof(text)) == 0 && strstr(text, "memory") &&
           strstr(text, "pids");
}

/* The usual place of a hierarchy, when this process's own group is seen there and it is what it seems: spares a host
 * with the usual layout the reading of its mount table at every start. */
static bool at_usual_place(const char *groups, int kind, const char *name, char **ret) {
    size_t n;
    struct statfs fs;
    const char *own = own_path(groups, v1_controllers[kind], &n);
    _cleanup_free_ char *parent = NULL;
    bool v2 = kind == CGROUP_V2;
    if (!own)
        return false;
    if (n == 1) /* "/" */
        n = 0;
    if (asprintf(&parent, "/sys/fs/cgroup/%s%.*s", v2 ? "unified" : v1_controllers[kind], (int)n, own) < 0 ||
        statfs(parent, &fs) < 0 || fs.f_type != (v2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))
        return false;
    return asprintf(ret, "%s/%s", parent, name) >= 0;
}

/* v1 as most hosts that have it lay it out; a v2 tree beside it (hybrid) serves to freeze, when that is asked for. */
static bool find_usual(const char *groups, const char *name, struct cgroup *ret) {
    for (int k = 0; k < CGROUP_V2; k++) {
        if (at_usual_place(groups, k, name, &ret->path[k]))
            continue;
        cgroup_free(ret);
        return false;
    }
    at_usual_place(groups, CGROUP_V2, name, &ret->path[CGROUP_V2]);
    return true;
}

int cgroup_find_here(const char *name, struct cgroup *ret, struct error *err) {
    _cleanup_free_ char *groups = NULL, *mounts = NULL;
    _cleanup_fd_ int a = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    *ret = nothing;
    if (a < 0)
        return error_errno(err, -errno, "cannot read where doorward's control group is");
    int r = fd_read_file(a, TEXT_MAX, &groups, NULL, err);
    if (r == 0 && find_usual(groups, name, ret))
        return 0;
    _cleanup_fd_ int b = r < 0 ? -1 : open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (r == 0)
        r = b < 0 ? error_errno(err, -errno, "cannot read where control groups are mounted")
                  : fd_read_file(b, TEXT_MAX, &mounts, NULL, err);
    if (r == 0 && cgroup_find(groups, mounts, name, ret) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    return r;
}

int cgroup_make(struct cgroup *g, enum cgroup_kind kind) {
    if (!g->path[kind])
        return -ENOENT;
    if (kind == CGROUP_V2)
        g->v2_controls = parent_controls(g->path[kind]);
    if (mkdir(g->path[kind], 0755) < 0)
        return -errno;
    g->dir[kind] = open(g->path[kind], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return g->dir[kind] < 0 ? -errno : 0;
}

static int read_figure(int dirfd, const char *name, uint64_t *ret) {
    char text[64];
    int r = dirfd < 0 ? -ENOENT : read_text(dirfd, name, text, sizeof(text));
    if (r < 0)
        return r;
    char *end;
    *ret = strtoull(text, &end, 10);
    return end == text ? -ERANGE : 0;
}

static int write_figure(int dirfd, const char *name, uint64_t v) {
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    return dirfd < 0 ? -ENOENT : write_text(dirfd, name, text);
}

/* The folder and the file that carry a limit: v2 where it has the controllers, else v1. */
static int folder_of(const struct cgroup *g, enum cgroup_kind v1) {
    return g->v2_controls ? g->dir[CGROUP_V2] : g->dir[v1];
}

int cgroup_limit_memory(struct cgroup *g, uint64_t bytes, uint64_t *ret) {
    int dir = folder_of(g, CGROUP_V1_MEMORY);
    const char *file = g->v2_controls ? "memory.max" : "memory.limit_in_bytes";
    int r = write_figure(dir, file, bytes);
    if (r < 0)
        return r;
    /* No swap: on v1 the sum of memory and swap gets the same cap, and must be set after it. A kernel without swap
     * accounting has no such file, and then nothing to swap to by this group's choice but swappiness. */
    int swap = g->v2_controls ? write_figure(dir, "memory.swap.max", 0)
                              : write_figure(dir, "memory.memsw.limit_in_bytes", bytes);
    if (swap < 0 && swap != -ENOENT)
        return swap;
    if (!g->v2_controls)
        write_figure(dir, "memory.swappiness", 0);
    return read_figure(dir, file, ret);
}

int cgroup_limit_processes(struct cgroup *g, uint64_t processes, uint64_t *ret) {
    int dir = folder_of(g, CGROUP_V1_PIDS);
    int r = write_figure(dir, "pids.max", processes);
    return r < 0 ? r : read_figure(dir, "pids.max", ret);
}

int cgroup_limit_cpus(struct cgroup *g, uint64_t cpus, uint64_t *ret) {
    int dir = folder_of(g, CGROUP_V1_CPU);
    uint64_t quota = cpus * CPU_PERIOD_US / 1000, got = 0;
    char text[64];
    snprintf(text, sizeof(text), "%llu %d", (unsigned long long)quota, CPU_PERIOD_US);
    int r = g->v2_controls ? write_text(dir, "cpu.max", text) : write_figure(dir, "cpu.cfs_period_us", CPU_PERIOD_US);
    if (r == 0 && !g->v2_controls)
        r = write_figure(dir, "cpu.cfs_quota_us", quota);
    if (r == 0)
        r = read_figure(dir, g->v2_controls ? "cpu.max" : "cpu.cfs_quota_us", &got);
    *ret = got * 1000 / CPU_PERIOD_US;
    return r;
}

int cgroup_entries(const struct cgroup *g, int ret_fds[CGROUP_N]) {
    int n = 0;
    for (int k = 0; k < CGROUP_N; k++) {
        if (k == CGROUP_V2 || g->dir[k] < 0)
            continue;
        int fd = openat(g->dir[k], "tasks", O_WRONLY | O_CLOEXEC);
        if (fd < 0) {
            int code = -errno;
            while (n)
                fd_close(ret_fds[--n]);
            return code;
        }
        ret_fds[n++] = fd;
    }
    return n;
}

/* The figure behind `key` in a file of "KEY FIGURE" lines. */
static uint64_t keyed(int dirfd, const char *name, const char *key) {
    char text[2048];
    size_t n = strlen(key);
    if (dirfd < 0 || read_text(dirfd, name, text, sizeof(text)) < 0)
        return UINT64_MAX;
    for (char *p = text; *p; p += strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n'))
        if (!strncmp(p, key, n) && p[n] == ' ')
            return strtoull(p + n, NULL, 10);
    return UINT64_MAX;
}

static uint64_t plain(int dirfd, const char *name) {
    uint64_t v;
    return read_figure(dirfd, name, &v) < 0 ? UINT64_MAX : v;
}

void cgroup_figures(const struct cgroup *g, struct cgroup_figures *f) {
    int memory = folder_of(g, CGROUP_V1_MEMORY), pids = folder_of(g, CGROUP_V1_PIDS);
    f->oom_kills = keyed(memory, g->v2_controls ? "memory.events" : "memory.oom_control", "oom_kill");
    f->memory_peak = plain(memory, g->v2_controls ? "memory.peak" : "memory.max_usage_in_bytes");
    f->process_denials = keyed(pids, "pids.events", "max");
    f->processes_peak = plain(pids, "pids.peak");
    /* cpu.stat of a v2 group carries usage even where the tree has no controller. */
    f->cpu_us = keyed(g->dir[CGROUP_V2], "cpu.stat", "usage_usec");
}

void cgroup_figures_now(const struct cgroup *g, struct cgroup_figures *f) {
    cgroup_figures(g, f);
    f->memory_peak = plain(folder_of(g, CGROUP_V1_MEMORY), g->v2_controls ? "memory.current" : "memory.usage_in_bytes");
    f->processes_peak = plain(folder_of(g, CGROUP_V1_PIDS), "pids.current");
}

/* Ends the members of a v1 folder. Each is held by pidfd first and looked up again, so that a number which was recycled
 * in between hits nobody. */
static int kill_members(int dir, const char *name) {
    char text[16384], path[64], group[4096];
    int n = 0, r = read_text(dir, "cgroup.procs", text, sizeof(text));
    if (r < 0)
        return r;
    for (char *p = text, *end; (void)(end = p), *p; p = end + (*end == '\n')) {
        long pid = strtol(p, &end, 10);
        if (end == p || pid <= 0)
            break;
        _cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
        snprintf(path, sizeof(path), "/proc/%ld/cgroup", pid);
        if (pidfd >= 0 && read_text(AT_FDCWD, path, group, sizeof(group)) == 0 && strstr(group, name))
            syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        n++;
    }
    return n;
}

int cgroup_clean(const char *path) {
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name + 1, "doorward-", 9) || strstr(path, "/../"))
        return -EINVAL;
    for (int tries = 0; tries < 400; tries++) {
        if (rmdir(path) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY)
            return -errno;
        _cleanup_fd_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0 && write_text(dir, "cgroup.kill", "1") < 0)
            kill_members(dir, name + 1);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return -EBUSY;
}

int cgroup_remove(struct cgroup *g) {
    int first = 0;
    for (int k = 0; k < CGROUP_N; k++) {
        if (g->dir[k] < 0)
            continue;
        g->dir[k] = fd_close(g->dir[k]);
        int r = cgroup_clean(g->path[k]);
        if (r < 0 && first == 0)
            first = r;
    }
    return first;
}

void cgroup_free(struct cgroup *g) {
    for (int k = 0; k < CGROUP_N; k++) {
        fd_close(g->dir[k]);
        free(g->path[k]);
    }
    *g = nothing;
}
