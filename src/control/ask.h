/* ask.h: asks a run's controller through its control socket (wire/control.h). The half that answers is switch.h.
 * runs in: cli (untrusted input: none; the controller is the same user's) */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "wire/control.h"

/* Connects to the run whose folder `run_fd` is. The descriptor, or -ESRCH when no controller answers there. */
int ask_open(int run_fd, struct error *err);

/* One request and its answer. `argument` is sent where the request has one. 0, or -errno with the controller's words. */
int ask(int fd, uint16_t request, bool has_argument, uint32_t argument, json_t **ret, struct error *err);

/* The next event. 1, 0 when the run's controller closed, or -errno. */
int ask_event(int fd, json_t **ret, struct error *err);
