/* init.c: process 1 of the sandbox.
 *
 * Its one line out is the channel to the launcher. It passes GO and signals down to the reaper and the reaper's report
 * up, and takes one-line requests of `dw` from the worker over a socket inside. When the reaper ends, it ends; when the
 * launcher is gone, it ends: either way the kernel then ends all that is left.
 * runs in: sandbox (untrusted input: dw's messages; holds: the channel to the launcher) */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/inside.h"
#include "wire/launch.h"

/* Clients of dw at one time; more are turned away: one worker asks one thing at a time. */
enum { CLIENTS_MAX = 4, REFUSALS_MAX = 8, WAIT_CHANNEL = 0, WAIT_REAPER, WAIT_SIGNALS, WAIT_LISTENER, WAIT_CLIENTS };

struct init {
    struct pollfd waits[WAIT_CLIENTS + CLIENTS_MAX];
    unsigned refusals;
    int told; /* ENDED went up */
    struct wire_message m;
};

/* Down the line: only GO and SIGNAL are known; anything else means a broken launcher. */
static int from_launcher(struct init *in) {
    if (wire_receive(INNER_CHANNEL, &in->m) <= 0)
        return -EPIPE;
    if (in->m.type != INNER_GO && in->m.type != INNER_SIGNAL)
        return -EPROTO;
    return wire_send(INNER_SECOND, &in->m);
}

/* Up the line. End of file (the reaper is gone) is left to SIGCHLD. */
static int from_reaper(struct init *in) {
    int got = wire_receive(INNER_SECOND, &in->m);
    if (got <= 0) {
        in->waits[WAIT_REAPER].fd = -1;
        return 0;
    }
    wire_drop(&in->m);
    if (in->m.type != INNER_READY && in->m.type != INNER_RUNNING && in->m.type != INNER_ENDED)
        return -EPROTO;
    in->told |= in->m.type == INNER_ENDED;
    return wire_send(INNER_CHANNEL, &in->m);
}

/* The reaper is the only child. What it said last may still wait in the socket. */
static void reaper_ended(struct init *in) {
    int status = 0;
    if (waitpid(-1, &status, WNOHANG) <= 0)
        return;
    while (in->waits[WAIT_REAPER].fd >= 0 && from_reaper(in) == 0)
        ;
    if (!in->told) {
        wire_begin(&in->m, INNER_ENDED);
        wire_put_u32(&in->m, WIFSIGNALED(status) ? LAUNCH_HOW_SIGNALED : LAUNCH_HOW_UNKNOWN);
        wire_put_u32(&in->m, WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0);
        wire_put_text(&in->m, "the process 1 above the worker ended before it");
        wire_send(INNER_CHANNEL, &in->m);
    }
    _exit(0);
}

static void accept_client(struct init *in) {
    int fd = accept4(INSIDE_LISTENER_FD, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (int i = WAIT_CLIENTS; fd >= 0 && i < WAIT_CLIENTS + CLIENTS_MAX; i++) {
        if (in->waits[i].fd >= 0)
            continue;
        in->waits[i] = (struct pollfd){fd, POLLIN, 0};
        return;
    }
    fd_close(fd);
}

/* One request, one answer (a byte: 1 done, 0 refused), and the connection is over. */
static void serve_client(struct init *in, struct pollfd *client) {
    char reason[INNER_REASON_MAX + 1];
    unsigned char answer = 0;
    if (wire_receive(client->fd, &in->m) == 1 && in->m.type == INNER_REFUSAL) {
        wire_get_text(&in->m, reason, sizeof(reason));
        if (wire_end(&in->m) == 0 && in->refusals++ < REFUSALS_MAX) {
            wire_begin(&in->m, INNER_REFUSAL);
            wire_put_text(&in->m, reason);
            answer = wire_send(INNER_CHANNEL, &in->m) == 0;
        }
    }
    wire_drop(&in->m);
    send(client->fd, &answer, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    client->fd = fd_close(client->fd);
}

static void drain(int signals) {
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
}

int init_main(void) {
    static struct init in;
    int signals = inside_begin();
    if (signals < 0)
        return 125;
    in.waits[WAIT_CHANNEL] = (struct pollfd){INNER_CHANNEL, POLLIN, 0};
    in.waits[WAIT_REAPER] = (struct pollfd){INNER_SECOND, POLLIN, 0};
    in.waits[WAIT_SIGNALS] = (struct pollfd){signals, POLLIN, 0};
    in.waits[WAIT_LISTENER] = (struct pollfd){INSIDE_LISTENER_FD, POLLIN, 0};
    for (int i = WAIT_CLIENTS; i < WAIT_CLIENTS + CLIENTS_MAX; i++)
        in.waits[i].fd = -1;
    for (;;) {
        if (poll(in.waits, ELEMENTS(in.waits), -1) < 0)
            continue;
        if (in.waits[WAIT_CHANNEL].revents && from_launcher(&in) < 0)
            return 0;
        if (in.waits[WAIT_REAPER].revents && from_reaper(&in) < 0)
            return 0;
        if (in.waits[WAIT_SIGNALS].revents) {
            drain(signals);
            reaper_ended(&in);
        }
        for (int i = WAIT_CLIENTS; i < WAIT_CLIENTS + CLIENTS_MAX; i++)
            if (in.waits[i].fd >= 0 && in.waits[i].revents)
                serve_client(&in, &in.waits[i]);
        if (in.waits[WAIT_LISTENER].revents & POLLIN)
            accept_client(&in);
    }
}
