/* confirm.c: asks the kernel, from outside, whether the walls hold.
 *
 * Read after init and the reaper have confined themselves and before the worker exists: what stands in the record is
 * what the kernel says of the reaper, whose confinement the worker inherits, not what our own code meant to do.
 * runs in: launcher (untrusted input: none; holds: doorward's own rights) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/landlock.h"
#include "launch/launch.h"

enum { STATUS_MAX = 8192 };

static int read_small(const char *path, char *to, size_t room) {
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -errno : fd_read_all(fd, to, room - 1);
    to[n > 0 ? n : 0] = 0;
    return n < 0 ? (int)n : 0;
}

/* The reaper as this pid namespace numbers it: init's only child. */
static pid_t reaper_pid(const struct launch *l) {
    char path[64], text[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)l->init, (int)l->init);
    return read_small(path, text, sizeof(text)) < 0 ? 0 : (pid_t)atoi(text);
}

/* The word behind "KEY:\t" in /proc/PID/status: proc(5). */
static const char *status_of(const char *status, const char *key) {
    size_t n = strlen(key);
    for (const char *p = status; *p; p += strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n'))
        if (!strncmp(p, key, n) && p[n] == ':')
            return p + n + 1 + strspn(p + n + 1, "\t ");
    return "";
}

/* True when the process stands in another namespace of this type than we do. */
static bool own_namespace(pid_t pid, const char *type) {
    char path[64], ours[64];
    struct stat a, b;
    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, type);
    snprintf(ours, sizeof(ours), "/proc/self/ns/%s", type);
    return stat(path, &a) == 0 && stat(ours, &b) == 0 && a.st_ino != b.st_ino;
}

static bool no_capabilities(const char *status) {
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    for (size_t i = 0; i < ELEMENTS(sets); i++)
        if (strncmp(status_of(status, sets[i]), "0000000000000000", 16) != 0)
            return false;
    return *status_of(status, "NoNewPrivs") == '1';
}

static bool in_group(const struct launch *l, pid_t pid) {
    char path[64], text[4096], name[80];
    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    snprintf(name, sizeof(name), "/doorward-%s-%u", l->run, l->step);
    return read_small(path, text, sizeof(text)) == 0 && strstr(text, name);
}

static bool has_group(const struct launch *l) {
    for (int k = 0; k < CGROUP_N; k++)
        if (l->group.dir[k] >= 0)
            return true;
    return false;
}

/* One wall: held, off (the lab asked), degraded (the policy allows it), or the start is refused. */
static int judge(struct launch *l, enum plan_wall wall, bool holds, const char *why, struct error *err) {
    const char *word = holds ? "held" : !wall_stands(l, wall) ? "off" : l->plan.degrade_wall[wall] ? why : NULL;
    if (!word)
        return error_set(err, -EPERM, "wall %s does not hold: %s; say `degrade: [%s]` (--degrade %s) to go without it",
                         plan_wall_names[wall], why, plan_wall_names[wall], plan_wall_names[wall]);
    snprintf(l->held.walls[wall], WALL_ROOM, "%s%s", holds || !wall_stands(l, wall) ? "" : "degraded: ", word);
    return 0;
}

int confirm_walls(struct launch *l, struct error *err) {
    char path[64], status[STATUS_MAX];
    pid_t pid = reaper_pid(l);
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (pid <= 0 || read_small(path, status, sizeof(status)) < 0)
        return error_set(err, -ESRCH, "cannot read back what holds around the worker: %s", path);
    bool group = has_group(l);
    const struct {
        enum plan_wall wall;
        bool holds;
        const char *why;
    } rows[] = {
        {PLAN_WALL_USERNS, own_namespace(pid, "user"), "the worker shares the host's user namespace"},
        {PLAN_WALL_MOUNTS, own_namespace(pid, "mnt") && wall_stands(l, PLAN_WALL_MOUNTS),
         "the worker sees the host's mounts"},
        {PLAN_WALL_PIDS, own_namespace(pid, "pid"), "the worker sees the host's processes"},
        {PLAN_WALL_NET, own_namespace(pid, "net"), "the worker shares the host's network"},
        {PLAN_WALL_IPC, own_namespace(pid, "ipc") && own_namespace(pid, "uts"),
         "the worker shares the host's ipc or host name"},
        {PLAN_WALL_SECCOMP, *status_of(status, "Seccomp") == '2', "no system call filter is in force"},
        {PLAN_WALL_LANDLOCK,
         landlock_abi() > 0 && wall_stands(l, PLAN_WALL_LANDLOCK) && wall_stands(l, PLAN_WALL_MOUNTS),
         "this kernel has no Landlock (it must be built in and named in the lsm= list)"},
        {PLAN_WALL_CAPS, no_capabilities(status), "capabilities or new privileges are left"},
        {PLAN_WALL_FDS, wall_stands(l, PLAN_WALL_FDS), "descriptors are passed on"},
        {PLAN_WALL_ENV, wall_stands(l, PLAN_WALL_ENV), "the environment is passed on"},
        {PLAN_WALL_SESSION, wall_stands(l, PLAN_WALL_SESSION), "the session is shared"},
        {PLAN_WALL_CGROUP, group ? in_group(l, pid) : wall_stands(l, PLAN_WALL_CGROUP),
         "the worker is not in its control group"},
        {PLAN_WALL_REAP, wall_stands(l, PLAN_WALL_REAP), "children may outlive the step"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        int r = judge(l, rows[i].wall, rows[i].holds, rows[i].why, err);
        if (r < 0)
            return r;
    }
    /* Not a wall of its own: what it would hold is refused or degraded limit by limit. */
    if (!group && wall_stands(l, PLAN_WALL_CGROUP))
        snprintf(l->held.walls[PLAN_WALL_CGROUP], WALL_ROOM,
                 "not there: no control group is ours to make on this host; limits are held as listed");
    return 0;
}
