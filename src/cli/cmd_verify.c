/* cmd_verify.c: is a run's record what was recorded? Journal chain, recorded head, stored plans, stored exports.
 * runs in: cli (untrusted input: journal, index, plan files, stored bytes; holds: nothing) */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit/store.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "cli/story.h"
#include "export/blob.h"

static bool as_json;

static const struct cli_option options[] = {
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

/* What the index knew of the run before we came. */
enum index_answer { INDEX_NEW, INDEX_KNOWN, INDEX_UNREADABLE };

struct findings {
    const struct place *place;
    const char *run;
    struct story story;
    struct journal_report report;
    bool live;
    enum index_answer index;
    struct store_run row;
    struct error index_error;
    json_t *exports;  /* {"step","name","digest","state"} */
    json_t *problems; /* texts */
};

static void free_findings(struct findings *f) {
    story_free(&f->story);
    json_decref(f->exports);
    json_decref(f->problems);
}

static void add_problem(struct findings *f, const char *format, ...) _printf_(2, 3);

static void add_problem(struct findings *f, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    json_array_append_new(f->problems, journal_text(text, strlen(text)));
}

static const char *text_of(const json_t *object, const char *key) {
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static int read_report(int dirfd, struct journal_report *ret, struct error *err) {
    _cleanup_journal_reader_ struct journal_reader *reader = NULL;
    int r = journal_reader_open(dirfd, &reader, err);
    while (r >= 0) {
        _cleanup_json_ json_t *record = NULL;
        r = journal_reader_next(reader, &record, err);
        if (r == 0 || r == -EBADMSG) {
            *ret = *journal_reader_report(reader);
            return 0;
        }
    }
    return r;
}

static void judge_chain(struct findings *f) {
    const struct journal_report *j = &f->report;
    if (j->first_bad != UINT64_MAX)
        add_problem(f, "record %" PRIu64 " does not fit: %s", j->first_bad, j->why);
    else if (j->torn && !f->live)
        add_problem(f, "the last line is incomplete (%" PRIu64 " bytes): its writer died", j->torn_bytes);
    if (j->records && strcmp(j->run, f->run) != 0)
        add_problem(f, "the journal is that of run %s", j->run);
    if (j->first_bad == UINT64_MAX && !j->ended && !f->live)
        add_problem(f, "there is no end on record and no live controller: the last records are missing, or it died and "
                       "no doorward command has marked the run lost yet");
}

/* The head that the index wrote down when it first met the ended run. An unknown one is written down now. */
static void ask_index(struct findings *f, int dirfd) {
    _cleanup_store_ struct store *store = NULL;
    struct store_run row;
    int r = store_open(f->place->state_fd, &store, &f->index_error);
    if (r == 0)
        r = store_find_run(store, f->run, &f->row, &f->index_error);
    f->index = r < 0 ? INDEX_UNREADABLE : r == 1 && f->row.ended_us ? INDEX_KNOWN : INDEX_NEW;
    if (f->index == INDEX_NEW && f->report.ended && store_read_run(dirfd, f->run, &row, NULL) == 0)
        store_put_run(store, &row, NULL);
    if (f->index == INDEX_KNOWN && strcmp(f->row.journal_head, f->report.head) != 0)
        add_problem(
            f,
            "the head on record is %s, the journal's is %s: records were removed or written anew after the run ended",
            f->row.journal_head, f->report.head);
}

static void judge_plans(struct findings *f) {
    for (size_t i = 0; i < f->story.n_steps; i++) {
        const char *state = text_of(f->story.steps[i].json, "plan_state"),
                   *step = text_of(f->story.steps[i].json, "step");
        if (!strcmp(state, "missing"))
            add_problem(f, "the plan of step %s is missing", step);
        else if (!strcmp(state, "changed"))
            add_problem(f, "the stored plan of step %s is not the one that was enforced", step);
    }
}

/* "whole", "missing" or "changed". */
static const char *export_state(struct findings *f, const json_t *e) {
    char path[BLOB_PATH_MAX], digest[DIGEST_HEX];
    const char *want = text_of(e, "digest");
    if (!digest_is_hex(want))
        return "missing";
    blob_path(want, json_is_true(json_object_get(e, "executable")) ? BLOB_MODE_EXECUTABLE : BLOB_MODE_PLAIN, path);
    _cleanup_fd_ int fd = fd_open_beneath(f->place->state_fd, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return "missing";
    return digest_copy(fd, -1, UINT64_MAX, digest, NULL) == 0 && !strcmp(digest, want) ? "whole" : "changed";
}

static void judge_exports(struct findings *f, const json_t *step) {
    json_t *e;
    size_t i;
    json_array_foreach(json_object_get(step, "exports"), i, e) {
        if (strcmp(text_of(e, "state"), "collected") != 0)
            continue;
        const char *state = export_state(f, e);
        json_array_append_new(f->exports,
                              json_pack("{s:s, s:s, s:s, s:s}", "step", text_of(step, "step"), "name",
                                        text_of(e, "name"), "digest", text_of(e, "digest"), "state", state));
        if (strcmp(state, "whole") != 0)
            add_problem(f, "export %s of step %s is %s in the store", text_of(e, "name"), text_of(step, "step"), state);
    }
}

static json_t *answer_json(const struct findings *f) {
    json_t *plans = json_array();
    for (size_t i = 0; i < f->story.n_steps; i++)
        json_array_append_new(plans, json_pack("{s:O, s:O}", "step", json_object_get(f->story.steps[i].json, "step"),
                                               "state", json_object_get(f->story.steps[i].json, "plan_state")));
    return json_pack("{s:s, s:b, s:O, s:o, s:o, s:o, s:o, s:O, s:O}", "run", f->run, "ok",
                     json_array_size(f->problems) == 0, "state", json_object_get(f->story.json, "state"), "journal",
                     story_journal(&f->report), "recorded_head",
                     f->index == INDEX_KNOWN ? json_string(f->row.journal_head) : json_null(), "index_error",
                     f->index == INDEX_UNREADABLE ? json_string(f->index_error.message) : json_null(), "plans", plans,
                     "exports", f->exports, "problems", f->problems);
}

static void put_index(struct buf *b, const struct findings *f) {
    if (f->index == INDEX_UNREADABLE) {
        buf_puts(b, "  head       not compared: ");
        str_put_safe(b, f->index_error.message, strlen(f->index_error.message));
        buf_puts(b, "\n");
    } else if (f->index == INDEX_NEW) {
        buf_printf(b, "  head       %s\n",
                   f->report.ended ? "was not on record before; it is now" : "is put on record when the run has ended");
    } else if (!strcmp(f->row.journal_head, f->report.head)) {
        buf_puts(b, "  head       is the one on record\n");
    }
}

static void put_answer(struct buf *b, const struct findings *f) {
    const json_t *problem;
    size_t i;
    bool fits = f->report.first_bad == UINT64_MAX;
    buf_printf(b, "run %s: %s\n", f->run, json_array_size(f->problems) ? "NOT as recorded" : "as recorded");
    buf_printf(b, "  journal    %" PRIu64 " records%s, head %s\n", f->report.records, fits ? "" : " fit",
               f->report.head);
    put_index(b, f);
    buf_printf(b, "  plans      %zu\n  exports    %zu\n", f->story.n_steps, json_array_size(f->exports));
    if (f->live)
        buf_puts(b, "  state      the run is still going\n");
    json_array_foreach(f->problems, i, problem) {
        buf_puts(b, "  PROBLEM    ");
        str_put_safe(b, json_string_value(problem), json_string_length(problem));
        buf_puts(b, "\n");
    }
}

static int print_answer(const struct findings *f, struct error *err) {
    _cleanup_json_ json_t *answer = as_json ? answer_json(f) : NULL;
    _cleanup_buf_ struct buf page = {0};
    if (as_json)
        return output_json(answer, err);
    put_answer(&page, f);
    return output_page(&page, err);
}

static int run_verify(const struct cli_words *words, struct error *err) {
    _cleanup_place_ struct place place = PLACE_EMPTY;
    _cleanup_(free_findings) struct findings f = {.exports = json_array(), .problems = json_array()};
    _cleanup_fd_ int dirfd = -1;
    char run[ULID_TEXT];
    int r = runs_open(&place, words->args[0], run, &dirfd, err);
    f.place = &place;
    f.run = run;
    if (r == 0) {
        f.live = journal_is_live(dirfd); /* asked first: a run that ends meanwhile has its end on record */
        r = read_report(dirfd, &f.report, err);
    }
    if (r == 0)
        r = story_read(dirfd, run, &f.story, err);
    if (r < 0)
        return r;
    judge_chain(&f);
    ask_index(&f, dirfd);
    judge_plans(&f);
    for (size_t i = 0; i < f.story.n_steps; i++)
        judge_exports(&f, f.story.steps[i].json);
    r = print_answer(&f, err);
    return r < 0 ? r : json_array_size(f.problems) ? 1 : 0;
}

const struct verb verb_verify = {
    .name = "verify",
    .args = "RUN",
    .summary = "recompute a run's journal, and compare what is stored with what it recorded",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run_verify,
};
