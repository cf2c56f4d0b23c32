/* journal.h: the hash-chained record of one run.
 *
 * One file per run, JSON Lines. Each line is canonical JSON:
 *   {"body":{...},"hash":"...","prev":"...","run":ULID,"seq":N,"time":RFC3339,"type":"step.start"}
 * `hash` is the SHA-256 of the canonical JSON of the record without "hash"; `prev` is the hash of the
 * record before (64 zeros for the first). Appended with one write(2) each; O_APPEND; the writer holds an
 * exclusive flock on the file for as long as the run lives, so a free lock on a journal without an end
 * means: its controller is dead.
 * runs in: controller, cli */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"

#define JOURNAL_NAME "journal.jsonl"
#define JOURNAL_LINE_MAX (1u << 20)
#define JOURNAL_BYTES_MAX (256u << 20) /* the journal's budget for one run */

struct journal;

/* Creates the journal in the run's folder `dirfd` and takes its lock. */
int journal_create(int dirfd, const char run[ULID_TEXT], struct journal **ret, struct error *err);

/* Opens an existing journal for appending: takes the lock (-EWOULDBLOCK: a live controller holds it), checks the
 * chain, and where the last line is torn (no newline, or not JSON) cuts it off and appends a "journal.repaired" record
 * that carries the cut bytes' count and digest. Any other mismatch is -EBADMSG (tampering) and nothing is written. */
int journal_open(int dirfd, struct journal **ret, struct error *err);

enum journal_sync { JOURNAL_WRITTEN, JOURNAL_ON_DISK };

/* Appends one record. `body` is borrowed. With JOURNAL_ON_DISK the record has reached the disk on return.
 * After a failure (a full disk) the journal refuses every later record: what cannot be recorded must not happen. */
int journal_append(struct journal *j, const char *type, json_t *body, enum journal_sync sync, struct error *err);

/* Hash of the last record, and its number. */
const char *journal_head(const struct journal *j);
uint64_t journal_seq(const struct journal *j);

/* Flushes nothing by itself; releases the lock. NULL is fine; returns NULL. */
struct journal *journal_close(struct journal *j);
static inline void journal_closep(struct journal **j) {
    *j = journal_close(*j);
}
#define _cleanup_journal_ _cleanup_(journal_closep)

/* Walks the records of a journal in order. `visit` returns 0 to go on. */
int journal_walk(int dirfd, int (*visit)(void *data, const json_t *record), void *data, struct error *err);

struct journal_report {
    uint64_t records;
    uint64_t first_bad; /* seq of the first record that does not fit, UINT64_MAX when all do */
    bool torn;          /* the last line is incomplete */
    bool ended;         /* the last record is the run's end */
    char head[DIGEST_HEX];
    char why[256];      /* what is wrong, "" when nothing is */
};

/* Recomputes the chain from bytes (pure; the fuzzer's target). */
void journal_check(const char *bytes, size_t n, struct journal_report *ret);

/* True while a controller holds the journal's lock. */
bool journal_is_live(int dirfd);
