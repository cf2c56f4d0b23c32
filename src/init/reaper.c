/* reaper.c: process 1 of the worker's pid namespace.
 *
 * It waits for GO, starts the worker, reaps whatever is orphaned, hands signals on, and ends as soon as the worker's
 * main process has ended: with it the kernel ends everything else in the namespace, so no child in the background
 * holds a step open.
 * runs in: sandbox, under the worker's own filter (untrusted input: none; holds: the worker's standard streams) */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/inside.h"
#include "wire/launch.h"

struct reaper {
    struct worker worker;
    pid_t main; /* 0 before GO */
    struct wire_message m;
};

static void tell(struct reaper *r, uint32_t how, uint32_t value, const char *detail) {
    wire_begin(&r->m, INNER_ENDED);
    wire_put_u32(&r->m, how);
    wire_put_u32(&r->m, value);
    wire_put_text(&r->m, detail);
    wire_send(INNER_CHANNEL, &r->m);
}

/* Says why the worker's program never ran, in words with a remedy; `f` came from our own child before its exec. */
static void tell_failure(struct reaper *r, const struct worker_failure *f) {
    char text[512];
    const char *program = r->worker.argv[0];
    uint32_t how = LAUNCH_HOW_NOT_EXECUTABLE;
    if (f->stage == WORKER_DIRECTORY)
        snprintf(text, sizeof(text), "cannot enter the working folder %.200s: %s", r->worker.directory,
                 strerror(f->code));
    else if (f->stage == WORKER_SESSION)
        snprintf(text, sizeof(text), "cannot start a session: %s", strerror(f->code));
    else if (f->code == ELIBBAD)
        snprintf(text, sizeof(text), "%.200s is there, but the interpreter or loader it names is not", program);
    else if (f->code == E2BIG)
        snprintf(text, sizeof(text), "arguments and environment are longer than the kernel takes");
    else
        snprintf(text, sizeof(text), "%.200s: %s", program, strerror(f->code));
    if (f->stage == WORKER_PROGRAM && (f->code == ENOENT || f->code == ENOTDIR || f->code == ELIBBAD))
        how = LAUNCH_HOW_NOT_FOUND;
    tell(r, how, 0, text);
}

/* 0 when the worker's program is executing. */
static int start(struct reaper *r) {
    volatile struct worker_failure failure = {0, 0};
    /* The child makes system calls and then execs or ends, so it may run on this memory: no page tables to copy, and
     * when vfork returns it is known which of the two it was. */
    pid_t pid = vfork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        worker_start(&r->worker, &failure);
    r->main = pid;
    if (failure.code == 0)
        return 0;
    struct worker_failure f = {failure.code, failure.stage};
    tell_failure(r, &f);
    return -ECHILD;
}

/* Reaps everything that ended; 1 when the main process was among it. */
static int reap(struct reaper *r) {
    int status, ended = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != r->main)
            continue;
        if (WIFSIGNALED(status))
            tell(r, LAUNCH_HOW_SIGNALED, (uint32_t)WTERMSIG(status), "");
        else
            tell(r, LAUNCH_HOW_EXITED, (uint32_t)WEXITSTATUS(status), "");
        ended = 1;
    }
    return ended;
}

/* One message from the launcher. 0 to go on, else the reaper ends. */
static int listen_to_launcher(struct reaper *r) {
    int got = wire_receive(INNER_CHANNEL, &r->m);
    if (got <= 0)
        return -EPIPE;
    if (r->m.type == INNER_GO && !r->main && wire_end(&r->m) == 0)
        return start(r);
    if (r->m.type == INNER_SIGNAL && r->main) {
        int number = (int)wire_get_u32(&r->m);
        return wire_end(&r->m) == 0 && kill(r->main, number) < 0 && errno != ESRCH ? -errno : 0;
    }
    return -EPROTO;
}

static void drain(int signals) {
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
}

/* reaper FLAGS FOLDER PROGRAM ARGUMENTS... with the worker's environment; FLAGS: t terminal, s own session. */
int reaper_main(int argc, char **argv, char **env) {
    static struct reaper r;
    int signals = inside_begin();
    /* The channel must not reach the worker, who could then speak as the reaper. */
    if (signals < 0 || argc < 4 || fcntl(INNER_CHANNEL, F_SETFD, FD_CLOEXEC) < 0)
        return 125;
    r.worker = (struct worker){argv[2], argv + 3, env, strchr(argv[1], 't') != NULL, strchr(argv[1], 's') != NULL};
    struct pollfd waits[] = {{INNER_CHANNEL, POLLIN, 0}, {signals, POLLIN, 0}};
    for (;;) {
        if (poll(waits, 2, -1) < 0 && errno != EINTR)
            return 125;
        if (waits[0].revents && listen_to_launcher(&r) < 0)
            return 0;
        if (waits[1].revents) {
            drain(signals);
            if (reap(&r))
                return 0;
        }
    }
}
