/* store.h: the few rows that must change atomically across processes, and the index of runs.
 *
 * A small interface, so that a fleet can put another database there. SQLite here: an index that is rebuilt
 * from the journals at any time; a run never waits for it. runs in: cli, controller (after a run) */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

struct store;

struct store_run {
    char run[ULID_TEXT];
    char task[65];
    char stop[80]; /* "" while it runs */
    int exit_status;
    uint64_t started_us, ended_us; /* CLOCK_REALTIME; 0 = not ended */
    char policy_digest[65];
    char journal_head[65];
};

/* Opens (and creates, 0600) `doorward.db` in the state folder; a damaged or foreign file is set aside under a new name
 * and rebuilt. */
int store_open(int state_dirfd, struct store **ret, struct error *err);
struct store *store_close(struct store *s);

/* Brings the index up to date with runs/: reads only journals that are new or were not ended when last read. */
int store_sync(struct store *s, int state_dirfd, struct error *err);

int store_put_run(struct store *s, const struct store_run *row, struct error *err);
/* 1 found, 0 not, or -errno. `run` may be a unique prefix or suffix of at least four characters; an ambiguous one is
 * -EEXIST. */
int store_find_run(struct store *s, const char *run, struct store_run *ret, struct error *err);
/* Newest first. `visit` returns 0 to go on. */
int store_each_run(struct store *s, int (*visit)(void *data, const struct store_run *row), void *data,
                   struct error *err);
