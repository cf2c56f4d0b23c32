/* compile.h: the parts that compile one step to its plan. Private to policy/.
 * runs in: controller, cli */
#pragma once

#include "policy/model.h"
#include "policy/sensitive.h"

struct compile {
    const struct policy *p;
    const struct policy_step *step;
    const struct policy_host *host;
    struct plan plan;                   /* what is there so far */
    const struct policy_input **inputs; /* in the order of plan.inputs */
    struct sensitive sensitive;         /* asked of the host once there is an input */
    struct error *err;
};

/* Resolves every input, refuses what is sensitive without being called so, and fills plan.inputs. */
int compile_inputs(struct compile *c);

/* Fills plan.env: PATH, HOME, USER, LANG, TERM, TMPDIR, then what the step adds. */
int compile_env(struct compile *c);

/* Fills plan.workdir; a folder below an input must be there, and its links must not lead out of the input. */
int compile_workdir(struct compile *c);

int compile_out_of_memory(struct compile *c);

/* The value of a key of the step, for the place of a message; the step's own node when the key is not there. */
const struct node *compile_node(const struct compile *c, const char *key);
