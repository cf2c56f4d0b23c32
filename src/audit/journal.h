/* journal.h: the hash-chained record of one run.
 *
 * One file per run, JSON Lines. Each line is canonical JSON:
 *   {"body":{...},"hash":"...","prev":"...","run":ULID,"seq":N,"time":RFC3339,"type":"step.start"}
 * `hash` is the SHA-256 of the canonical JSON of the record without "hash"; `prev` is the hash of the
 * record before (64 zeros for the first). Appended with one write(2) each; O_APPEND; the writer holds an
 * exclusive flock on the file for as long as the run lives, so a free lock on a journal without an end
 * means: its controller is dead. docs/journal.md lists the types of record.
 * runs in: controller, cli */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"

#define JOURNAL_NAME      "journal.jsonl"
#define JOURNAL_LINE_MAX  (1u << 20)   /* bytes of one record with its newline */
#define JOURNAL_BYTES_MAX (256u << 20) /* the journal's budget for one run */
#define JOURNAL_RESERVE   (4u << 20)   /* the part of the budget that only closing records may use */
#define JOURNAL_TYPE_MAX  40           /* "word.word", lower case */

struct journal;

/* Creates the journal in the run's folder `dirfd` (may be O_PATH) and takes its lock. */
int journal_create(int dirfd, const char run[ULID_TEXT], struct journal **ret, struct error *err);

/* Opens an existing journal for appending: takes the lock (-EWOULDBLOCK: a live controller holds it, or the file is
 * empty and younger than ten seconds, so that its creator may be about to), checks the chain, and where the last line
 * is torn (no newline, or NUL bytes where blocks never reached the disk) cuts it off and appends a "journal.repaired"
 * record that carries the cut bytes' count and digest. Any other mismatch is -EBADMSG (tampering) and nothing is
 * written. A journal of which no record survives takes the run's name from the folder's. */
int journal_open(int dirfd, struct journal **ret, struct error *err);

enum journal_sync { JOURNAL_WRITTEN, JOURNAL_ON_DISK };

/* Appends one record. `body` is a borrowed object of whole numbers, text, booleans, null, arrays and objects. With
 * JOURNAL_ON_DISK the record has reached the disk on return.
 * After a failed write (a full disk) the journal refuses every later record: what cannot be recorded must not happen.
 * Refused without that consequence: -EINVAL, a body that is NULL (jansson's answer to text that is not UTF-8), too
 * deep, or with fractions or NUL in it; -EMSGSIZE, a record past JOURNAL_LINE_MAX; -EDQUOT, the budget is used up
 * (limit.hit, step.end, run.end and run.lost may still use JOURNAL_RESERVE). The process must ignore SIGXFSZ. */
int journal_append(struct journal *j, const char *type, json_t *body, enum journal_sync sync, struct error *err);

/* A JSON string of foreign bytes: as they are when they are UTF-8 without NUL, else in the harmless form of
 * str_put_safe, so that a name made to break the record cannot suppress it. At most 4096 bytes are kept, then "...".
 * A new reference; NULL when memory ran out. */
json_t *journal_text(const char *bytes, size_t n);

/* Hash of the last record, and the number of records (the next one's seq). */
const char *journal_head(const struct journal *j);
uint64_t journal_seq(const struct journal *j);

/* Flushes nothing by itself; releases the lock. NULL is fine; returns NULL. */
struct journal *journal_close(struct journal *j);
static inline void journal_closep(struct journal **j) {
    *j = journal_close(*j);
}
#define _cleanup_journal_ _cleanup_(journal_closep)

struct journal_report {
    char run[ULID_TEXT]; /* the run that the records name, "" when there is none */
    uint64_t records;    /* that fit */
    uint64_t first_bad;  /* seq of the first record that does not fit, UINT64_MAX when all do */
    uint64_t torn_bytes; /* length of the torn line */
    bool torn;           /* the last line is incomplete */
    bool ended;          /* the last record is the run's end (run.end or run.lost) */
    char head[DIGEST_HEX];
    char why[256]; /* what is wrong, "" when nothing is; harmless on a terminal */
};

/* Recomputes the chain from bytes (pure; the fuzzer's target). */
void journal_check(const char *bytes, size_t n, struct journal_report *ret);

/* Reads a journal record by record, each checked against the chain before it is handed out. */
struct journal_reader;
int journal_reader_open(int dirfd, struct journal_reader **ret, struct error *err);
/* 1: *ret is the next record (a new reference). 0: there is no further whole record; a later call sees what was
 * appended meanwhile. -EBADMSG: the next one does not fit the chain, and no later call gets past it. */
int journal_reader_next(struct journal_reader *r, json_t **ret, struct error *err);
/* What is known after the calls so far; complete once one returned 0 or -EBADMSG. */
const struct journal_report *journal_reader_report(const struct journal_reader *r);
struct journal_reader *journal_reader_close(struct journal_reader *r);
static inline void journal_reader_closep(struct journal_reader **r) {
    *r = journal_reader_close(*r);
}
#define _cleanup_journal_reader_ _cleanup_(journal_reader_closep)

/* A record's time in microseconds since the epoch. The chain has checked the form; 0 for a day that no calendar has. */
uint64_t journal_time(const json_t *record);

/* Walks the records of a journal in order. `visit` returns 0 to go on; another value ends the walk and is returned.
 * A torn last line is not visited and is no error. */
int journal_walk(int dirfd, int (*visit)(void *data, const json_t *record), void *data, struct error *err);

/* True while a controller holds the journal's lock (or may be about to, see journal_open). */
bool journal_is_live(int dirfd);
