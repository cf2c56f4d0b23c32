/* cmd_ps.c: the table of runs. runs in: cli (untrusted input: the index, made from journals; holds: nothing) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "audit/journal.h"
#include "audit/store.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/common.h"
#include "cli/output.h"
#include "cli/story.h"
#include "cli/words.h"
#include "control/control.h"

enum { SHOWN = 20, RUN_COLUMN = 28, STARTED_COLUMN = 25, LEAST_COLUMN = 4, GAP = 2, TASK_COLUMN_MAX = 40 };

static bool as_json, all, only_running;

static const struct cli_option options[] = {
    {"all", 'a', CLI_FLAG, &all, NULL, "all runs, not only the last 20"},
    {"running", 0, CLI_FLAG, &only_running, NULL, "only runs that are going on"},
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

struct listing {
    const struct place *place;
    json_t *runs; /* what is printed */
    size_t left_out;
};

/* "gone": the index knows the run, but somebody removed its journal. */
static const char *state_of(const struct place *place, const struct store_run *row) {
    _cleanup_fd_ int dirfd = place_open_run(place, row->run, false, NULL);
    if (dirfd < 0 || faccessat(dirfd, JOURNAL_NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return "gone";
    return story_state(dirfd, row->stop, row->ended_us != 0);
}

static json_t *time_json(uint64_t us) {
    char text[CLOCK_TEXT];
    return us ? json_string(clock_text(text, us)) : json_null();
}

static json_t *row_json(const struct store_run *row, const char *state) {
    bool running = !strcmp(state, "running");
    uint64_t end = running ? clock_real_us() : row->ended_us;
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "run", row->run, "task", row->task, "state", state,
                     "stop", row->ended_us ? json_string(row->stop) : json_null(), "exit",
                     row->ended_us ? json_integer(row->exit_status) : json_null(), "started",
                     time_json(row->started_us), "ended", time_json(row->ended_us), "took_us",
                     end > row->started_us ? json_integer((json_int_t)(end - row->started_us)) : json_null());
}

static int add_row(void *data, const struct store_run *row) {
    struct listing *l = data;
    if (only_running && (row->ended_us || row->stop[0]))
        return 0;
    if (!all && json_array_size(l->runs) >= SHOWN) {
        l->left_out++;
        return 0;
    }
    json_t *entry = row_json(row, state_of(l->place, row));
    return entry && json_array_append_new(l->runs, entry) == 0 ? 0 : -ENOMEM;
}

static const char *text_of(const json_t *row, const char *key) {
    const char *s = json_string_value(json_object_get(row, key));
    return s ? s : "";
}

/* "failed (3)": the exit status where it says more than the stop does. */
static void put_state(struct buf *b, const json_t *row) {
    const char *state = text_of(row, "state");
    str_put_safe(b, state, strlen(state));
    if (!strcmp(state, "failed"))
        buf_printf(b, " (%lld)", (long long)json_integer_value(json_object_get(row, "exit")));
}

static void put_task(struct buf *b, const json_t *row) {
    char task[TASK_COLUMN_MAX];
    buf_puts(b, str_safe(task, sizeof(task), text_of(row, "task")));
}

/* Columns that the widest entry needs. */
static size_t width_of(const json_t *runs, const char *title, void (*put)(struct buf *b, const json_t *row)) {
    size_t i, width = strlen(title);
    json_t *row;
    json_array_foreach(runs, i, row) {
        _cleanup_buf_ struct buf b = {0};
        put(&b, row);
        width = b.n > width ? b.n : width;
    }
    return width + GAP;
}

static void put_started(struct buf *b, const json_t *row) {
    const char *s = text_of(row, "started");
    if (strlen(s) > 19)
        buf_printf(b, "%.10s %.8s UTC", s, s + 11);
    else
        buf_puts(b, "-");
}

static void put_took(struct buf *b, const json_t *row) {
    const json_t *took = json_object_get(row, "took_us");
    if (json_is_integer(took))
        words_took(b, (uint64_t)json_integer_value(took));
    else
        buf_puts(b, "-");
}

static void put_run(struct buf *b, const json_t *row) {
    buf_puts(b, text_of(row, "run"));
}

static const struct {
    const char *title;
    void (*put)(struct buf *b, const json_t *row);
} columns[] = {
    {"RUN", put_run}, {"TASK", put_task}, {"STATE", put_state}, {"STARTED", put_started}, {"TOOK", put_took},
};

static void put_table(struct buf *b, const json_t *runs) {
    size_t widths[ELEMENTS(columns)], i;
    json_t *row;
    for (size_t c = 0; c < ELEMENTS(columns); c++) {
        size_t from = b->n;
        widths[c] = width_of(runs, columns[c].title, columns[c].put);
        buf_puts(b, columns[c].title);
        if (c + 1 < ELEMENTS(columns))
            words_pad(b, from, widths[c]);
    }
    buf_puts(b, "\n");
    json_array_foreach(runs, i, row) {
        for (size_t c = 0; c < ELEMENTS(columns); c++) {
            size_t from = b->n;
            columns[c].put(b, row);
            if (c + 1 < ELEMENTS(columns))
                words_pad(b, from, widths[c]);
        }
        buf_puts(b, "\n");
    }
}

static int print_listing(const struct listing *l, struct error *err) {
    _cleanup_buf_ struct buf page = {0};
    if (as_json) {
        _cleanup_json_ json_t *answer = json_pack("{s:O, s:I}", "runs", l->runs, "left_out", (json_int_t)l->left_out);
        return output_json(answer, err);
    }
    if (json_array_size(l->runs))
        put_table(&page, l->runs);
    else
        buf_puts(&page, only_running ? "no run is running\n" : "no runs yet: `doorward run -- COMMAND` makes one\n");
    if (l->left_out)
        buf_printf(&page, "%zu more: `doorward ps -a`\n", l->left_out);
    return output_page(&page, err);
}

/* Lists what the index knows after it was brought up to date. */
static int list_runs(struct store *store, const struct place *place, struct listing *l, struct error *err) {
    json_decref(l->runs);
    *l = (struct listing){.place = place, .runs = json_array()};
    int r = store_sync(store, place->state_fd, err);
    return r < 0 ? r : store_each_run(store, add_row, l, err);
}

/* The sweep at the start finds dead controllers by the table of live ones; a run that is missing there (a state folder
 * that was copied, say) is found here. True when one was put on record as lost. */
static bool lose_unfinished(const struct listing *l) {
    const json_t *row;
    size_t i;
    bool any = false;
    json_array_foreach(l->runs, i, row) any |=
        !strcmp(text_of(row, "state"), "unfinished") && control_lose(l->place, text_of(row, "run"), NULL) == 0;
    return any;
}

static void free_listing(struct listing *l) {
    json_decref(l->runs);
}

static int open_and_list(struct store **store,
                         int (*open)(const struct place *place, struct store **ret, struct error *err),
                         const struct place *place, struct listing *l, struct error *err) {
    *store = store_close(*store);
    int r = open(place, store, err);
    if (r == 0)
        r = list_runs(*store, place, l, err);
    if (r == 0 && lose_unfinished(l))
        r = list_runs(*store, place, l, err);
    return r;
}

static int open_index(const struct place *place, struct store **ret, struct error *err) {
    return store_open(place->state_fd, ret, err);
}

static int open_nothing(const struct place *place, struct store **ret, struct error *err) {
    return store_open_memory(ret, err);
}

/* Whoever looks for what fills the disk must be able to list the runs: then without the index's file. */
static int run_ps(const struct cli_words *words, struct error *err) {
    _cleanup_place_ struct place place = PLACE_EMPTY;
    _cleanup_store_ struct store *store = NULL;
    _cleanup_(free_listing) struct listing l = {0};
    int r = cli_open_place(&place, err);
    if (r == 0)
        r = open_and_list(&store, open_index, &place, &l, err);
    if (r == -ENOSPC || r == -EROFS)
        r = open_and_list(&store, open_nothing, &place, &l, err);
    return r < 0 ? r : print_listing(&l, err);
}

const struct verb verb_ps = {
    .name = "ps",
    .args = "",
    .summary = "list the runs, newest first",
    .options = options,
    .run = run_ps,
};
