/* store.h: the index of runs, and later the few rows that must change atomically across processes.
 *
 * A small interface, so that a fleet can put another database there. SQLite here: an index that is rebuilt
 * from the journals at any time; a run never waits for it. What it knows beyond them is the head that an ended
 * journal had when it was first read: a row of an ended run never changes again.
 * runs in: cli, controller (after a run) */
#pragma once

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"

#define STORE_NAME    "doorward.db"
#define STORE_DAMAGED "damaged" /* stop of a run whose journal does not fit its chain */

struct store;

struct store_run {
    char run[ULID_TEXT];
    char task[65];
    char stop[80]; /* "" while it runs */
    int exit_status;
    uint64_t started_us, ended_us; /* CLOCK_REALTIME; 0 = not ended */
    char policy_digest[DIGEST_HEX];
    char journal_head[DIGEST_HEX];
};

/* Opens (and creates, 0600) STORE_NAME in the state folder (may be O_PATH). A damaged or foreign file is set aside as
 * doorward.db.damaged-ULID and rebuilt; one with a newer schema is -EPROTONOSUPPORT. */
int store_open(int state_dirfd, struct store **ret, struct error *err);
/* An index of this process only, empty at first: for a state folder that cannot be written (a full disk). */
int store_open_memory(struct store **ret, struct error *err);
/* NULL is fine; returns NULL. */
struct store *store_close(struct store *s);
static inline void store_closep(struct store **s) {
    *s = store_close(*s);
}
#define _cleanup_store_ _cleanup_(store_closep)

/* Brings the index up to date with runs/: reads only journals that are new or were not ended when last read. A journal
 * that does not fit gets the stop STORE_DAMAGED and is read again each time. */
int store_sync(struct store *s, int state_dirfd, struct error *err);

/* What a run's journal says, in a row. -ENOENT: there is none. A journal that does not fit is not an error. */
int store_read_run(int run_dirfd, const char run[ULID_TEXT], struct store_run *ret, struct error *err);

/* Inserts a row, or replaces one of a run that had not ended. */
int store_put_run(struct store *s, const struct store_run *row, struct error *err);
/* 1 found, 0 not, or -errno. */
int store_find_run(struct store *s, const char run[ULID_TEXT], struct store_run *ret, struct error *err);
/* Newest first. `visit` returns 0 to go on; another value ends the walk and is returned. */
int store_each_run(struct store *s, int (*visit)(void *data, const struct store_run *row), void *data,
                   struct error *err);
