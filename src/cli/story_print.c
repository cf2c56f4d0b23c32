/* story_print.c: the page of one run for a person. Short: what is exact and long stands in --json.
 * runs in: cli (untrusted input: the story's texts; holds: nothing) */
#include <inttypes.h>
#include <string.h>

#include "audit/store.h"
#include "base/str.h"
#include "cli/story.h"
#include "cli/words.h"

enum { LABEL = 12, NAME_COLUMN = 11, FIGURE_COLUMN = 10, BY_COLUMN = 11, COMMIT_SHOWN = 12 };

static const char *text_of(const json_t *object, const char *key) {
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static void put_text(struct buf *b, const char *s) {
    str_put_safe(b, s, strlen(s));
}

static void put_label(struct buf *b, const char *label) {
    size_t from = b->n;
    buf_printf(b, "  %s", label);
    words_pad(b, from, LABEL);
}

/* "completed, exit 0", or what it is doing. */
static void put_stop(struct buf *b, const json_t *object, const char *otherwise) {
    const json_t *exit = json_object_get(object, "exit");
    const char *stop = text_of(object, "stop");
    put_text(b, *stop ? stop : otherwise);
    if (*stop && json_is_integer(exit))
        buf_printf(b, ", exit %lld", (long long)json_integer_value(exit));
}

static void put_when(struct buf *b, const json_t *run) {
    const json_t *took = json_object_get(run, "took_us");
    const char *started = text_of(run, "started");
    put_label(b, "started");
    if (strlen(started) > 19)
        buf_printf(b, "%.10s %.8s UTC", started, started + 11);
    else
        buf_puts(b, "never");
    if (json_is_integer(took)) {
        buf_puts(b, json_is_null(json_object_get(run, "ended")) ? ", since " : ", took ");
        words_took(b, (uint64_t)json_integer_value(took));
    }
    buf_puts(b, "\n");
}

static void put_optional(struct buf *b, const char *label, const json_t *object, const char *key) {
    const char *s = text_of(object, key);
    if (!*s)
        return;
    put_label(b, label);
    put_text(b, s);
    buf_puts(b, "\n");
}

static void put_head(struct buf *b, const json_t *run) {
    buf_printf(b, "run %s\n", text_of(run, "run"));
    put_optional(b, "task", run, "task");
    put_optional(b, "purpose", run, "purpose");
    put_label(b, "stop");
    put_stop(b, run, text_of(run, "state"));
    const char *message = text_of(run, "message");
    buf_puts(b, *message ? ": " : "");
    put_text(b, message);
    buf_puts(b, "\n");
    put_when(b, run);
    put_label(b, "made by");
    buf_puts(b, "doorward ");
    put_text(b, text_of(run, "doorward"));
    buf_puts(b, *text_of(run, "mode") ? " as " : "");
    put_text(b, text_of(run, "mode"));
    buf_puts(b, *text_of(run, "kernel") ? ", Linux " : "");
    put_text(b, text_of(run, "kernel"));
    buf_puts(b, "\n");
    put_optional(b, "policy", run, "policy_digest");
}

/* Where a step's `used` says what was used of a limit. */
static const struct {
    const char *key;
    void (*put)(struct buf *b, uint64_t v);
} used_keys[PLAN_LIMIT_N] = {
    [PLAN_WALL] = {"wall_us", words_took},
    [PLAN_MEMORY] = {"memory_peak", words_size},
    [PLAN_PROCESSES] = {"processes_peak", NULL},
    [PLAN_DISK] = {"disk", words_size},
    [PLAN_FILES] = {"files", NULL},
    [PLAN_OUTPUT] = {"output", words_size},
};

static void put_figure(struct buf *b, enum plan_limit limit, const json_t *v) {
    char text[32];
    size_t from = b->n;
    buf_puts(b, json_is_integer(v) ? plan_limit_text(text, limit, (uint64_t)json_integer_value(v)) : "-");
    words_pad(b, from, FIGURE_COLUMN);
}

static void put_used(struct buf *b, enum plan_limit limit, const json_t *used) {
    const json_t *v = used_keys[limit].key ? json_object_get(used, used_keys[limit].key) : NULL;
    if (!json_is_integer(v))
        buf_puts(b, "-");
    else if (used_keys[limit].put)
        used_keys[limit].put(b, (uint64_t)json_integer_value(v));
    else
        buf_printf(b, "%lld", (long long)json_integer_value(v));
}

static void put_column(struct buf *b, const char *s, size_t width) {
    size_t from = b->n;
    put_text(b, s);
    words_pad(b, from, width);
}

static void put_limits(struct buf *b, const json_t *step) {
    const json_t *limits = json_object_get(step, "limits"), *used = json_object_get(step, "used");
    if (!json_object_size(limits))
        return;
    put_label(b, "limits");
    put_column(b, "", NAME_COLUMN);
    put_column(b, "asked", FIGURE_COLUMN);
    put_column(b, "in force", FIGURE_COLUMN);
    put_column(b, "by", BY_COLUMN);
    buf_puts(b, "used\n");
    for (enum plan_limit i = 0; i < PLAN_LIMIT_N; i++) {
        const json_t *limit = json_object_get(limits, plan_limit_names[i]);
        if (!limit)
            continue;
        put_label(b, "");
        put_column(b, plan_limit_names[i], NAME_COLUMN);
        put_figure(b, i, json_object_get(limit, "asked"));
        put_figure(b, i, json_object_get(limit, "in_force"));
        put_column(b, text_of(limit, "by"), BY_COLUMN);
        put_used(b, i, used);
        buf_puts(b, "\n");
    }
}

/* The walls that held in one line, each other one with its reason. */
static void put_walls(struct buf *b, const json_t *step) {
    const json_t *walls = json_object_get(step, "walls");
    const char *name, *between = "held: ";
    json_t *state;
    if (!json_object_size(walls))
        return;
    put_label(b, "walls");
    json_object_foreach((json_t *)walls, name, state) {
        if (strcmp(json_is_string(state) ? json_string_value(state) : "", "held") != 0)
            continue;
        buf_puts(b, between);
        put_text(b, name);
        between = ", ";
    }
    buf_puts(b, *between == 'h' ? "none held\n" : "\n");
    json_object_foreach((json_t *)walls, name, state) {
        const char *s = json_is_string(state) ? json_string_value(state) : "not known";
        if (!strcmp(s, "held"))
            continue;
        put_label(b, "");
        put_text(b, name);
        buf_puts(b, ": ");
        put_text(b, s);
        buf_puts(b, "\n");
    }
}

static void put_denial(struct buf *b, const json_t *e) {
    long long times = (long long)json_integer_value(json_object_get(e, "times"));
    put_text(b, text_of(e, "attempt"));
    buf_puts(b, *text_of(e, "door") ? " (" : "");
    put_text(b, text_of(e, "door"));
    buf_printf(b, "%s, %lld time%s", *text_of(e, "door") ? ")" : "", times, times == 1 ? "" : "s");
}

static void put_plain(struct buf *b, const json_t *e) {
    put_text(b, json_is_string(e) ? json_string_value(e) : "?");
}

static void put_limit_hit(struct buf *b, const json_t *e) {
    char text[32];
    const json_t *peak = json_object_get(e, "peak"), *cap = json_object_get(e, "cap");
    put_text(b, text_of(e, "limit"));
    for (enum plan_limit i = 0; i < PLAN_LIMIT_N; i++) {
        if (strcmp(plan_limit_names[i], text_of(e, "limit")) != 0)
            continue;
        if (json_is_integer(peak))
            buf_printf(b, ": %s used", plan_limit_text(text, i, (uint64_t)json_integer_value(peak)));
        if (json_is_integer(cap))
            buf_printf(b, ", %s allowed", plan_limit_text(text, i, (uint64_t)json_integer_value(cap)));
    }
    buf_puts(b, json_is_true(json_object_get(e, "hard")) ? "; it ended the step" : "; a call failed");
    buf_puts(b, *text_of(e, "remedy") ? "; " : "");
    put_text(b, text_of(e, "remedy"));
}

static void put_export(struct buf *b, const json_t *e) {
    const char *state = text_of(e, "state");
    put_text(b, text_of(e, "name"));
    if (strcmp(state, "collected") != 0) {
        buf_puts(b, ": ");
        put_text(b, state);
        buf_puts(b, *text_of(e, "path") ? ", " : "");
        put_text(b, text_of(e, "path"));
        buf_puts(b, *text_of(e, "why") ? ": " : "");
        put_text(b, text_of(e, "why"));
        return;
    }
    buf_puts(b, "  ");
    words_size(b, (uint64_t)json_integer_value(json_object_get(e, "size")));
    buf_puts(b, "  sha256:");
    put_text(b, text_of(e, "digest"));
    buf_puts(b, json_is_true(json_object_get(e, "incomplete")) ? "  (the step did not complete)" : "");
}

/* "/work: commit 1a2b3c4d5e6f (refs/heads/main), 3 changes, sha256:..." */
static void put_input(struct buf *b, const json_t *e) {
    const char *commit = text_of(e, "commit"), *digest = text_of(e, "digest"), *why = text_of(e, "why");
    const bool git = !strcmp(text_of(e, "kind"), "git");
    put_text(b, text_of(e, "target"));
    buf_puts(b, ": ");
    if (git && *commit) {
        buf_puts(b, "commit ");
        str_put_safe(b, commit, strnlen(commit, COMMIT_SHOWN));
        buf_puts(b, *text_of(e, "ref") ? " of " : "");
        put_text(b, text_of(e, "ref"));
        buf_printf(b, ", %lld changed", (long long)json_integer_value(json_object_get(e, "changes")));
    } else {
        buf_printf(b, "%lld files, ", (long long)json_integer_value(json_object_get(e, "files")));
        words_size(b, (uint64_t)json_integer_value(json_object_get(e, "bytes")));
    }
    buf_puts(b, *digest ? "  sha256:" : "");
    put_text(b, digest);
    buf_puts(b, *why ? "; not complete: " : "");
    put_text(b, why);
}

static void put_secret(struct buf *b, const json_t *e) {
    put_text(b, text_of(e, "target"));
    buf_puts(b, "/");
    put_text(b, text_of(e, "path"));
    if (json_integer_value(json_object_get(e, "line")))
        buf_printf(b, ", line %lld", (long long)json_integer_value(json_object_get(e, "line")));
    buf_puts(b, ": ");
    put_text(b, text_of(e, "rule"));
}

/* The lists of a step, in the order of the page. `none` is said where an empty list is an answer. */
static const struct {
    const char *key, *label, *none;
    void (*put)(struct buf *b, const json_t *entry);
} lists[] = {
    {"notes", "notes", NULL, put_plain},
    {"inputs", "inputs", NULL, put_input},
    {"secrets", "secrets", NULL, put_secret},
    {"denied", "denied", "nothing was tried that the walls report", put_denial},
    {"refusals", "refused", NULL, put_plain},
    {"limits_hit", "limit hit", NULL, put_limit_hit},
    {"exports", "exports", "none", put_export},
};

static void put_lists(struct buf *b, const json_t *step) {
    for (size_t i = 0; i < ELEMENTS(lists); i++) {
        const json_t *list = json_object_get(step, lists[i].key);
        json_t *entry;
        size_t k;
        json_array_foreach(list, k, entry) {
            put_label(b, k ? "" : lists[i].label);
            lists[i].put(b, entry);
            buf_puts(b, "\n");
        }
        if (!json_array_size(list) && lists[i].none) {
            put_label(b, lists[i].label);
            buf_printf(b, "%s\n", lists[i].none);
        }
    }
}

static void put_reach(struct buf *b, const struct story_step *step) {
    static const struct {
        const char *state, *text;
    } states[] = {
        {"missing", "its file is missing, so what the step could reach is not known"},
        {"changed", "its file is NOT the plan that was enforced, and is not shown"},
    };
    const char *state = text_of(step->json, "plan_state");
    if (step->has_plan)
        plan_print_reach(&step->plan, b);
    put_optional(b, "plan", step->json, "plan_digest");
    for (size_t i = 0; i < ELEMENTS(states); i++)
        if (!strcmp(state, states[i].state)) {
            put_label(b, "");
            buf_printf(b, "%s\n", states[i].text);
        }
}

static void put_step(struct buf *b, const struct story_step *step, const char *run_state) {
    const json_t *started = json_object_get(step->json, "started"), *used = json_object_get(step->json, "used");
    const json_t *wall = json_object_get(used, "wall_us");
    buf_puts(b, "\nstep ");
    put_text(b, text_of(step->json, "step"));
    buf_puts(b, ": ");
    put_stop(b, step->json, strcmp(run_state, "running") != 0 ? "no end on record" : started ? "running" : "starting");
    if (json_is_integer(wall)) {
        buf_puts(b, ", after ");
        words_took(b, (uint64_t)json_integer_value(wall));
    }
    const char *message = text_of(step->json, "message");
    buf_puts(b, *message ? "; " : "");
    put_text(b, message);
    buf_puts(b, "\n");
    put_reach(b, step);
    put_limits(b, step->json);
    put_walls(b, step->json);
    put_lists(b, step->json);
}

static void put_journal(struct buf *b, const json_t *journal) {
    const char *state = text_of(journal, "state");
    buf_printf(b, "\njournal     %lld records, head %s\n",
               (long long)json_integer_value(json_object_get(journal, "records")), text_of(journal, "head"));
    put_label(b, "");
    if (!strcmp(state, "whole"))
        buf_puts(b, "each record follows from the one before it\n");
    else if (!strcmp(state, "torn"))
        buf_puts(b, "its last line is incomplete\n");
    else
        buf_printf(b, "TAMPERED WITH: record %lld does not fit: %s\n",
                   (long long)json_integer_value(json_object_get(journal, "first_bad")), text_of(journal, "why"));
}

void story_print(const struct story *s, struct buf *b) {
    put_head(b, s->json);
    for (size_t i = 0; i < s->n_steps; i++)
        put_step(b, &s->steps[i], text_of(s->json, "state"));
    put_journal(b, json_object_get(s->json, "journal"));
}
