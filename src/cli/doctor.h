/* doctor.h: what `doorward doctor` finds on this host: one row for each wall, limit and fact.
 *
 * Walls and limits are tried, by the launcher itself and a plan that runs nothing; what fails is explained by host/.
 * runs in: cli */
#pragma once

#include "base/json.h"
#include "control/place.h"
#include "control/trial.h"
#include "plan/plan.h"

enum doctor_state { DOCTOR_HELD, DOCTOR_DEGRADED, DOCTOR_MISSING, DOCTOR_UNTRIED, DOCTOR_STATE_N };
extern const char *const doctor_state_names[DOCTOR_STATE_N];

struct doctor {
    struct place place; /* found, not opened */
    int root;           /* the host's "/" */
    bool superuser;
    bool off[PLAN_WALL_N]; /* walls that are missing: left out when the others are tried */
    json_t *rows;          /* owned */
    bool failed;           /* memory ran out */
};

int doctor_open(struct doctor *d, struct error *err);
void doctor_close(struct doctor *d);
#define _cleanup_doctor_ _cleanup_(doctor_close)

/* Adds a row; `by`, `why`, `remedy` may be NULL. */
void doctor_row(struct doctor *d, const char *kind, const char *name, enum doctor_state state, const char *by,
                const char *why, const char *remedy);
/* The same from a failure of the launcher's, whose message ends with what to do. */
void doctor_failure(struct doctor *d, const char *kind, const char *name, const struct error *err);

/* A plan of the sandbox that is tried: everything that a policy may do without may be missing. 0 or -ENOMEM. */
int doctor_plan(const struct doctor *d, struct plan *ret);

/* Rows for every wall and every limit, by trial. 0 or -errno when that could not be done at all. */
int doctor_walls(struct doctor *d, struct error *err);
/* Rows for facts of the host. */
int doctor_facts(struct doctor *d, struct error *err);
