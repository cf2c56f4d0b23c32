/* words.c: see words.h.
 *
 * A record's sentence is a row of a table. In it {key} stands for the body's member, {key.below} for one inside an
 * object, {key:form} for one in a form of the table below, and [text] for a part that is left out when a member in it
 * is missing or null. runs in: cli (untrusted input: records' text; holds: nothing) */
#include "cli/words.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit/journal.h"
#include "base/str.h"
#include "plan/plan.h"

void words_took(struct buf *b, uint64_t us) {
    uint64_t s = us / 1000000;
    if (us < 10000)
        buf_printf(b, "%.1f ms", (double)us / 1000);
    else if (s < 1)
        buf_printf(b, "%" PRIu64 " ms", us / 1000);
    else if (s < 60)
        buf_printf(b, "%.2f s", (double)us / 1000000);
    else if (s < 3600)
        buf_printf(b, "%" PRIu64 " min %02" PRIu64 " s", s / 60, s % 60);
    else
        buf_printf(b, "%" PRIu64 " h %02" PRIu64 " min", s / 3600, s / 60 % 60);
}

void words_size(struct buf *b, uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes / 1024;
    size_t i = 0;
    if (bytes < 1024) {
        buf_printf(b, "%" PRIu64 " B", bytes);
        return;
    }
    for (; v >= 1023.95 && i + 1 < ELEMENTS(units); i++)
        v /= 1024;
    buf_printf(b, "%.1f %s", v, units[i]);
}

void words_time(struct buf *b, uint64_t real_us) {
    char text[CLOCK_TEXT];
    clock_text(text, real_us);
    buf_printf(b, "%.10s %.8s UTC", text, text + 11);
}

void words_pad(struct buf *b, size_t from, size_t width) {
    size_t columns = 0;
    for (size_t i = from; i < b->n; i++)
        columns += ((unsigned char)b->bytes[i] & 0xc0) != 0x80;
    do
        buf_puts(b, " ");
    while (++columns < width);
}

static void put_value(struct buf *b, const json_t *v);

static void put_list(struct buf *b, const json_t *list) {
    json_t *item;
    size_t i;
    json_array_foreach(list, i, item) {
        buf_puts(b, i ? ", " : "");
        put_value(b, item);
    }
    if (!json_array_size(list))
        buf_puts(b, "none");
}

static void put_members(struct buf *b, const json_t *object) {
    const char *key, *between = "";
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        buf_puts(b, between);
        str_put_safe(b, key, strlen(key));
        buf_puts(b, " ");
        put_value(b, value);
        between = ", ";
    }
}

static void put_value(struct buf *b, const json_t *v) {
    if (json_is_string(v))
        str_put_safe(b, json_string_value(v), json_string_length(v));
    else if (json_is_integer(v))
        buf_printf(b, "%lld", (long long)json_integer_value(v));
    else if (json_is_boolean(v))
        buf_puts(b, json_is_true(v) ? "yes" : "no");
    else if (json_is_array(v))
        put_list(b, v);
    else if (json_is_object(v)) {
        buf_puts(b, "(");
        put_members(b, v);
        buf_puts(b, ")");
    } else
        buf_puts(b, "not known");
}

/* The forms. Each gets the member and, since some need a neighbour, the body. */
static void put_plain(struct buf *b, const json_t *v, const json_t *body) {
    put_value(b, v);
}

static void put_short(struct buf *b, const json_t *v, const json_t *body) {
    const char *s = json_string_value(v);
    str_put_safe(b, s ? s : "", s ? strnlen(s, 12) : 0);
}

static void put_size(struct buf *b, const json_t *v, const json_t *body) {
    words_size(b, (uint64_t)json_integer_value(v));
}

static void put_took(struct buf *b, const json_t *v, const json_t *body) {
    words_took(b, (uint64_t)json_integer_value(v));
}

static void put_counted(struct buf *b, const json_t *v, const char *noun) {
    put_value(b, v);
    buf_printf(b, " %s%s", noun, json_integer_value(v) == 1 ? "" : "s");
}

static void put_times(struct buf *b, const json_t *v, const json_t *body) {
    put_counted(b, v, "time");
}

static void put_arguments(struct buf *b, const json_t *v, const json_t *body) {
    put_counted(b, v, "argument");
}

static void put_inputs(struct buf *b, const json_t *v, const json_t *body) {
    put_counted(b, v, "input");
}

/* A figure in the unit of the body's limit. */
static void put_figure(struct buf *b, const json_t *v, const json_t *body) {
    const char *limit = json_string_value(json_object_get(body, "limit"));
    char text[32];
    for (enum plan_limit i = 0; limit && json_is_integer(v) && i < PLAN_LIMIT_N; i++)
        if (!strcmp(plan_limit_names[i], limit)) {
            buf_puts(b, plan_limit_text(text, i, (uint64_t)json_integer_value(v)));
            return;
        }
    put_value(b, v);
}

/* How many held, and each that did not. */
static void put_walls(struct buf *b, const json_t *v, const json_t *body) {
    const char *name;
    json_t *state;
    size_t held = 0;
    json_object_foreach((json_t *)v, name, state) held +=
        json_is_string(state) && !strcmp(json_string_value(state), "held");
    buf_printf(b, "%zu of %zu walls hold", held, json_object_size(v));
    json_object_foreach((json_t *)v, name, state) {
        if (json_is_string(state) && !strcmp(json_string_value(state), "held"))
            continue;
        buf_puts(b, ", ");
        str_put_safe(b, name, strlen(name));
        buf_puts(b, " ");
        put_value(b, state);
    }
}

/* Present and true: nothing to print, but the part around it stays. */
static void put_nothing(struct buf *b, const json_t *v, const json_t *body) {
}

static const struct form {
    const char *name;
    void (*put)(struct buf *b, const json_t *v, const json_t *body);
} forms[] = {
    {"", put_plain},        {"short", put_short}, {"size", put_size},
    {"took", put_took},     {"times", put_times}, {"figure", put_figure},
    {"walls", put_walls},   {"if", put_nothing},  {"arguments", put_arguments},
    {"inputs", put_inputs},
};

static const struct {
    const char *type, *sentence;
} sentences[] = {
    {"run.start", "task {task}[, steps {steps}][; policy {policy_digest:short}][; doorward {doorward}][, as {mode}][, "
                  "Linux {kernel}]"},
    {"step.plan",
     "{step}: plan {plan_digest:short}[, runs {program}][ with {arguments:arguments}][, {inputs:inputs}][; "
     "exports {exports}]"},
    {"step.enforced", "{step}: [{enforced.walls:walls}][; notes: {enforced.notes}]"},
    {"step.start", "{step}: the worker may run[; process 1 of the sandbox is {pid} on the host]"},
    {"door.denied", "{step}: denied: [{door}: ]{attempt}[, {times:times}]"},
    {"step.frozen",
     "{step}: frozen by {by} after {took_us:took}, {processes} processes[; the deadline waits{clock_held:if}]"},
    {"step.thawed", "{step}: goes on after {frozen_us:took}"},
    {"step.stop", "{step}: an operator (user {uid}) asked for the end[, at once{at_once:if}]"},
    {"step.refusal", "{step}: the worker refuses, and says: {reason}"},
    {"limit.hit",
     "{step}: limit {limit}[: {peak:figure} used][, {cap:figure} allowed][; it ended the step{hard:if}][; {remedy}]"},
    {"export.collected", "{step}: export {name} collected: {size:size}, sha256 {digest:short}[ (the step did not "
                         "complete{incomplete:if})]"},
    {"export.missing", "{step}: export {name} is missing: nothing at {path}[; it was required{required:if}]"},
    {"export.refused", "{step}: export {name} was not taken[ from {path}]: {why}"},
    {"step.end", "{step}: {stop}, exit {exit}[, after {used.wall_us:took}][; {message}]"},
    {"run.end", "{stop}, exit {exit}[; {message}]"},
    {"run.lost", "lost: [{why}]"},
    {"journal.repaired", "a torn line of {cut_bytes} bytes was cut off (sha256 {cut_digest:short})"},
};

static const struct form *find_form(const char *name, size_t n) {
    for (size_t i = 0; i < ELEMENTS(forms); i++)
        if (strlen(forms[i].name) == n && !strncmp(forms[i].name, name, n))
            return &forms[i];
    return &forms[0];
}

/* The member that "key" or "key.below" (n bytes) names; NULL when it is missing, null, false or "". */
static const json_t *find_member(const json_t *body, const char *name, size_t n) {
    char path[64];
    const json_t *v = body;
    snprintf(path, sizeof(path), "%.*s", (int)n, name);
    for (char *rest = path, *key; v && (key = strsep(&rest, "."));)
        v = json_object_get(v, key);
    if (json_is_null(v) || json_is_false(v) || (json_is_string(v) && !json_string_length(v)))
        return NULL;
    return v;
}

/* Puts what stands before `end`; false when a member was missing. */
static bool put_part(struct buf *b, const char *s, const char *end, const json_t *body) {
    bool complete = true;
    while (s < end) {
        if (*s == '[') {
            const char *close = strchr(s, ']');
            size_t before = b->n;
            if (!put_part(b, s + 1, close, body) && b->bytes) {
                b->n = before;
                b->bytes[before] = 0;
            }
            s = close + 1;
        } else if (*s == '{') {
            const char *close = strchr(s, '}');
            const char *colon = memchr(s, ':', (size_t)(close - s));
            const char *name_end = colon ? colon : close;
            const json_t *v = find_member(body, s + 1, (size_t)(name_end - s - 1));
            if (v)
                find_form(colon ? colon + 1 : close, colon ? (size_t)(close - colon - 1) : 0)->put(b, v, body);
            complete = complete && v;
            s = close + 1;
        } else {
            buf_put(b, s++, 1);
        }
    }
    return complete;
}

void words_record(struct buf *b, const json_t *record) {
    const json_t *body = json_object_get(record, "body");
    const char *type = json_string_value(json_object_get(record, "type"));
    for (size_t i = 0; type && i < ELEMENTS(sentences); i++) {
        const char *s = sentences[i].sentence;
        if (strcmp(sentences[i].type, type) != 0)
            continue;
        put_part(b, s, s + strlen(s), body);
        return;
    }
    put_members(b, body);
}
