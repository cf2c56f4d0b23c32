/* control.h: a run, from plans to its one typed stop.
 *
 * runs in: controller (untrusted input: the worker's bytes and claims; holds: the journal) */
#pragma once

#include "base/json.h"
#include "control/place.h"
#include "plan/plan.h"

struct control_request {
    const struct place *place; /* open */
    const char *task, *purpose;
    const char *policy_name;   /* of the file, or NULL for a run from flags */
    const char *policy_text;   /* the file's bytes, kept beside the journal; NULL for a run from flags */
    const char *policy_digest; /* of the canonical form */
    struct plan *plans;        /* one per step, in order; file inputs are replaced by blobs */
    size_t n_plans;
    int ready_fd;     /* gets the run's name once it is on record, and is closed then; -1 = none */
    int status_fd;    /* gets the final record once the end is on record; -1 = none */
    bool raw;         /* control characters reach our terminal as the worker wrote them */
    int in, out, err; /* our standard streams; -1: out and err are not passed on (captured only) */
};

struct control_result {
    char run[ULID_TEXT]; /* "" when the run did not get so far as to have one */
    int exit_status;
    char stop[80];
    json_t *final; /* the final record (docs/stops.md); owned */
    json_t *notes; /* lines for a person, harmless on a terminal; owned */
};

void control_result_free(struct control_result *r);
#define _cleanup_control_result_ _cleanup_(control_result_free)

/* Runs the steps. Once a journal is there every failure is a typed stop in *ret and the answer is 0; before that it is
 * -errno, nothing ran, and *ret is untouched. */
int control_run(const struct control_request *q, struct control_result *ret, struct error *err);

/* The final record of a run that did not get so far as to have one: given to `status_fd` (-1 = none) and returned as a
 * new reference. */
json_t *control_final_error(const struct error *err, int status_fd);

/* Finds runs whose controller is dead, ends what is left of them, and puts that on record (run.lost).
 * Costs as much as there are live runs. `tell` (may be NULL) hears of each; a run that could not be dealt with is told
 * with its error and found again next time. 0, or -errno when the table of runs cannot be read. */
int control_sweep_lost(const struct place *p, void (*tell)(const char run[ULID_TEXT], const struct error *err),
                       struct error *err);

/* The same for one run that a reader found without an end and without a live controller (a state folder that was
 * moved, say). 0: it is ended now, was ended before, or lives. */
int control_lose(const struct place *p, const char run[ULID_TEXT], struct error *err);
