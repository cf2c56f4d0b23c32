/* confirm.c: asks the kernel, from outside, whether the walls hold.
 *
 * Read after init and the reaper have confined themselves and before the worker exists: what stands in the record is
 * what the kernel says of the reaper, whose confinement the worker inherits, not what our own code meant to do.
 * runs in: launcher (untrusted input: none; holds: doorward's own rights) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/landlock.h"
#include "launch/launch.h"

enum { STATUS_MAX = 8192, LIMITS_MAX = 4096 };

static int read_small(int dirfd, const char *path, char *to, size_t room) {
    _cleanup_fd_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -errno : fd_read_all(fd, to, room - 1);
    to[n > 0 ? n : 0] = 0;
    return n < 0 ? (int)n : 0;
}

enum { NS_USER, NS_MNT, NS_PID, NS_NET, NS_IPC, NS_UTS, NS_N };
static const char *const namespaces[NS_N] = {"ns/user", "ns/mnt", "ns/pid", "ns/net", "ns/ipc", "ns/uts"};

/* What is looked up beforehand, while the sandbox is still being set up and this process would only wait. */
static struct {
    pid_t reaper;
    int proc;         /* /proc/REAPER */
    bool apart[NS_N]; /* it stands in another namespace than we do */
    ino_t ours[NS_N];
    long filters; /* system call filters around ourselves, which the reaper inherits: they are no wall of ours */
} known = {.proc = -1};

/* The reaper as this pid namespace numbers it: init's only child. */
static pid_t reaper_pid(const struct launch *l) {
    char path[64], text[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)l->init, (int)l->init);
    return read_small(AT_FDCWD, path, text, sizeof(text)) < 0 ? 0 : (pid_t)atoi(text);
}

static bool apart(int n) {
    struct stat st;
    return fstatat(known.proc, namespaces[n], &st, 0) == 0 && st.st_ino != known.ours[n];
}

/* The word behind "KEY:\t" in /proc/PID/status: proc(5). */
static const char *status_of(const char *status, const char *key) {
    size_t n = strlen(key);
    for (const char *p = status; *p; p += strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n'))
        if (!strncmp(p, key, n) && p[n] == ':')
            return p + n + 1 + strspn(p + n + 1, "\t ");
    return "";
}

/* How many filters are in force; kernels before 5.9 tell only that there is one. */
static long filters_of(const char *status) {
    const char *count = status_of(status, "Seccomp_filters");
    return *count ? atol(count) : *status_of(status, "Seccomp") == '2';
}

void confirm_prepare(const struct launch *l) {
    char path[64];
    struct stat st;
    _cleanup_fd_ int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    known.reaper = reaper_pid(l);
    snprintf(path, sizeof(path), "/proc/%d", (int)known.reaper);
    known.proc = known.reaper > 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    for (int n = 0; n < NS_N; n++) {
        known.ours[n] = self >= 0 && fstatat(self, namespaces[n], &st, 0) == 0 ? st.st_ino : 0;
        known.apart[n] = n != NS_NET && known.ours[n] && known.proc >= 0 && apart(n);
    }
    char status[STATUS_MAX];
    known.filters = self >= 0 && read_small(self, "status", status, sizeof(status)) == 0 ? filters_of(status) : 0;
}

/* The real, effective, saved and file system id are all the worker's, as this user namespace numbers them. */
static bool has_ids(const char *status, const char *key, unsigned id) {
    unsigned ids[4];
    return sscanf(status_of(status, key), "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) == 4 && ids[0] == id &&
           ids[1] == id && ids[2] == id && ids[3] == id;
}

static bool is_worker(const struct launch *l, const char *status) {
    if (!l->root)
        return has_ids(status, "Uid", geteuid()) && has_ids(status, "Gid", getegid());
    const char *groups = status_of(status, "Groups"); /* none: this is the line's end */
    return has_ids(status, "Uid", l->uid_base + l->id) && has_ids(status, "Gid", l->uid_base + l->id) &&
           *groups == '\n';
}

static bool own_root(void) {
    struct stat ours, its;
    return stat("/", &ours) == 0 && fstatat(known.proc, "root", &its, 0) == 0 &&
           (ours.st_dev != its.st_dev || ours.st_ino != its.st_ino);
}

/* One that has ended shows nothing of what it was. */
static bool ended(void) {
    struct stat st;
    return fstatat(known.proc, "root", &st, 0) < 0 && (errno == ENOENT || errno == ESRCH);
}

static bool no_capabilities(const char *status) {
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    for (size_t i = 0; i < ELEMENTS(sets); i++)
        if (strncmp(status_of(status, sets[i]), "0000000000000000", 16) != 0)
            return false;
    return *status_of(status, "NoNewPrivs") == '1';
}

static bool in_group(const struct launch *l) {
    char text[4096], name[80];
    snprintf(name, sizeof(name), "/doorward-%s-%u", l->run, l->step);
    return read_small(known.proc, "cgroup", text, sizeof(text)) == 0 && strstr(text, name);
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
    if (!word && wall != PLAN_WALL_SECCOMP && wall != PLAN_WALL_LANDLOCK && wall != PLAN_WALL_CGROUP)
        return error_set(err, -EPERM, "wall %s does not hold: %s; without it nothing runs", plan_wall_names[wall], why);
    if (!word)
        return error_set(err, -EPERM, "wall %s does not hold: %s; say `degrade: [%s]` (--degrade %s) to go without it",
                         plan_wall_names[wall], why, plan_wall_names[wall], plan_wall_names[wall]);
    snprintf(l->held.walls[wall], WALL_ROOM, "%s%s", holds || !wall_stands(l, wall) ? "" : "degraded: ", word);
    return 0;
}

int confirm_walls(struct launch *l, struct error *err) {
    char status[STATUS_MAX];
    if (known.proc < 0)
        confirm_prepare(l); /* the reaper's half was not there yet */
    if (known.proc < 0 || read_small(known.proc, "status", status, sizeof(status)) < 0)
        return error_set(err, -ESRCH,
                         "cannot read back from /proc what holds around the worker; doorward-init ended early, "
                         "or this host hides /proc from doorward");
    known.apart[NS_NET] = apart(NS_NET); /* joined last; the others it was born in */
    char limits[LIMITS_MAX];
    int r = read_small(known.proc, "limits", limits, sizeof(limits));
    if (r < 0)
        return error_errno(err, r, "cannot read back from /proc the limits around the worker");
    if ((r = limits_check(l, limits, err)) < 0)
        return r;
    bool group = has_group(l);
    const struct {
        enum plan_wall wall;
        bool holds;
        const char *why;
    } rows[] = {
        {PLAN_WALL_USERNS, known.apart[NS_USER] && is_worker(l, status),
         "the worker shares the host's user namespace or has ids that are not its own"},
        {PLAN_WALL_MOUNTS, known.apart[NS_MNT] && wall_stands(l, PLAN_WALL_MOUNTS) && own_root(),
         "the worker sees the host's mounts"},
        {PLAN_WALL_PIDS, known.apart[NS_PID], "the worker sees the host's processes"},
        {PLAN_WALL_NET, known.apart[NS_NET], "the worker shares the host's network"},
        {PLAN_WALL_IPC, known.apart[NS_IPC] && known.apart[NS_UTS], "the worker shares the host's ipc or host name"},
        {PLAN_WALL_SECCOMP, filters_of(status) > known.filters, "no system call filter of doorward's is in force"},
        {PLAN_WALL_LANDLOCK,
         landlock_abi() > 0 && wall_stands(l, PLAN_WALL_LANDLOCK) && wall_stands(l, PLAN_WALL_MOUNTS),
         "this kernel has no Landlock (it must be built in and named in the lsm= list)"},
        {PLAN_WALL_CAPS, no_capabilities(status), "capabilities or new privileges are left"},
        {PLAN_WALL_FDS, wall_stands(l, PLAN_WALL_FDS), "descriptors are passed on"},
        {PLAN_WALL_ENV, wall_stands(l, PLAN_WALL_ENV), "the environment is passed on"},
        {PLAN_WALL_SESSION, wall_stands(l, PLAN_WALL_SESSION), "the session is shared"},
        {PLAN_WALL_CGROUP, group ? in_group(l) : wall_stands(l, PLAN_WALL_CGROUP),
         "the worker is not in its control group"},
        {PLAN_WALL_REAP, wall_stands(l, PLAN_WALL_REAP), "children may outlive the step"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        r = judge(l, rows[i].wall, rows[i].holds, rows[i].why, err);
        if (r < 0)
            return ended() ? error_set(err, -ECHILD,
                                       "doorward-init ended before the worker could start; install doorward "
                                       "again, as a whole")
                           : r;
    }
    /* Not a wall of its own: what it would hold is refused or degraded limit by limit. */
    if (!group && wall_stands(l, PLAN_WALL_CGROUP))
        snprintf(l->held.walls[PLAN_WALL_CGROUP], WALL_ROOM,
                 "not there: no control group is ours to make on this host; limits are held as listed");
    return 0;
}
