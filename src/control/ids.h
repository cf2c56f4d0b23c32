/* ids.h: the host user ids of one run of root's.
 *
 * Root gives each run 65536 host ids of its own from the pool 0x70000000..0x7fffffff, which no distribution hands
 * out to people or services (systemd's tables of uids stop below 0x70000000). A range is held by a lock on one byte
 * of `ids.lock` in the runtime folder, one file for the whole host, whatever the state folder.
 * runs in: controller */
#pragma once

#include <stdint.h>

#include "control/place.h"

#define IDS_POOL_FIRST 0x70000000u
#define IDS_PER_RUN    0x10000u
#define IDS_SLOTS      4096u

struct ids {
    int fd; /* holds the lock; -1 for an ordinary user */
    uint32_t slot;
    uint32_t base; /* first host id; 0 for an ordinary user, whose runs have his own id only */
};

#define IDS_EMPTY                                                                                                      \
    { -1, 0, 0 }

/* Takes a range. The search starts at a place that `seed` decides, so that the range of a run whose last processes are
 * just being killed is not the next one taken. */
int ids_take(const struct place *p, uint32_t seed, struct ids *ret, struct error *err);
void ids_leave(struct ids *i);
#define _cleanup_ids_ _cleanup_(ids_leave)
