/* probe_processes.c: probes of other processes, of namespaces and of what a process carries.
 *
 * The stage runs a victim outside: the secret stands in its environment, its memory and behind its descriptor 5.
 * Inside, the victim's number must name nothing. Where it names something and only permission is in the way, the
 * wall is already gone, so that counts as open.
 * runs in: probe, inside and outside */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "lab/probe.h"

static pid_t victim(const struct call *c) {
    return (pid_t)fact_number(c, "victim");
}

/* True when the victim's number names a process of the host here. */
static bool nameable(const struct call *c, const char **ret_how) {
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", victim(c));
    ssize_t n = slurp(path, line, sizeof(line));
    for (ssize_t i = 0; i < n - 1; i++)
        line[i] = line[i] ? line[i] : ' ';
    if (n > 0 && fact(c, "nonce") && strstr(line, fact(c, "nonce"))) {
        *ret_how = "its /proc entry is there";
        return true;
    }
    /* Small numbers mean processes of the sandbox's own; the stage sees to it that the victim's is not small. */
    if (kill(victim(c), 0) == 0 || errno == EPERM) {
        *ret_how = "its number names a process";
        return true;
    }
    return false;
}

static enum lab_result unless_nameable(struct call *c, int err, const char *what) {
    const char *how = "";
    if (c->control)
        return held(c, err, "%s does not work here", what);
    if (nameable(c, &how))
        return is_open(c, err, "%s is stopped by permission only: %s", what, how);
    return held(c, err, "%s: the process has no name here", what);
}

static enum lab_result proc_visible(struct call *c) {
    DIR *d = opendir("/proc");
    if (!d)
        return held(c, errno, "no /proc");
    int n = 0;
    const char *how = "";
    for (struct dirent *e; (e = readdir(d));) {
        char path[300], line[1024];
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        n++;
        snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        ssize_t len = slurp(path, line, sizeof(line));
        /* The probe's own line has the nonce too, behind "run"; the victim's begins with its role. */
        if (len > 0 && memmem(line, (size_t)len, "\0victim\0", 8) &&
            memmem(line, (size_t)len, fact(c, "nonce"), strlen(fact(c, "nonce")))) {
            closedir(d);
            return is_open(c, 0, "/proc lists the victim and %d processes in all", n);
        }
    }
    closedir(d);
    return nameable(c, &how) ? is_open(c, 0, "%s", how) : held(c, 0, "/proc lists %d processes, all its own", n);
}

/* Looks for the secret in `file` of every process that is listed, the threads' copies included. */
static enum lab_result search_proc(struct call *c, const char *file) {
    static char bytes[1 << 18];
    DIR *d = opendir("/proc");
    int n = 0, last = ENOENT;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[600];
        long pid = strtol(e->d_name, NULL, 10);
        if (pid <= 0 || pid == getpid())
            continue;
        const char *const forms[] = {"/proc/%s/%s", "/proc/%s/task/%s/%s"};
        for (size_t i = 0; i < ELEMENTS(forms); i++) {
            if (i == 0)
                snprintf(path, sizeof(path), "/proc/%s/%s", e->d_name, file);
            else
                snprintf(path, sizeof(path), "/proc/%s/task/%s/%s", e->d_name, e->d_name, file);
            ssize_t len = slurp(path, bytes, sizeof(bytes));
            n += len >= 0;
            last = len < 0 ? (int)-len : last;
            if (len > 0 && has_secret(c, bytes, (size_t)len)) {
                closedir(d);
                return is_open(c, 0, "the secret stands in %s", path);
            }
        }
    }
    if (d)
        closedir(d);
    c->err = last;
    snprintf(c->detail, sizeof(c->detail), "%d files of others read, no secret", n);
    return LAB_HELD;
}

static enum lab_result proc_environ(struct call *c) {
    enum lab_result r = search_proc(c, "environ");
    if (r == LAB_OPEN || c->control)
        return r;
    if (search_proc(c, "cmdline") == LAB_OPEN)
        return LAB_OPEN;
    return unless_nameable(c, c->err, "reading another's environment");
}

/* Memory of the victim at the address that it told. */
static bool read_memory(const struct call *c, int fd) {
    char bytes[PROBE_SECRET];
    ssize_t n = pread(fd, bytes, sizeof(bytes), (off_t)fact_number(c, "address"));
    return n > 0 && has_secret(c, bytes, (size_t)n);
}

static enum lab_result proc_mem(struct call *c) {
    const pid_t who[] = {victim(c), 1, getppid()};
    int last = 0;
    for (size_t i = 0; i < ELEMENTS(who); i++) {
        char path[64];
        if (who[i] <= 0 || (c->control && i))
            continue;
        snprintf(path, sizeof(path), "/proc/%d/mem", who[i]);
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        last = fd < 0 ? errno : 0;
        if (fd >= 0 && (i || read_memory(c, fd)))
            return is_open(c, 0, "%s can be read", path);
    }
    return unless_nameable(c, last, "opening another's memory");
}

static enum lab_result proc_links(struct call *c, const char *const *names) {
    const pid_t who[] = {victim(c), 1, getppid()};
    int last = 0;
    for (size_t i = 0; i < ELEMENTS(who) * 3; i++) {
        char path[64];
        pid_t pid = who[i / 3];
        if (!names[i % 3] || pid <= 0 || (c->control && i / 3))
            continue;
        snprintf(path, sizeof(path), "/proc/%d/%s", pid, names[i % 3]);
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
            return is_open(c, 0, "%s can be entered", path);
        last = errno;
    }
    return unless_nameable(c, last, "entering another's folders or descriptors");
}

static enum lab_result proc_root(struct call *c) {
    static const char *const names[3] = {"root", "cwd"};
    return proc_links(c, names);
}

static enum lab_result proc_fd(struct call *c) {
    static const char *const names[3] = {"fd", "fd/5", "map_files"};
    return proc_links(c, names);
}

static int trace(void *pid) {
    pid_t p = *(pid_t *)pid;
    if (ptrace(PTRACE_SEIZE, p, NULL, NULL) < 0)
        return errno;
    return 0; /* the tracer's end detaches it */
}

static enum lab_result ptrace_stranger(struct call *c) {
    pid_t p = victim(c);
    int r = in_child(trace, &p);
    return r == 0 ? is_open(c, 0, "traced") : unless_nameable(c, r < 256 ? r : 0, "ptrace");
}

static enum lab_result ptrace_init(struct call *c) {
    pid_t who[] = {c->control ? victim(c) : 1, c->control ? 0 : getppid()};
    int r = ESRCH;
    for (size_t i = 0; i < ELEMENTS(who); i++) {
        if (who[i] <= 0)
            continue;
        r = in_child(trace, &who[i]);
        if (r == 0)
            return is_open(c, 0, "process %d was traced", who[i]);
    }
    return unless_nameable(c, r < 256 ? r : 0, "ptrace of process 1");
}

static enum lab_result vm_readv(struct call *c) {
    char bytes[PROBE_SECRET];
    struct iovec to = {bytes, sizeof(bytes)}, from = {(void *)(uintptr_t)fact_number(c, "address"), sizeof(bytes)};
    ssize_t n = process_vm_readv(victim(c), &to, 1, &from, 1, 0);
    int err = errno;
    if (n > 0 && has_secret(c, bytes, (size_t)n))
        return is_open(c, 0, "the secret was read from its memory");
    return unless_nameable(c, err, "process_vm_readv");
}

/* A descriptor of process 1, which speaks with whatever is outside. */
static bool robs_init(const struct call *c) {
    _cleanup_fd_ int pidfd = c->control ? -1 : (int)syscall(SYS_pidfd_open, 1, 0);
    for (int n = 0; pidfd >= 0 && n < 16; n++) {
        _cleanup_fd_ int fd = (int)syscall(SYS_pidfd_getfd, pidfd, n, 0);
        if (fd >= 0)
            return true;
    }
    return false;
}

static enum lab_result pidfd_getfd_probe(struct call *c) {
    if (robs_init(c))
        return is_open(c, 0, "took a descriptor of process 1");
    _cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, victim(c), 0);
    if (pidfd < 0)
        return unless_nameable(c, errno, "pidfd_open");
    char bytes[256];
    _cleanup_fd_ int fd = (int)syscall(SYS_pidfd_getfd, pidfd, 5, 0);
    int err = errno;
    if (fd >= 0 && pread(fd, bytes, sizeof(bytes), 0) > 0)
        return is_open(c, 0, "took its descriptor 5");
    return unless_nameable(c, err, "pidfd_getfd");
}

static enum lab_result signal_stranger(struct call *c) {
    if (kill(victim(c), SIGCONT) == 0)
        return is_open(c, 0, "signalled");
    return unless_nameable(c, errno, "kill");
}

/* Sets limits to what they are: the permission is what is asked. Returns the call that succeeded, or NULL. */
static const char *limit_process(pid_t pid, int *err) {
    struct rlimit l;
    cpu_set_t cpus;
    if (prlimit(pid, RLIMIT_NOFILE, NULL, &l) == 0 && prlimit(pid, RLIMIT_NOFILE, &l, NULL) == 0)
        return "prlimit";
    *err = errno;
    if (setpriority(PRIO_PROCESS, (id_t)pid, 0) == 0)
        return "setpriority";
    if (sched_getaffinity(pid, sizeof(cpus), &cpus) == 0 && sched_setaffinity(pid, sizeof(cpus), &cpus) == 0)
        return "sched_setaffinity";
    return NULL;
}

static enum lab_result limit_stranger(struct call *c) {
    int err = 0;
    const char *how = limit_process(victim(c), &err);
    return how ? is_open(c, 0, "%s succeeded", how)
               : unless_nameable(c, err, "prlimit, setpriority, sched_setaffinity");
}

static enum lab_result attack_init(struct call *c) {
    char ns[64] = "";
    ssize_t n = readlink("/proc/self/ns/pid", ns, sizeof(ns) - 1);
    bool shared = n <= 0 || (fact(c, "ns_pid") && !strcmp(ns, fact(c, "ns_pid")));
    int err = 0;
    if (c->control || shared) /* process 1 is the host's own: leave it alone, the victim stands for it */
        return limit_process(victim(c), &err) ? is_open(c, 0, "the victim's limits were set")
                                              : unless_nameable(c, err, "limits of a process outside");
    static const int signals[] = {SIGTERM, SIGSTOP, SIGUSR1, SIGINT, SIGHUP, SIGQUIT, SIGKILL};
    for (size_t i = 0; i < ELEMENTS(signals); i++)
        kill(1, signals[i]);
    struct rlimit few = {3, 3};
    if (prlimit(1, RLIMIT_NOFILE, &few, NULL) == 0)
        return is_open(c, 0, "the limits of process 1 were set");
    setpriority(PRIO_PROCESS, 1, 19);
    sched_setscheduler(1, SCHED_IDLE, &(struct sched_param){0});
    const char *how = "";
    if (nameable(c, &how))
        return is_open(c, 0, "%s", how);
    return held(c, 0, "attacked process 1; the harness judges how the step ends");
}

static enum lab_result own_namespace(struct call *c, const char *kind) {
    char path[64], ns[64] = "", key[16];
    snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    snprintf(key, sizeof(key), "ns_%s", kind);
    if (readlink(path, ns, sizeof(ns) - 1) <= 0)
        return held(c, errno, "%s cannot be read", path);
    const char *host = fact(c, key);
    if (!host)
        return broken(c, 0, "the host's %s was not told", key);
    return strcmp(ns, host) ? held(c, 0, "%s, the host's is another", ns) : is_open(c, 0, "%s is the host's", ns);
}

#define NAMESPACE(kind)                                                                                                \
    static enum lab_result ns_##kind(struct call *c) {                                                                 \
        return own_namespace(c, #kind);                                                                                \
    }
NAMESPACE(user)
NAMESPACE(mnt)
NAMESPACE(pid)
NAMESPACE(net)
NAMESPACE(ipc)
NAMESPACE(cgroup)
NAMESPACE(uts)

static enum lab_result privileges(struct call *c) {
    static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
    char status[4096];
    if (slurp("/proc/self/status", status, sizeof(status)) <= 0)
        return broken(c, errno, "no /proc/self/status");
    for (size_t i = 0; i < ELEMENTS(sets); i++) {
        char *at = strstr(status, sets[i]);
        if (!at || strtoull(at + strlen(sets[i]), NULL, 16))
            return is_open(c, 0, "%s is not empty", sets[i]);
    }
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return is_open(c, 0, "no_new_privs is not set");
    return held(c, 0, "no capability, no_new_privs");
}

static enum lab_result sysv_memory(struct call *c) {
    int id = shmget((key_t)fact_number(c, "shm"), 0, 0);
    if (id < 0)
        return held(c, errno, "no segment under the key");
    char *at = shmat(id, NULL, SHM_RDONLY);
    bool found = at != (char *)-1 && has_secret(c, at, PROBE_SECRET);
    return found ? is_open(c, 0, "the secret was read from the segment") : held(c, errno, "the segment holds nothing");
}

static enum lab_result posix_queue(struct call *c) {
    mqd_t q = mq_open(fact(c, "mq") ? fact(c, "mq") : "/-", O_RDONLY | O_NONBLOCK);
    if (q == (mqd_t)-1)
        return errno == ENOSYS && c->control ? absent(c, errno, "no message queues in this kernel")
                                             : held(c, errno, "no queue of that name");
    struct mq_attr a;
    bool found = mq_getattr(q, &a) == 0 && a.mq_curmsgs > 0;
    mq_close(q);
    return found ? is_open(c, 0, "the queue of the host is there") : held(c, 0, "the queue is empty");
}

static enum lab_result posix_memory(struct call *c) {
    char bytes[256];
    ssize_t n = slurp(fact(c, "psm") ? fact(c, "psm") : "/-", bytes, sizeof(bytes));
    if (n > 0 && has_secret(c, bytes, (size_t)n))
        return is_open(c, 0, "the secret was read from /dev/shm");
    return held(c, n < 0 ? (int)-n : 0, "the host's segment is not there");
}

static enum lab_result environment(struct call *c) {
    int n = 0;
    for (char **e = environ; *e; e++, n++)
        if (has_secret(c, *e, strlen(*e)))
            return is_open(c, 0, "%.*s was passed on", (int)strcspn(*e, "="), *e);
    return held(c, 0, "%d variables, none of the controller's", n);
}

/* What the three numbers that the harness leaves open lead to. */
static enum lab_result use_descriptors(struct call *c) {
    char bytes[256], line[128];
    ssize_t n = pread(9, bytes, sizeof(bytes), 0);
    if (n > 0 && has_secret(c, bytes, (size_t)n))
        return is_open(c, 0, "descriptor 9 reads the canary");
    snprintf(line, sizeof(line), "%s descriptors\n", fact(c, "nonce"));
    if (write(20, line, strlen(line)) > 0)
        return is_open(c, 0, "descriptor 20 writes to the host's socket");
    if (openat(1500, "secret", O_RDONLY | O_CLOEXEC) >= 0)
        return is_open(c, 0, "descriptor 1500 leads into a folder of the host");
    return LAB_HELD;
}

static enum lab_result descriptors(struct call *c) {
    if (use_descriptors(c) == LAB_OPEN)
        return LAB_OPEN;
    int found = -1;
    for (int fd = 3; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            found = fd;
    if (found >= 0)
        return is_open(c, 0, "descriptor %d is open", found);
    return held(c, EBADF, "only 0, 1 and 2");
}

const struct probe probes_processes[] = {{"proc-visible", proc_visible},
                                         {"proc-environ", proc_environ},
                                         {"proc-mem", proc_mem},
                                         {"proc-root", proc_root},
                                         {"proc-fd", proc_fd},
                                         {"ptrace-stranger", ptrace_stranger},
                                         {"ptrace-init", ptrace_init},
                                         {"vm-readv", vm_readv},
                                         {"pidfd-getfd", pidfd_getfd_probe},
                                         {"signal-stranger", signal_stranger},
                                         {"limit-stranger", limit_stranger},
                                         {"attack-init", attack_init},
                                         {"ns-user", ns_user},
                                         {"ns-mnt", ns_mnt},
                                         {"ns-pid", ns_pid},
                                         {"ns-net", ns_net},
                                         {"ns-ipc", ns_ipc},
                                         {"ns-cgroup", ns_cgroup},
                                         {"ns-uts", ns_uts},
                                         {"privileges", privileges},
                                         {"sysv-memory", sysv_memory},
                                         {"posix-queue", posix_queue},
                                         {"posix-memory", posix_memory},
                                         {"environment", environment},
                                         {"descriptors", descriptors},
                                         {0}};
