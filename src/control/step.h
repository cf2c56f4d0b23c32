/* step.h: one step of a run, from its launcher's start to everything gone.
 *
 * The only conversation with the launcher (wire/launch.h). What the launcher may say depends on the state; a message
 * that is not in the table for the state ends the step as an error. Each state's record is in the journal before the
 * launcher is told to go on.
 * runs in: controller (untrusted input: the worker's bytes and, through the launcher, its claims) */
#pragma once

#include "audit/journal.h"
#include "base/json.h"
#include "control/ids.h"
#include "control/place.h"
#include "control/relay.h"
#include "control/stop.h"
#include "control/switch.h"
#include "plan/plan.h"

/* What all steps of a run share. */
struct step_context {
    const struct place *place;
    const char *run;
    int run_fd;              /* the run's folder, O_PATH */
    struct journal *journal; /* both are set before step_finish, not before step_begin */
    const struct ids *ids;
    int signals; /* signalfd */
    struct sink *sinks[RELAY_STREAM_N];
    bool guarded[RELAY_STREAM_N]; /* a terminal is there that a worker without one of its own must not drive */
    int input;                    /* our standard input */
    int window;                   /* our terminal, for its size; -1 = none */
    bool stopped;                 /* a signal, or `doorward stop`, asked for the end of the run */
    struct run_switch *control;   /* NULL = none */
};

struct step_result {
    struct stop stop;
    json_t *artifacts; /* list of {step,name,digest,size,executable,incomplete}; owned */
    json_t *used;      /* {"wall_ms":..., ...}; owned */
    json_t *denied;    /* {"what": times}; owned */
};

void step_result_free(struct step_result *r);
#define _cleanup_step_result_ _cleanup_(step_result_free)

struct step;

/* Starts the launcher and hands it the plan. Nothing is made on the host yet. */
int step_begin(struct step_context *c, const struct plan *plan, unsigned number, struct step **ret, struct error *err);

/* Runs the step to its end. Afterwards nothing of it is left. An error of ours is in the result, typed. */
void step_finish(struct step *s, struct step_result *ret);

/* Ends a step that was begun; NULL is fine; returns NULL. */
struct step *step_end(struct step *s);
static inline void step_endp(struct step **s) {
    *s = step_end(*s);
}
#define _cleanup_step_ _cleanup_(step_endp)
