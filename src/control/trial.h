/* trial.h: a sandbox without a run: is it to be had on this host?
 *
 * The launcher is given a plan as for a step, and what it says is kept: what is in force, or why nothing ran. There is no
 * journal and nothing is collected, so the plan must run nothing that anybody would miss; its only user is `doorward doctor`.
 * runs in: controller */
#pragma once

#include "base/json.h"
#include "control/place.h"
#include "plan/plan.h"

struct trial {
    json_t *enforced; /* the content of ENFORCED, owned; NULL when it did not get so far */
    bool ran;         /* the worker was let go and everything of it is gone again */
};

void trial_free(struct trial *t);
#define _cleanup_trial_ _cleanup_(trial_free)

/* Tries `plan`. 0 when it ran; else -errno and why it did not, with *ret as far as it went. */
int trial_run(const struct place *place, const struct plan *plan, struct trial *ret, struct error *err);
