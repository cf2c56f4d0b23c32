/* row.c: one run's row of the index, from its journal. runs in: cli, controller (after a run) (untrusted input: a
 * journal's bytes, which somebody may have changed; holds: nothing) */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "audit/journal.h"
#include "audit/store.h"

static void take_text(const json_t *body, const char *key, char *to, size_t room) {
    const char *text = NULL;
    if (json_get_string(body, "body", key, &text, NULL) == 0)
        snprintf(to, room, "%s", text);
}

static void take_record(struct store_run *row, const json_t *record) {
    const json_t *body = json_object_get(record, "body");
    const char *type = json_string_value(json_object_get(record, "type"));
    if (!row->started_us)
        row->started_us = journal_time(record);
    if (!strcmp(type, "run.start")) {
        take_text(body, "task", row->task, sizeof(row->task));
        take_text(body, "policy_digest", row->policy_digest, sizeof(row->policy_digest));
    }
    bool lost = !strcmp(type, "run.lost"), end = !strcmp(type, "run.end");
    if (!lost && !end)
        return;
    row->ended_us = journal_time(record);
    row->exit_status = lost ? 125 : (int)json_integer_value(json_object_get(body, "exit"));
    snprintf(row->stop, sizeof(row->stop), "%s", lost ? "lost" : "");
    if (end)
        take_text(body, "stop", row->stop, sizeof(row->stop));
}

int store_read_run(int run_dirfd, const char run[ULID_TEXT], struct store_run *ret, struct error *err) {
    _cleanup_journal_reader_ struct journal_reader *reader = NULL;
    struct store_run row = {0};
    int r = journal_reader_open(run_dirfd, &reader, err);
    if (r < 0)
        return r;
    snprintf(row.run, sizeof(row.run), "%s", run);
    do {
        _cleanup_json_ json_t *record = NULL;
        r = journal_reader_next(reader, &record, err);
        if (r > 0)
            take_record(&row, record);
    } while (r > 0);
    if (r < 0 && r != -EBADMSG)
        return r;
    const struct journal_report *report = journal_reader_report(reader);
    snprintf(row.journal_head, sizeof(row.journal_head), "%s", report->head);
    if (!report->ended)
        row.ended_us = 0;
    if (r == -EBADMSG || (report->records && strcmp(report->run, run) != 0)) {
        row.ended_us = 0;
        snprintf(row.stop, sizeof(row.stop), STORE_DAMAGED);
    }
    *ret = row;
    return 0;
}
