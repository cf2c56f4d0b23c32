/* follow.h: waiting for what a run's controller writes. runs in: cli (untrusted input: the journal; holds: nothing) */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/json.h"
#include "control/place.h"

/* A descriptor that tells of changes of the run's journal, owned by the caller; -1 where the host has none left (then
 * follow_wait looks more often instead). */
int follow_watch(const struct place *place, const char run[ULID_TEXT]);

/* Waits for a change, at most a second. False when the reader of our standard output went away. */
bool follow_wait(int notify);

/* Waits until the run has an end on record, which it gets here when its controller died. *ret is that record's body, a
 * new reference. `dirfd` is the run's folder. 0 or -errno. */
int follow_to_end(const struct place *place, const char run[ULID_TEXT], int dirfd, json_t **ret, struct error *err);
