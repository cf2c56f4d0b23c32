/* live.h: which runs live.
 *
 * The file `live` in the state folder is a table of slots of 32 bytes, one line each: the ULID of a run, or blanks.
 * A controller holds an open-file-description lock on its slot as long as it lives, and blanks the slot when its run
 * has ended. A slot with a name and a free lock is therefore a run whose controller is dead, and finding those costs
 * as much as there are live runs, however many runs were made. The file is a hint for speed only: the truth about
 * a run stands in its journal.
 * runs in: controller, cli (untrusted input: none, the folder is ours) */
#pragma once

#include "base/clock.h"
#include "control/place.h"

#define LIVE_NAME       "live"
#define LIVE_SLOT_BYTES 32
#define LIVE_SLOTS_MAX  4096 /* runs at one time; as many as there are ranges of host ids (ids.h) */

struct live {
    int fd; /* its description holds the lock */
    unsigned slot;
};

#define LIVE_EMPTY                                                                                                     \
    { -1, 0 }

/* Locks or unlocks (F_WRLCK, F_UNLCK) `n` bytes of a file for this open file description. 0, -EAGAIN when another
 * holds them, or -errno. */
int live_lock(int fd, short type, uint64_t start, uint64_t n);

/* Takes a free slot for `run` and writes its name there. */
int live_take(const struct place *p, const char run[ULID_TEXT], struct live *ret, struct error *err);

/* The run has ended and its journal says so: blanks the slot and gives it back. An empty one is fine. */
void live_leave(struct live *l);

/* The controller goes without the run's end on record: gives the lock back and leaves the name for the next sweep. */
void live_close(struct live *l);
#define _cleanup_live_ _cleanup_(live_close)

/* Calls `visit` for each run whose slot has a name and a free lock; the lock is held meanwhile. When `visit` returns 0
 * the slot is blanked; otherwise it stays for the next sweep, and the walk goes on. Returns 0, or -errno when the
 * table cannot be read. */
int live_each_dead(const struct place *p, int (*visit)(void *data, const char run[ULID_TEXT]), void *data,
                   struct error *err);
