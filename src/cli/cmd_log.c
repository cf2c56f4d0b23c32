/* cmd_log.c: a run's records, one line each; with -f until the run ends.
 * runs in: cli (untrusted input: the journal; holds: nothing) */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/journal.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "cli/words.h"
#include "control/control.h"

enum { OFFSET_COLUMN = 13, TYPE_COLUMN = 17 };

static bool as_json, follow;

static const struct cli_option options[] = {
    {"follow", 'f', CLI_FLAG, &follow, NULL, "go on until the run ends"},
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

/* Time since the run's first record, type, sentence. */
static void put_line(struct buf *b, const json_t *record, uint64_t first_us) {
    uint64_t now = journal_time(record);
    bool back = now < first_us; /* the host's clock was set back */
    uint64_t us = back ? first_us - now : now - first_us;
    size_t from = b->n;
    buf_printf(b, "%c%" PRIu64 ".%06" PRIu64, back ? '-' : '+', us / 1000000, us % 1000000);
    words_pad(b, from, OFFSET_COLUMN);
    from = b->n;
    buf_puts(b, json_string_value(json_object_get(record, "type")));
    words_pad(b, from, TYPE_COLUMN);
    words_record(b, record);
}

/* With --json the record's own line, byte for byte, so that its hash can be recomputed; on a terminal what is beyond
 * ASCII is escaped. */
static void put_json(struct buf *b, const json_t *record) {
    char *text = isatty(STDOUT_FILENO) ? json_dumps(record, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII)
                                       : json_canonical(record);
    buf_puts(b, text ? text : "");
    free(text);
}

/* Prints what is there. `first_us` is kept from call to call, 0 before the first record. */
static int print_records(struct journal_reader *reader, uint64_t *first_us, struct error *err) {
    int r;
    do {
        _cleanup_json_ json_t *record = NULL;
        _cleanup_buf_ struct buf line = {0};
        r = journal_reader_next(reader, &record, err);
        if (r <= 0)
            break;
        if (!*first_us) {
            *first_us = journal_time(record);
            if (!as_json) {
                buf_puts(&line, "run ");
                buf_puts(&line, json_string_value(json_object_get(record, "run")));
                buf_puts(&line, ", first record ");
                words_time(&line, *first_us);
                buf_puts(&line, "\n");
            }
        }
        as_json ? put_json(&line, record) : put_line(&line, record, *first_us);
        buf_puts(&line, "\n");
        int w = output_page(&line, err);
        if (w < 0)
            return w;
    } while (r > 0);
    return fflush(stdout) == 0 || r < 0 ? r : error_errno(err, -errno, "cannot write standard output");
}

/* A controller that died writes no end: its lock is free. Then the run is put on record as lost, here and now, and what
 * that appended is printed like the rest. */
static int follow_records(struct journal_reader *reader, const struct place *place, const char *run, int dirfd,
                          uint64_t *first_us, struct error *err) {
    _cleanup_fd_ int notify = follow_watch(place, run);
    bool lost = false;
    for (;;) {
        bool live = journal_is_live(dirfd); /* asked first: it may write its end between question and reading */
        int r = print_records(reader, first_us, err);
        if (r < 0 || journal_reader_report(reader)->ended)
            return r;
        if (!live && lost)
            return error_set(err, -EIO, "run %s has no end on record and no live controller", run);
        if (!live && (r = control_lose(place, run, err)) < 0)
            return r;
        lost = !live;
        if (live && !follow_wait(notify))
            return 0;
    }
}

static int run_log(const struct cli_words *words, struct error *err) {
    _cleanup_place_ struct place place = PLACE_EMPTY;
    _cleanup_journal_reader_ struct journal_reader *reader = NULL;
    _cleanup_fd_ int dirfd = -1;
    char run[ULID_TEXT];
    uint64_t first_us = 0;
    int r = runs_open(&place, words->args[0], run, &dirfd, err);
    if (r == 0)
        r = journal_reader_open(dirfd, &reader, err);
    if (r == 0)
        r = print_records(reader, &first_us, err);
    if (r == 0 && follow && !journal_reader_report(reader)->ended)
        r = follow_records(reader, &place, run, dirfd, &first_us, err);
    if (r == -EBADMSG)
        error_wrap(err, "run %s was tampered with, or its disk lost data; only what stands above can be trusted", run);
    return r;
}

const struct verb verb_log = {
    .name = "log",
    .args = "RUN",
    .summary = "print a run's records, one line each",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run_log,
};
