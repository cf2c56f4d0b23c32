/* runs.h: finding the run that a user means. runs in: cli (untrusted input: the argument; holds: nothing) */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "control/place.h"

/* The run that `word` names: a ULID, its first or last characters (at least four, in either case) where only one run
 * has them, or "last". Reads the names of the folders, so it also works where the index cannot be opened.
 * -ENOENT and -EEXIST (more than one) name what to do. */
int runs_find(const struct place *p, const char *word, char run[ULID_TEXT], struct error *err);

/* Opens the state folder, finds the run and opens its folder. */
int runs_open(struct place *p, const char *word, char run[ULID_TEXT], int *ret_dirfd, struct error *err);
