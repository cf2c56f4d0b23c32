/* helper.c: see helper.h. runs in: controller, and for a moment the helper before it executes */
#include "control/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/linux_compat.h"
#include "control/place.h"
#include "wire/wire.h"

enum {
    CHANNEL = 3,      /* the helper's end, by contract */
    STACK = 64 << 10, /* of the child between clone and exec: a dozen calls, one path */
    PATIENCE_MS = 10000,
};

struct start {
    char paths[3][PATH_MAX]; /* where the helper may be, in this order */
    int channel, null;
    pid_t parent;
    bool pass;  /* leave what is not close-on-exec open */
    int failed; /* errno of the child, written through the shared memory */
};

static int find_paths(const char *name, struct start *s) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return n < 0 ? -errno : -ENOENT;
    self[n] = 0;
    char *slash = strrchr(self, '/');
    if (!slash)
        return -ENOENT;
    *slash = 0;
    const char *formats[] = {"%s/%s", "%s/../libexec/doorward/%s"};
    for (int i = 0; i < 2; i++) {
        int length = snprintf(s->paths[i], PATH_MAX, formats[i], self, name);
        if (length < 0 || length >= PATH_MAX)
            return -ENAMETOOLONG;
    }
    snprintf(s->paths[2], PATH_MAX, "%s/%s", DOORWARD_LIBEXECDIR, name);
    return 0;
}

/* Handlers cannot run in the child: every signal is blocked until its disposition is back at the default. */
static void forget_signals(void) {
    sigset_t none;
    sigemptyset(&none);
    for (int n = 1; n < SIGRTMIN; n++)
        signal(n, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The four descriptors at their numbers. Each is moved out of the way first, since a caller may have started us so
 * that ours lie anywhere. */
static int place_descriptors(const struct start *s) {
    int channel = fcntl(s->channel, F_DUPFD, CHANNEL + 1), null = fcntl(s->null, F_DUPFD, CHANNEL + 1);
    if (channel < 0 || null < 0)
        return -1;
    for (int fd = 0; fd < CHANNEL; fd++)
        if (dup2(null, fd) < 0)
            return -1;
    if (dup2(channel, CHANNEL) < 0)
        return -1;
    int r = s->pass ? 0 : fd_close_from(CHANNEL + 1, NULL, 0);
    if (r < 0)
        errno = -r;
    return r;
}

/* runs in: the child, in our memory, while we are suspended. It returns only by ending or executing. */
__attribute__((no_sanitize("address"))) static int child(void *data) {
    struct start *s = data;
    char *const args[] = {strrchr(s->paths[0], '/') + 1, NULL}, *const environment[] = {NULL};
    forget_signals();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == s->parent && place_descriptors(s) == 0) {
        for (size_t i = 0; i < ELEMENTS(s->paths); i++) {
            execve(s->paths[i], args, environment);
            if (errno != ENOENT && errno != ENOTDIR)
                break;
        }
    }
    s->failed = errno ? errno : ESRCH;
    _exit(127);
}

static pid_t start_child(struct start *s, int *ret_pidfd) {
    sigset_t all, before;
    char *stack = malloc(STACK);
    if (!stack)
        return -ENOMEM;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = clone(child, stack + STACK, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, s, ret_pidfd);
    int code = pid < 0 ? -errno : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(stack);
    return code < 0 ? code : pid;
}

/* Why one of our own executables does not start, with what to do. */
static int start_error(struct error *err, int code, const char *what, const char *name) {
    static const struct {
        int code;
        const char *remedy;
    } rows[] = {
        {-EACCES, "it must be executable for whoever runs doorward: install doorward again, as a whole"},
        {-ENOEXEC, "it is damaged or for another machine: install doorward again, as a whole"},
        {-EPERM, "the host, or the filter of the container that doorward runs in, forbids it"},
        {-ENOSYS, "the kernel, or the filter of the container that doorward runs in, lacks what that takes"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        if (rows[i].code == code)
            return error_set(err, code, "%s %s: %s; %s", what, name, strerror(-code), rows[i].remedy);
    return place_error(err, code, "%s %s", what, name);
}

static struct helper early = HELPER_EMPTY;

/* "FD:PID" of a launcher that was started before an exec. */
#define HANDED_OVER "DOORWARD_LAUNCHER"

/* Believed only when it is a socket of ours and a living child of ours: anybody may set a variable. */
static int adopt(struct helper *ret) {
    siginfo_t info;
    int fd, pid, type;
    socklen_t n = sizeof(type);
    const char *text = getenv(HANDED_OVER);
    if (!text || sscanf(text, "%d:%d", &fd, &pid) != 2)
        return -ENOENT;
    unsetenv(HANDED_OVER);
    if (fd <= 2 || pid <= 1 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 || type != SOCK_SEQPACKET ||
        waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return -EINVAL;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return -EINVAL;
    *ret = (struct helper){fd, pidfd, pid};
    return 0;
}

void spawn_early(void) {
    if (early.pidfd < 0 && adopt(&early) < 0)
        spawn_helper("doorward-launch", false, &early, NULL); /* a failure shows when it is needed */
}

void spawn_for_exec(void) {
    struct helper h;
    char text[32];
    if (spawn_helper("doorward-launch", false, &h, NULL) < 0)
        return;
    snprintf(text, sizeof(text), "%d:%d", h.channel, (int)h.pid);
    if (fcntl(h.channel, F_SETFD, 0) < 0 || setenv(HANDED_OVER, text, 1) < 0)
        spawn_end(&h);
    else
        fd_close(h.pidfd);
}

int spawn_exec(const char *name, char *const argv[], struct error *err) {
    struct start s = {0};
    int r = find_paths(name, &s);
    if (r < 0)
        return error_errno(err, r, "cannot find doorward's own executable through /proc/self/exe");
    for (size_t i = 0; i < ELEMENTS(s.paths); i++)
        execve(s.paths[i], argv, environ);
    return error_errno(err, -errno, "%s is neither at %s nor at %s nor at %s; install doorward as a whole", name,
                       s.paths[0], s.paths[1], s.paths[2]);
}

int spawn_path(const char *name, char **ret, struct error *err) {
    struct start s = {0};
    int r = find_paths(name, &s);
    for (size_t i = 0; r == 0 && i < ELEMENTS(s.paths); i++)
        if ((*ret = realpath(s.paths[i], NULL)))
            return 0;
    return error_set(err, r < 0 ? r : -ENOENT, "%s is neither at %s nor at %s nor at %s; install doorward as a whole",
                     name, s.paths[0], s.paths[1], s.paths[2]);
}

int spawn_helper(const char *name, bool pass, struct helper *ret, struct error *err) {
    if (early.pidfd >= 0 && !pass && !strcmp(name, "doorward-launch")) {
        *ret = early;
        early = (struct helper)HELPER_EMPTY;
        return 0;
    }
    struct start s = {.parent = getpid(), .pass = pass};
    _cleanup_fd_ int ours = -1, theirs = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int pair[2], pidfd;
    int r = null < 0 ? -errno : wire_pair(pair);
    if (r < 0)
        return start_error(err, r, "cannot start", name);
    ours = pair[0];
    theirs = pair[1];
    r = find_paths(name, &s);
    if (r < 0)
        return error_errno(err, r, "cannot find doorward's own executable through /proc/self/exe");
    s.channel = theirs;
    s.null = null;
    pid_t pid = start_child(&s, &pidfd);
    if (pid < 0)
        return start_error(err, pid, "cannot start", name);
    struct helper h = {TAKE_FD(ours), pidfd, pid};
    if (s.failed) {
        spawn_end(&h);
        if (s.failed == ENOENT)
            return error_set(err, -ENOENT, "%s is neither at %s nor at %s nor at %s; install doorward as a whole", name,
                             s.paths[0], s.paths[1], s.paths[2]);
        return start_error(err, -s.failed, "cannot execute", name);
    }
    fcntl(h.channel, F_SETFL, O_NONBLOCK);
    *ret = h;
    return 0;
}

int spawn_reap(struct helper *h, int timeout_ms) {
    int status = -1, r;
    if (h->pidfd < 0)
        return -1;
    struct pollfd ended = {h->pidfd, POLLIN, 0};
    do
        r = poll(&ended, 1, timeout_ms);
    while (r < 0 && errno == EINTR);
    if (r <= 0)
        if (syscall(SYS_pidfd_send_signal, h->pidfd, SIGKILL, NULL, 0) < 0)
            kill(h->pid, SIGKILL); /* not reaped yet, so the number is still its own */
    while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
        ;
    h->pidfd = fd_close(h->pidfd);
    return status;
}

void spawn_end(struct helper *h) {
    h->channel = fd_close(h->channel);
    spawn_reap(h, PATIENCE_MS);
}
