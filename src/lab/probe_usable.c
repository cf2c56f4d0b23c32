/* probe_usable.c: what programs rightly expect to work inside. Held means that it works.
 * runs in: probe, inside and outside */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "lab/probe.h"

#define FAILS(what) is_open(c, errno, "%s fails: %s", what, strerror(errno))

/* Copies the running program to an open descriptor. */
static int copy_self(int to) {
    static char block[1 << 16];
    _cleanup_fd_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t n = from < 0 ? -1 : 0;
    while (from >= 0 && (n = read(from, block, sizeof(block))) > 0)
        if (fd_write_all(to, block, (size_t)n) < 0)
            return -1;
    return n < 0 ? -1 : 0;
}

/* Runs the copy in its "nothing" role, which exits with 42. */
static bool exits_42(const char *path, int fd) {
    char *argv[] = {"probe", "nothing", NULL};
    pid_t pid = fork();
    if (pid == 0) {
        if (path)
            execv(path, argv);
        else
            fexecve(fd, argv, environ);
        _exit(127);
    }
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 42;
}

static enum lab_result temp_programs(struct call *c) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/program-%d", scratch(c), (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (fd < 0 || copy_self(fd) < 0)
        return FAILS("writing a program");
    fd_close(fd);
    bool ok = exits_42(path, -1);
    unlink(path);
    return ok ? held(c, 0, "it ran") : is_open(c, 0, "%s does not run", path);
}

static enum lab_result memory_programs(struct call *c) {
    _cleanup_fd_ int fd = memfd_create("program", MFD_CLOEXEC);
    if (fd < 0 || copy_self(fd) < 0)
        return FAILS("memfd_create");
    return exits_42(NULL, fd) ? held(c, 0, "it ran") : is_open(c, 0, "a memfd does not run");
}

static enum lab_result semaphores(struct call *c) {
    char name[64];
    snprintf(name, sizeof(name), "/lab-%d", (int)getpid());
    sem_t *s = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    if (s == SEM_FAILED)
        return FAILS("sem_open");
    bool ok = sem_wait(s) == 0 && sem_post(s) == 0;
    sem_close(s);
    sem_unlink(name);
    _cleanup_fd_ int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (!ok || fd < 0 || ftruncate(fd, 1 << 20) < 0)
        return FAILS("shared memory");
    char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    shm_unlink(name);
    if (p == MAP_FAILED)
        return FAILS("mapping shared memory");
    p[(1 << 20) - 1] = 1;
    munmap(p, 1 << 20);
    return held(c, 0, "both work");
}

static enum lab_result passwd_entry(struct call *c) {
    static char text[1 << 16];
    if (slurp("/etc/passwd", text, sizeof(text)) <= 0)
        return FAILS("reading /etc/passwd");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned uid;
        char name[64], directory[256];
        if (sscanf(line, "%63[^:]:%*[^:]:%u:%*u:%*[^:]:%255[^:]", name, &uid, directory) >= 2 && uid == getuid())
            return held(c, 0, "uid %u is %s", uid, name);
    }
    /* Outside, an id without an entry is no fault of a sandbox. */
    return c->control ? held(c, 0, "uid %u has no entry here", getuid())
                      : is_open(c, 0, "uid %u has no entry", getuid());
}

static enum lab_result writable_places(struct call *c) {
    const char *const places[] = {scratch(c), c->control ? scratch(c) : getenv("HOME")};
    for (size_t i = 0; i < ELEMENTS(places); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/.lab-%d", places[i] ? places[i] : "/", (int)getpid());
        _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
            return FAILS(path);
        unlink(path);
    }
    return held(c, 0, "both can be written");
}

static enum lab_result rename_and_link(struct call *c) {
    char base[4096];
    snprintf(base, sizeof(base), "%s/lab-dirs-%d", scratch(c), (int)getpid());
    mkdir(base, 0755);
    _cleanup_fd_ int d = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d < 0 || mkdirat(d, "a", 0755) < 0 || mkdirat(d, "b", 0755) < 0)
        return FAILS("making folders");
    fd_close(openat(d, "a/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (linkat(d, "a/f", d, "b/l", 0) < 0)
        return FAILS("link between folders");
    if (renameat(d, "a/f", d, "b/f") < 0)
        return FAILS("rename between folders");
    if (renameat2(d, "b/f", d, "a/g", 1 /* RENAME_NOREPLACE */) < 0)
        return FAILS("rename without replacing");
    if (renameat(d, "a", d, "b/a") < 0)
        return FAILS("renaming a folder");
    unlinkat(d, "b/a/g", 0);
    unlinkat(d, "b/a", AT_REMOVEDIR);
    unlinkat(d, "b/l", 0);
    unlinkat(d, "b", AT_REMOVEDIR);
    rmdir(base);
    return held(c, 0, "all work");
}

static bool passes_a_byte(int from, int to) {
    char b = 0;
    return write(from, "x", 1) == 1 && read(to, &b, 1) == 1 && b == 'x';
}

/* Listens at `a`, connects to it, passes a byte. */
static bool meets_itself(struct sockaddr *a, socklen_t len) {
    _cleanup_fd_ int l = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l < 0 || bind(l, a, len) < 0 || listen(l, 1) < 0 || getsockname(l, a, &len) < 0)
        return false;
    _cleanup_fd_ int client = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client < 0 || connect(client, a, len) < 0)
        return false;
    _cleanup_fd_ int server = accept4(l, NULL, NULL, SOCK_CLOEXEC);
    return server >= 0 && passes_a_byte(client, server) && passes_a_byte(server, client);
}

static enum lab_result socket_pair(struct call *c) {
    int p[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) < 0 || !passes_a_byte(p[0], p[1]))
        return FAILS("a socket pair");
    if (send(p[0], "x", 1, MSG_NOSIGNAL) != 1)
        return FAILS("send over a socket pair");
    fd_close(p[0]);
    fd_close(p[1]);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof(a.sun_path), "%.80s/s%d", scratch(c), (int)getpid());
    bool ok = meets_itself((struct sockaddr *)&a, sizeof(a));
    int err = errno;
    unlink(a.sun_path);
    errno = err;
    return ok ? held(c, 0, "both work") : FAILS("a socket by path");
}

static enum lab_result own_loopback(struct call *c) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (!meets_itself((struct sockaddr *)&four, sizeof(four)))
        return FAILS("127.0.0.1");
    bool has_six = access("/proc/net/if_inet6", F_OK) == 0;
    if (has_six && !meets_itself((struct sockaddr *)&six, sizeof(six)))
        return FAILS("::1");
    return held(c, 0, has_six ? "127.0.0.1 and ::1" : "127.0.0.1; no IPv6 here");
}

static void *add(void *n) {
    ++*(int *)n;
    return NULL;
}

static enum lab_result threads_and_forks(struct call *c) {
    pthread_t t;
    int n = 0;
    errno = pthread_create(&t, NULL, add, &n);
    if (errno || pthread_join(t, NULL) != 0 || n != 1)
        return FAILS("a thread");
    if (!exits_42(own_path(), -1))
        return FAILS("fork and exec");
    char *argv[] = {"probe", "nothing", NULL};
    pid_t pid;
    int status;
    errno = posix_spawn(&pid, own_path(), NULL, NULL, argv, environ);
    if (errno || waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 42)
        return FAILS("posix_spawn");
    return held(c, 0, "all work");
}

static enum lab_result own_process(struct call *c) {
    static const char *const readable[] = {"/proc/self/status",  "/proc/self/maps", "/proc/self/cmdline",
                                           "/proc/self/environ", "/proc/cpuinfo",   "/proc/meminfo",
                                           "/dev/zero",          "/dev/urandom"};
    for (size_t i = 0; i < ELEMENTS(readable); i++) {
        char bytes[64];
        if (slurp(readable[i], bytes, sizeof(bytes)) < 0)
            return FAILS(readable[i]);
    }
    _cleanup_fd_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0 || write(null, "x", 1) != 1)
        return FAILS("/dev/null");
    if (access("/proc/self/fd/1", F_OK) < 0 || access("/proc/self/exe", R_OK) < 0)
        return FAILS("/proc/self");
    return held(c, 0, "all work");
}

static enum lab_result event_calls(struct call *c) {
    sigset_t s;
    sigemptyset(&s);
    sigaddset(&s, SIGUSR1);
    _cleanup_fd_ int ep = epoll_create1(EPOLL_CLOEXEC), ev = eventfd(1, EFD_CLOEXEC),
                     sig = signalfd(-1, &s, SFD_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC),
                     watch = inotify_init1(IN_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN};
    if (ep < 0 || ev < 0 || sig < 0 || timer < 0 || watch < 0)
        return FAILS("epoll, eventfd, signalfd, timerfd or inotify");
    if (epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e) < 0 || epoll_wait(ep, &e, 1, 1000) != 1)
        return FAILS("epoll_wait");
    if (inotify_add_watch(watch, scratch(c), IN_CREATE) < 0)
        return FAILS("inotify_add_watch");
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    _cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    int err = errno;
    waitpid(pid, NULL, 0);
    errno = err;
    return pidfd < 0 ? FAILS("pidfd_open of a child") : held(c, 0, "all work");
}

const struct probe probes_usable[] = {
    {"temp-programs", temp_programs}, {"memory-programs", memory_programs}, {"semaphores", semaphores},
    {"passwd-entry", passwd_entry},   {"writable-places", writable_places}, {"rename-and-link", rename_and_link},
    {"socket-pair", socket_pair},     {"own-loopback", own_loopback},       {"threads-and-forks", threads_and_forks},
    {"own-process", own_process},     {"event-calls", event_calls},         {0}};
