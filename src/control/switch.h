/* switch.h: the operator's switch: the run's end of its control socket (wire/control.h).
 *
 * A fixed number of clients, none of which is ever waited for: one that does not read what it asked for, or says what it
 * may not, is closed. The half that asks is ask.h.
 * runs in: controller (untrusted input: requests, from whoever may run doorward as this user) */
#pragma once

#include <poll.h>

#include "base/error.h"
#include "base/json.h"
#include "wire/control.h"

struct step;

enum { SWITCH_CLIENTS = 8, SWITCH_POLLS = SWITCH_CLIENTS + 1 };

struct switch_client {
    int fd;           /* -1: free */
    uint16_t waiting; /* the request that is not answered yet; 0 = none */
    bool events;      /* it gets each record */
};

struct run_switch {
    int listener; /* -1: none */
    int run_fd;   /* borrowed: the run's folder */
    struct switch_client clients[SWITCH_CLIENTS];
    struct wire_message m;
};

/* Makes the socket in the run's folder. 0 or -errno with what to do. */
int switch_open(struct run_switch *w, int run_fd, struct error *err);
/* Says the end to whoever waits, closes and removes the socket. One that was not opened is fine. */
void switch_close(struct run_switch *w);

/* Fills SWITCH_POLLS entries; a NULL switch has none to wait for. */
void switch_poll(const struct run_switch *w, struct pollfd *p);
/* Takes new clients and one request of each. What has to be asked of the launcher is answered by switch_answer. */
void switch_serve(struct run_switch *w, const struct pollfd *p, struct step *s);

/* Answers all who wait for `request`; takes `answer` over. With NULL they are refused with `err`. */
void switch_answer(struct run_switch *w, uint16_t request, json_t *answer, const struct error *err);
/* The step is over: whoever waits for something of it is told. */
void switch_step_over(struct run_switch *w);
/* Tells those who follow of a record. `body` is borrowed. */
void switch_event(struct run_switch *w, const char *type, const json_t *body);

/* step.c: what a client's request makes the step do. An answer that must wait for the launcher comes through switch_answer. */
enum switch_outcome { SWITCH_LATER, SWITCH_NOW, SWITCH_REFUSED };
enum switch_outcome step_switch(struct step *s, uint16_t request, uint32_t argument, uint32_t uid, json_t **ret,
                                struct error *err);
