/* final.h: the final record of a run, one JSON object: docs/stops.md.
 * runs in: controller, cli */
#pragma once

#include "base/json.h"
#include "control/step.h"

/* Empty lists and an empty message, to be filled. NULL when memory ran out. */
json_t *final_new(const char *run, const char *stop, int exit_status, const char *message);

/* Adds what one step used, hit and left behind. */
void final_add_step(json_t *final, const char *step, const struct step_result *r);

/* Writes the record as one line. A reader that takes nothing for ten seconds goes without. */
void final_write(int fd, const json_t *final);
