/* probe_limits.c: probes of limits and of the end of a step. Each tries a bounded amount (rows.h), well above the
 * lab's limit and harmless without one.
 * runs in: probe, inside and outside */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "lab/probe.h"

static void sleep_ms(unsigned ms) {
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

static enum lab_result processes(struct call *c) {
    static pid_t pids[LAB_PROCESSES_TRY];
    int n = 0, err = 0;
    for (; n < LAB_PROCESSES_TRY; n++) {
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pause();
            _exit(0);
        }
        if (pid < 0) {
            err = errno;
            break;
        }
        pids[n] = pid;
    }
    for (int i = 0; i < n; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    return n == LAB_PROCESSES_TRY ? is_open(c, 0, "%d processes", n) : held(c, err, "stopped after %d processes", n);
}

static void *stay(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

static enum lab_result threads(struct call *c) {
    static pthread_t t[LAB_PROCESSES_TRY];
    static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t small;
    int n = 0, err = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_mutex_lock(&gate);
    while (n < LAB_PROCESSES_TRY && (err = pthread_create(&t[n], &small, stay, &gate)) == 0)
        n++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    return n == LAB_PROCESSES_TRY ? is_open(c, 0, "%d threads", n) : held(c, err, "stopped after %d threads", n);
}

/* Touches memory in steps, as a program that grows does. */
static int use_memory(void *data) {
    const size_t step = 4 << 20;
    for (size_t n = 0; n < LAB_MEMORY_TRY; n += step) {
        char *p = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (p == MAP_FAILED)
            return errno;
        for (size_t i = 0; i < step; i += 4096)
            p[i] = 1;
    }
    return 0;
}

static enum lab_result memory(struct call *c) {
    int r = in_child(use_memory, NULL);
    if (r == 0)
        return is_open(c, 0, "%u MiB were used", LAB_MEMORY_TRY >> 20);
    return r < 256 ? held(c, r, "refused: %s", strerror(r)) : held(c, 0, "the child was killed by signal %d", r - 256);
}

/* The places that share the one limited space. */
static size_t places(const struct call *c, const char *to[4]) {
    if (c->control) {
        to[0] = scratch(c);
        return 1;
    }
    const char *home = getenv("HOME");
    const char *const all[] = {scratch(c), "/dev/shm", home ? home : "/home/agent", "/out"};
    size_t n = 0;
    for (size_t i = 0; i < ELEMENTS(all); i++)
        if (access(all[i], W_OK) == 0)
            to[n++] = all[i];
    return n;
}

static enum lab_result disk(struct call *c) {
    static char block[1 << 20];
    const char *to[4] = {"/tmp"};
    size_t n = places(c, to), done = 0;
    int fds[4], err = 0;
    char path[4096];
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/fill-%d", to[i], (int)getpid());
        fds[i] = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        unlink(path);
    }
    for (size_t k = 0; n && !err && done < LAB_DISK_TRY; k++) {
        ssize_t w = write(fds[k % n], block, sizeof(block));
        err = w < 0 ? errno : 0;
        done += w > 0 ? (size_t)w : 0;
    }
    for (size_t i = 0; i < n; i++)
        fd_close(fds[i]);
    return err || !n ? held(c, err, "stopped after %zu MiB in %zu places: %s", done >> 20, n, strerror(err))
                     : is_open(c, 0, "%zu MiB were written in %zu places", done >> 20, n);
}

static enum lab_result inodes(struct call *c) {
    const char *to[4] = {"/tmp"};
    size_t n = places(c, to);
    char path[4096];
    int made = 0, err = 0;
    for (; n && made < LAB_FILES_TRY; made++) {
        snprintf(path, sizeof(path), "%s/n%d-%d", to[(size_t)made % n], (int)getpid(), made);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) {
            err = errno;
            break;
        }
        close(fd);
    }
    for (int i = 0; i < made; i++) {
        snprintf(path, sizeof(path), "%s/n%d-%d", to[(size_t)i % n], (int)getpid(), i);
        unlink(path);
    }
    return err || !n ? held(c, err, "stopped after %d files: %s", made, strerror(err))
                     : is_open(c, 0, "%d files were made", made);
}

static enum lab_result open_files(struct call *c) {
    int n = 0, err = 0;
    for (; n < LAB_OPEN_FILES_TRY; n++)
        if (fcntl(1, F_DUPFD_CLOEXEC, 3) < 0) {
            err = errno;
            break;
        }
    for (int fd = 3; fd < LAB_OPEN_FILES_TRY + 3; fd++)
        close(fd);
    struct rlimit l = {LAB_OPEN_FILES_TRY, LAB_OPEN_FILES_TRY};
    if (err && setrlimit(RLIMIT_NOFILE, &l) == 0)
        return is_open(c, 0, "the limit of %d could be raised", n);
    return err ? held(c, err, "stopped after %d descriptors", n) : is_open(c, 0, "%d descriptors", n);
}

/* The harness looks at how the run ended: when these lines all arrive with the answer behind them, nothing held. */
static enum lab_result output(struct call *c) {
    static char line[1024];
    memset(line, '.', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    for (size_t n = 0; n < LAB_OUTPUT_TRY; n += sizeof(line))
        if (fd_write_all(1, line, sizeof(line)) < 0)
            return held(c, errno, "the output was closed after %zu bytes", n);
    sleep_ms(100);
    return is_open(c, 0, "%u bytes were written", LAB_OUTPUT_TRY);
}

static enum lab_result deadline(struct call *c) {
    sleep_ms(LAB_WALL_TRY_MS);
    return is_open(c, 0, "ran for %d ms", LAB_WALL_TRY_MS);
}

/* Leaves a process behind, in a session of its own, deaf to signals when asked, far from the parent's group. */
static int leave_child(const struct call *c, bool deaf) {
    pid_t pid = fork();
    if (pid < 0)
        return errno;
    if (pid > 0)
        return waitpid(pid, NULL, 0) < 0 ? errno : 0;
    if (fork() != 0)
        _exit(0);
    setsid();
    for (int s = 1; deaf && s < 64; s++)
        signal(s, SIG_IGN);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    char name[128];
    snprintf(name, sizeof(name), "%s-%s", fact(c, "nonce"), c->row->name);
    execl(own_path(), own_path(), "linger", name, (char *)NULL);
    _exit(127);
}

static enum lab_result deaf_child(struct call *c) {
    int err = leave_child(c, strcmp(c->row->name, "outliving-child") != 0);
    if (err)
        return broken(c, err, "no child could be left");
    sleep_ms(30); /* let it exec, so that it carries its name */
    return is_open(c, 0, "left a process; the harness looks whether it is there after the end");
}

static enum lab_result deadline_deaf_child(struct call *c) {
    enum lab_result r = deaf_child(c);
    if (r == LAB_OPEN)
        sleep_ms(LAB_WALL_TRY_MS);
    return r;
}

static enum lab_result killed_controller(struct call *c) {
    enum lab_result r = deaf_child(c);
    if (r == LAB_OPEN && fd_write_all(1, LAB_LEFT, strlen(LAB_LEFT)) == 0)
        sleep_ms(LAB_LINGER_MS);
    return r;
}

/* A child keeps standard output; the harness measures how long the run takes to end. */
static enum lab_result held_output(struct call *c) {
    if (c->control)
        return held(c, 0, "not tried outside, where a pipe's reader would wait");
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        sleep_ms(LAB_LINGER_MS);
        _exit(0);
    }
    return pid < 0 ? is_open(c, errno, "no child")
                   : held(c, 0, "a child keeps standard output for %d ms", LAB_LINGER_MS);
}

const struct probe probes_limits[] = {{"processes", processes},
                                      {"threads", threads},
                                      {"memory", memory},
                                      {"disk", disk},
                                      {"inodes", inodes},
                                      {"open-files", open_files},
                                      {"output", output},
                                      {"deadline", deadline},
                                      {"deadline-deaf-child", deadline_deaf_child},
                                      {"outliving-child", deaf_child},
                                      {"deaf-child", deaf_child},
                                      {"killed-controller", killed_controller},
                                      {"held-output", held_output},
                                      {0}};
