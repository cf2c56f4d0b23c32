/* story.c: see story.h. Each type of record has one function that adds what it says to the story.
 * runs in: cli (untrusted input: journal and plan files, which somebody may have changed; holds: nothing) */
#include "cli/story.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/store.h"
#include "base/fd.h"

void story_free(struct story *s) {
    for (size_t i = 0; i < s->n_steps; i++)
        plan_free(&s->steps[i].plan);
    json_decref(s->json);
    *s = (struct story){0};
}

const char *story_state(int run_dirfd, const char *stop, bool ended) {
    if (ended || !strcmp(stop, STORE_DAMAGED))
        return stop;
    return journal_is_live(run_dirfd) ? "running" : "unfinished";
}

json_t *story_journal(const struct journal_report *report) {
    bool damaged = report->first_bad != UINT64_MAX;
    return json_pack("{s:I, s:s, s:s, s:o, s:s}", "records", (json_int_t)report->records, "head", report->head, "state",
                     damaged        ? "damaged"
                     : report->torn ? "torn"
                                    : "whole",
                     "first_bad", damaged ? json_integer((json_int_t)report->first_bad) : json_null(), "why",
                     report->why);
}

/* Copies those of `keys` (NULL-terminated) that `from` has. */
static void copy_members(json_t *to, const json_t *from, const char *const *keys) {
    for (; *keys; keys++)
        if (json_object_get(from, *keys))
            json_object_set(to, *keys, json_object_get(from, *keys));
}

/* The step that the body names; made when it is met first. NULL past STORY_STEPS_MAX or without a name. */
static struct story_step *step_of(struct story *s, const json_t *body) {
    const char *name;
    if (json_get_string(body, "body", "step", &name, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < s->n_steps; i++)
        if (!strcmp(json_string_value(json_object_get(s->steps[i].json, "step")), name))
            return &s->steps[i];
    if (s->n_steps == STORY_STEPS_MAX)
        return NULL;
    struct story_step *step = &s->steps[s->n_steps++];
    *step = (struct story_step){.json = json_pack("{s:s, s:[], s:[], s:[], s:[], s:[], s:[]}", "step", name, "denied",
                                                  "refusals", "exports", "limits_hit", "inputs", "secrets")};
    json_array_append_new(json_object_get(s->json, "steps"), step->json);
    return step;
}

static void on_run_start(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    static const char *const keys[] = {"task", "purpose", "doorward", "mode", "kernel", "policy_digest", NULL};
    copy_members(s->json, body, keys);
}

static void on_step_plan(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    static const char *const keys[] = {"plan_digest", "program", NULL};
    copy_members(step->json, body, keys);
}

static void on_step_enforced(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    static const char *const keys[] = {"limits", "walls", "ids", "notes", NULL};
    copy_members(step->json, json_object_get(body, "enforced"), keys);
}

static void on_step_start(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    json_object_set(step->json, "started", json_object_get(record, "time"));
}

/* The entry of this attempt at this door, made when it is met first. */
static json_t *denial_of(json_t *list, const json_t *body) {
    json_t *entry, *door = json_object_get(body, "door"), *attempt = json_object_get(body, "attempt");
    size_t i;
    json_array_foreach(list, i, entry) {
        json_t *d = json_object_get(entry, "door"), *a = json_object_get(entry, "attempt");
        if ((d == door || json_equal(d, door)) && (a == attempt || json_equal(a, attempt)))
            return entry;
    }
    entry = json_pack("{s:O*, s:O*, s:i}", "door", door, "attempt", attempt, "times", 0);
    json_array_append_new(list, entry);
    return entry;
}

static void on_denied(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    json_t *entry = denial_of(json_object_get(step->json, "denied"), body);
    json_int_t sum = json_integer_value(json_object_get(entry, "times"));
    uint64_t times = 1;
    json_get_u64(body, "body", "times", &times, NULL);
    if (__builtin_add_overflow(sum, times, &sum))
        sum = INT64_MAX;
    json_object_set_new(entry, "times", json_integer(sum));
    if (!json_object_get(entry, "first"))
        json_object_set(entry, "first", json_object_get(record, "time"));
    json_object_set(entry, "last", json_object_get(record, "time"));
}

static void on_refusal(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    json_array_append(json_object_get(step->json, "refusals"), json_object_get(body, "reason"));
}

static void on_limit(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    static const char *const keys[] = {"limit", "hard", "cap", "peak", "remedy", NULL};
    json_t *hit = json_object();
    copy_members(hit, body, keys);
    json_array_append_new(json_object_get(step->json, "limits_hit"), hit);
}

static void on_export(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    static const char *const keys[] = {"name", "digest",   "size", "executable", "incomplete",
                                       "path", "required", "why",  NULL};
    const char *type = json_string_value(json_object_get(record, "type"));
    json_t *e = json_pack("{s:s}", "state", strchr(type, '.') + 1);
    copy_members(e, body, keys);
    json_array_append_new(json_object_get(step->json, "exports"), e);
}

static void on_input(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    static const char *const keys[] = {"target", "source", "kind",    "complete", "files", "bytes", "digest",
                                       "commit", "ref",    "changed", "changes",  "why",   NULL};
    json_t *e = json_object();
    copy_members(e, body, keys);
    json_array_append_new(json_object_get(step->json, "inputs"), e);
}

static void on_secret(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    static const char *const keys[] = {"target", "path", "line", "rule", NULL};
    json_t *e = json_object();
    copy_members(e, body, keys);
    json_array_append_new(json_object_get(step->json, "secrets"), e);
}

static void on_step_end(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    static const char *const keys[] = {"stop", "exit", "message", "used", NULL};
    copy_members(step->json, body, keys);
    json_object_set(step->json, "ended", json_object_get(record, "time"));
}

static void on_run_end(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    static const char *const keys[] = {"stop", "exit", "message", NULL};
    copy_members(s->json, body, keys);
    json_object_set(s->json, "ended", json_object_get(record, "time"));
}

static void on_run_lost(struct story *s, struct story_step *step, const json_t *body, const json_t *record) {
    json_object_set_new(s->json, "stop", json_string("lost"));
    json_object_set_new(s->json, "exit", json_integer(125));
    json_object_set(s->json, "message", json_object_get(body, "why"));
    json_object_set(s->json, "ended", json_object_get(record, "time"));
}

static const struct {
    const char *type;
    bool of_step;
    void (*add)(struct story *s, struct story_step *step, const json_t *body, const json_t *record);
} types[] = {
    {"run.start", false, on_run_start},
    {"step.plan", true, on_step_plan},
    {"step.enforced", true, on_step_enforced},
    {"step.start", true, on_step_start},
    {"door.denied", true, on_denied},
    {"step.refusal", true, on_refusal},
    {"limit.hit", true, on_limit},
    {"export.collected", true, on_export},
    {"export.missing", true, on_export},
    {"export.refused", true, on_export},
    {"input.digest", true, on_input},
    {"input.secret", true, on_secret},
    {"step.end", true, on_step_end},
    {"run.end", false, on_run_end},
    {"run.lost", false, on_run_lost},
};

static void add_record(struct story *s, const json_t *record) {
    const char *type = json_string_value(json_object_get(record, "type"));
    const json_t *body = json_object_get(record, "body");
    if (json_is_null(json_object_get(s->json, "started")))
        json_object_set(s->json, "started", json_object_get(record, "time"));
    for (size_t i = 0; i < ELEMENTS(types); i++) {
        struct story_step *step = NULL;
        if (strcmp(types[i].type, type) != 0 || (types[i].of_step && !(step = step_of(s, body))))
            continue;
        types[i].add(s, step, body, record);
    }
}

/* "NAME=value" becomes "NAME": values may be secrets. */
static void hide_values(json_t *plan) {
    json_t *names = json_array(), *item;
    size_t i;
    json_array_foreach(json_object_get(plan, "env"), i, item) {
        const char *s = json_string_value(item);
        json_array_append_new(names, json_stringn(s ? s : "", s ? strcspn(s, "=") : 0));
    }
    json_object_set_new(plan, "env", names);
}

/* The stored plan counts only when it is the one that the journal names. The member "plan_state" says how that went. */
static const char *read_plan(int run_dirfd, struct story_step *step) {
    _cleanup_free_ char *bytes = NULL;
    char name[PLAN_NAME_MAX + 32], digest[DIGEST_HEX];
    const char *want, *word;
    size_t n;
    struct error err;
    if (json_get_string(step->json, "step", "plan_digest", &want, NULL) < 0)
        return "none";
    if (json_get_string(step->json, "step", "step", &word, NULL) < 0 || strlen(word) > PLAN_NAME_MAX ||
        strchr(word, '/'))
        return "missing";
    snprintf(name, sizeof(name), "plan-%s.json", word);
    _cleanup_fd_ int fd = fd_open_beneath(run_dirfd, name, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0 || fd_read_file(fd, PLAN_ENCODED_MAX, &bytes, &n, &err) < 0)
        return "missing";
    digest_hex(bytes, n, digest);
    if (strcmp(digest, want) != 0 || plan_decode(bytes, n, &step->plan, &err) < 0)
        return "changed";
    step->has_plan = true;
    json_t *plan;
    if (json_read(bytes, n, &plan, NULL) == 0) {
        hide_values(plan);
        json_object_set_new(step->json, "plan", plan);
    }
    return "whole";
}

static void read_plans(int run_dirfd, struct story *s) {
    for (size_t i = 0; i < s->n_steps; i++)
        json_object_set_new(s->steps[i].json, "plan_state", json_string(read_plan(run_dirfd, &s->steps[i])));
}

/* Microseconds from the first record to the last one, or to now while the run lives. */
static void put_times(struct story *s, uint64_t first, uint64_t last, const char *state) {
    if (!strcmp(state, "running"))
        last = clock_real_us();
    json_object_set_new(s->json, "took_us",
                        first && last >= first ? json_integer((json_int_t)(last - first)) : json_null());
}

int story_read(int run_dirfd, const char run[ULID_TEXT], struct story *ret, struct error *err) {
    _cleanup_journal_reader_ struct journal_reader *reader = NULL;
    _cleanup_story_ struct story s = {0};
    uint64_t first = 0, last = 0;
    int r = journal_reader_open(run_dirfd, &reader, err);
    if (r < 0)
        return r;
    s.json = json_pack("{s:s, s:n, s:n, s:n, s:n, s:[]}", "run", run, "started", "ended", "stop", "exit", "steps");
    do {
        _cleanup_json_ json_t *record = NULL;
        r = journal_reader_next(reader, &record, err);
        if (r > 0) {
            add_record(&s, record);
            last = journal_time(record);
            first = first ? first : last;
        }
    } while (r > 0);
    if (r < 0 && r != -EBADMSG)
        return r;
    const struct journal_report *report = journal_reader_report(reader);
    const char *stop = json_string_value(json_object_get(s.json, "stop"));
    bool damaged = r == -EBADMSG || (report->records && strcmp(report->run, run) != 0);
    const char *state = story_state(run_dirfd, damaged ? STORE_DAMAGED : stop ? stop : "", report->ended);
    json_object_set_new(s.json, "state", json_string(damaged ? STORE_DAMAGED : state));
    json_object_set_new(s.json, "journal", story_journal(report));
    put_times(&s, first, last, state);
    read_plans(run_dirfd, &s);
    *ret = s;
    s = (struct story){0};
    return 0;
}
