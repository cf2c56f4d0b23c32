/* surveying.h: the surveyor of one step: started beside the worker, heard, waited for where the policy named what it does.
 * runs in: controller (untrusted input: what the surveyor says of hostile bytes: bounded, and text only on record) */
#pragma once

#include <poll.h>

#include "control/step_room.h"

/* The worker runs: starts the surveyor for the inputs that have something to be read, at once where the plan has more to
 * ask than a count; a short step never pays for that. */
void surveying_begin(struct step *s);

/* One descriptor to wait for, and when to look again without it (CLOCK_MONOTONIC milliseconds, 0: never). */
struct pollfd surveying_poll(const struct step *s);
uint64_t surveying_at(const struct step *s);
void surveying_serve(struct step *s, const struct pollfd *p);

/* The step is over: what nobody named is cut short, the rest waited for. Everything is on record afterwards. */
void surveying_finish(struct step *s);

/* Before the start: `scan: refuse`. 0, or -errno with the reason in s->why. */
int surveying_before(struct step *s);

void surveying_end(struct step *s);
