/* switch.c: see switch.h. runs in: controller (untrusted input: requests) */
#include "control/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "control/place.h"

/* The requests: what each carries. What a step's state makes of it is step.c's table. */
static const struct {
    uint16_t type;
    bool argument; /* a u32, 0 or 1 */
} requests[] = {
    {CONTROL_STATUS, false}, {CONTROL_EVENTS, false}, {CONTROL_FREEZE, true},
    {CONTROL_THAW, false},   {CONTROL_STOP, true},
};

int switch_open(struct run_switch *w, int run_fd, struct error *err) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    /* By descriptor: the state folder's path may be longer than a socket's address. */
    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" CONTROL_SOCKET_NAME, run_fd);
    *w = (struct run_switch){.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                             .run_fd = run_fd};
    for (size_t i = 0; i < SWITCH_CLIENTS; i++)
        w->clients[i].fd = -1;
    /* The mode of the descriptor is what the name gets, so it is never open to others: unix(7), bind(2). */
    if (w->listener >= 0 && fchmod(w->listener, 0600) == 0 &&
        bind(w->listener, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(w->listener, SWITCH_CLIENTS) == 0)
        return 0;
    int code = -errno;
    w->listener = fd_close(w->listener);
    return place_error(err, code, "cannot make the run's control socket in the state folder");
}

static void drop(struct switch_client *c) {
    *c = (struct switch_client){.fd = fd_close(c->fd)};
}

/* Never waits: who does not read is dropped. */
static void send_to(struct run_switch *w, struct switch_client *c) {
    if (wire_send(c->fd, &w->m) < 0)
        drop(c);
}

static void put_json(struct run_switch *w, uint16_t type, const json_t *answer) {
    _cleanup_free_ char *text = json_canonical(answer);
    wire_begin(&w->m, type);
    wire_put_text(&w->m, text ? text : "");
    w->m.broken |= !text;
}

static void put_refusal(struct run_switch *w, const struct error *err) {
    wire_begin(&w->m, CONTROL_REFUSED);
    wire_put_u32(&w->m, (uint32_t)-err->code);
    wire_put_text(&w->m, err->message);
}

void switch_answer(struct run_switch *w, uint16_t request, json_t *answer, const struct error *err) {
    _cleanup_json_ json_t *owned = answer;
    for (size_t i = 0; w && i < SWITCH_CLIENTS; i++) {
        struct switch_client *c = &w->clients[i];
        if (c->fd < 0 || c->waiting != request)
            continue;
        c->waiting = 0;
        if (owned)
            put_json(w, CONTROL_ANSWER, owned);
        else
            put_refusal(w, err);
        send_to(w, c);
    }
}

void switch_step_over(struct run_switch *w) {
    struct error over = {0};
    error_set(&over, -ESRCH, "the step has ended meanwhile");
    for (size_t i = 0; i < ELEMENTS(requests); i++)
        switch_answer(w, requests[i].type, NULL, &over);
}

void switch_event(struct run_switch *w, const char *type, const json_t *body) {
    for (size_t i = 0; w && i < SWITCH_CLIENTS; i++) {
        if (w->clients[i].fd < 0 || !w->clients[i].events)
            continue;
        _cleanup_json_ json_t *whole = json_pack("{s:s, s:O}", "type", type, "body", body);
        put_json(w, CONTROL_EVENT, whole);
        if (w->m.broken) {
            _cleanup_json_ json_t *bare = json_pack("{s:s, s:n}", "type", type, "body");
            put_json(w, CONTROL_EVENT, bare);
        }
        send_to(w, &w->clients[i]);
    }
}

void switch_close(struct run_switch *w) {
    if (w->listener < 0)
        return;
    switch_step_over(w);
    for (size_t i = 0; i < SWITCH_CLIENTS; i++)
        drop(&w->clients[i]);
    w->listener = fd_close(w->listener);
    unlinkat(w->run_fd, CONTROL_SOCKET_NAME, 0);
}

void switch_poll(const struct run_switch *w, struct pollfd *p) {
    p[0] = (struct pollfd){w ? w->listener : -1, POLLIN, 0};
    for (size_t i = 0; i < SWITCH_CLIENTS; i++)
        p[1 + i] = (struct pollfd){w ? w->clients[i].fd : -1, POLLIN, 0};
}

/* Root may do what this user may; everybody else is told nothing. */
static bool may_ask(int fd, uint32_t *ret_uid) {
    struct ucred peer;
    socklen_t n = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return false;
    *ret_uid = peer.uid;
    return peer.uid == geteuid() || peer.uid == 0;
}

static void take_client(struct run_switch *w) {
    uint32_t uid;
    int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (size_t i = 0; fd >= 0 && may_ask(fd, &uid) && i < SWITCH_CLIENTS; i++)
        if (w->clients[i].fd < 0) {
            w->clients[i] = (struct switch_client){.fd = fd};
            return;
        }
    fd_close(fd); /* not for this user, or too many: at the end of one the next is taken */
}

/* The request that stands in w->m. False when it is none. */
static bool read_request(struct run_switch *w, uint32_t *ret_argument) {
    for (size_t i = 0; i < ELEMENTS(requests); i++) {
        if (requests[i].type != w->m.type)
            continue;
        *ret_argument = requests[i].argument ? wire_get_u32(&w->m) : 0;
        return wire_end(&w->m) == 0 && *ret_argument <= 1;
    }
    wire_drop(&w->m);
    return false;
}

static void serve_client(struct run_switch *w, struct switch_client *c, struct step *s) {
    uint32_t argument, uid = 0;
    _cleanup_json_ json_t *answer = NULL;
    struct error err = {0};
    int r = wire_receive(c->fd, &w->m);
    if (r == -EAGAIN)
        return;
    uint16_t type = w->m.type;
    if (r <= 0 || c->waiting || c->events || !read_request(w, &argument) || !may_ask(c->fd, &uid)) {
        if (r > 0)
            wire_drop(&w->m);
        drop(c);
        return;
    }
    c->waiting = type;
    enum switch_outcome outcome = step_switch(s, type, argument, uid, &answer, &err);
    if (outcome == SWITCH_LATER)
        return;
    c->waiting = 0;
    c->events = type == CONTROL_EVENTS && outcome == SWITCH_NOW;
    if (outcome == SWITCH_NOW)
        put_json(w, CONTROL_ANSWER, answer);
    else
        put_refusal(w, &err);
    send_to(w, c);
}

void switch_serve(struct run_switch *w, const struct pollfd *p, struct step *s) {
    if (!w || w->listener < 0)
        return;
    for (size_t i = 0; i < SWITCH_CLIENTS; i++)
        if (p[1 + i].revents && w->clients[i].fd >= 0 && w->clients[i].fd == p[1 + i].fd)
            serve_client(w, &w->clients[i], s);
    if (p[0].revents)
        take_client(w);
}
