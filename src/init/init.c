/* init.c: process 1 of the sandbox.
 *
 * It takes one-line requests of `dw` from the worker over a socket inside and passes them to the launcher over its one line
 * out. The worker lives in a pid namespace below it and has no number for it. When the reaper ends, it ends; when
 * the launcher is gone, it ends: either way the kernel then ends all that is left.
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
enum { CLIENTS_MAX = 4, REFUSALS_MAX = 8, WAIT_CHANNEL = 0, WAIT_SIGNALS, WAIT_LISTENER, WAIT_CLIENTS };

struct init {
    struct pollfd waits[WAIT_CLIENTS + CLIENTS_MAX];
    unsigned refusals;
    struct wire_message m;
};

/* The reaper is the only child, and tells the launcher itself how the worker ended. */
static void reaper_ended(void) {
    int status;
    if (waitpid(-1, &status, WNOHANG) > 0)
        _exit(0);
}

static void accept_client(struct init *in) {
    int fd = accept4(INNER_SOCKET, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
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
    in.waits[WAIT_SIGNALS] = (struct pollfd){signals, POLLIN, 0};
    in.waits[WAIT_LISTENER] = (struct pollfd){INNER_SOCKET, POLLIN, 0};
    for (int i = WAIT_CLIENTS; i < WAIT_CLIENTS + CLIENTS_MAX; i++)
        in.waits[i].fd = -1;
    reaper_ended(); /* it may have ended before this program began, when nobody took its signal */
    for (;;) {
        if (poll(in.waits, ELEMENTS(in.waits), -1) < 0) {
            if (errno != EINTR)
                return 125;
            continue;
        }
        if (in.waits[WAIT_CHANNEL].revents)
            return 0; /* the launcher says nothing here: this is its end */
        if (in.waits[WAIT_SIGNALS].revents) {
            drain(signals);
            reaper_ended();
        }
        for (int i = WAIT_CLIENTS; i < WAIT_CLIENTS + CLIENTS_MAX; i++)
            if (in.waits[i].fd >= 0 && in.waits[i].revents)
                serve_client(&in, &in.waits[i]);
        if (in.waits[WAIT_LISTENER].revents & POLLIN)
            accept_client(&in);
    }
}
