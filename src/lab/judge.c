/* judge.c: from what was seen to a verdict. See lab.h. runs in: cli */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lab/lab.h"

const char *const lab_verdict_names[LAB_VERDICT_N] = {"held", "open", "broken", "cannot-fail", "absent"};

/* The last line that begins with '{'. */
static const char *last_line(const char *bytes, size_t n, size_t *ret_n) {
    const char *found = NULL;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(bytes + at, '\n', n - at);
        size_t len = end ? (size_t)(end - bytes) - at : n - at;
        if (bytes[at] == '{') {
            found = bytes + at;
            *ret_n = len;
        }
        at += len + 1;
    }
    return found;
}

void lab_read_answer(const struct lab_row *row, const char *bytes, size_t n, struct lab_attempt *a) {
    static const char *const known[] = {"probe", "result", "errno", "detail", NULL};
    size_t len = 0;
    const char *line = last_line(bytes, n, &len), *probe, *result, *detail;
    uint64_t err;
    _cleanup_json_ json_t *j = NULL;
    if (!line || json_read(line, len, &j, NULL) < 0 || json_only(j, "answer", known, NULL) < 0 ||
        json_get_string(j, "answer", "probe", &probe, NULL) < 0 || strcmp(probe, row->name) != 0 ||
        json_get_string(j, "answer", "result", &result, NULL) < 0 ||
        json_get_string(j, "answer", "detail", &detail, NULL) < 0 || json_get_u64(j, "answer", "errno", &err, NULL) < 0)
        return;
    for (int r = 0; r < LAB_RESULT_N; r++)
        if (!strcmp(lab_result_names[r], result)) {
            a->answered = true;
            a->said = (enum lab_result)r;
            a->err = (int)err;
            snprintf(a->detail, sizeof(a->detail), "%s", detail);
        }
}

/* The canaries' word, or LAB_RESULT_N when they say nothing. */
static enum lab_result canaries(const struct lab_row *row, const struct lab_attempt *a) {
    if ((row->flags & LAB_HEARD && a->heard) || (row->flags & LAB_FILES && a->changed))
        return LAB_OPEN;
    if (row->flags & LAB_LINGER) {
        if (a->lingering)
            return LAB_OPEN;
        bool ran = a->answered || (a->stop[0] && strcmp(a->stop, "error") != 0);
        return ran ? LAB_HELD : LAB_BROKEN; /* nothing lingers of what never ran */
    }
    return LAB_RESULT_N;
}

/* What the end of the run says where the probe could say nothing itself. */
static enum lab_result the_end(const struct lab_row *row, const struct lab_attempt *a) {
    char limit[32] = "";
    if (row->limit != LAB_NO_LIMIT)
        snprintf(limit, sizeof(limit), "limit:%s", plan_limit_names[row->limit]);
    if (limit[0] && !strcmp(a->stop, limit))
        return LAB_HELD;
    if (row->flags & LAB_LINKS && !strcmp(a->stop, "error"))
        return LAB_HELD; /* refused to start, which is right too; the canaries were asked before */
    if (a->exit == 128 + SIGSYS)
        return LAB_HELD; /* ended for the call itself */
    return LAB_BROKEN;
}

enum lab_result lab_attempt_result(const struct lab_row *row, const struct lab_attempt *a, bool outside) {
    if (!a->done || a->hung)
        return LAB_BROKEN;
    enum lab_result r = canaries(row, a);
    if (r != LAB_RESULT_N)
        return r;
    if (!a->answered)
        return the_end(row, a);
    /* Outside, a listener that did not hear what was sent to it would make every probe pass. */
    if (outside && row->flags & LAB_HEARD && a->said == LAB_OPEN)
        return LAB_HELD;
    /* A run that did not end in a way that the kernel confirms tells nothing good. */
    if (!outside && a->said == LAB_HELD && !strcmp(a->stop, "error"))
        return LAB_BROKEN;
    return a->said;
}

_printf_(3, 4) static void decide(struct lab_outcome *o, enum lab_verdict v, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(o->why, sizeof(o->why), format, ap);
    va_end(ap);
    o->verdict = v;
}

static const char *words(const struct lab_attempt *a) {
    return a->hung ? "it did not end in time" : a->detail[0] ? a->detail : "it gave no answer";
}

/* What held, in words. What became of a child that was left is not for the probe to say. */
static const char *held_words(const struct lab_outcome *o) {
    return o->row->flags & LAB_LINGER ? "the child that it left was gone after the end" : words(&o->inside);
}

static void judge_usable(struct lab_outcome *o) {
    if (lab_attempt_result(o->row, &o->before, true) != LAB_HELD)
        decide(o, LAB_IS_ABSENT, "does not work outside either: %s", words(&o->before));
    else if (lab_attempt_result(o->row, &o->inside, false) == LAB_HELD)
        decide(o, LAB_IS_HELD, "%s", words(&o->inside));
    else
        decide(o, LAB_IS_OPEN, "does not work inside: %s", words(&o->inside));
}

/* The part about the control; true when the verdict is found. */
static bool judge_control(struct lab_outcome *o, bool root) {
    enum lab_result before = lab_attempt_result(o->row, &o->before, true);
    enum lab_result after = lab_attempt_result(o->row, &o->after, true);
    if (before == LAB_ABSENT)
        decide(o, LAB_IS_ABSENT, "%s", words(&o->before));
    else if (before != LAB_OPEN && o->row->flags & LAB_NEEDS_ROOT && !root)
        decide(o, LAB_IS_ABSENT, "its control needs root; inside: %s", words(&o->inside));
    else if (before != LAB_OPEN)
        decide(o, LAB_IS_BROKEN, "the control outside did not succeed: %s", words(&o->before));
    else if (after != LAB_OPEN)
        decide(o, LAB_IS_BROKEN, "the control outside did not succeed afterwards: %s", words(&o->after));
    else
        return false;
    return true;
}

static void judge_off(struct lab_outcome *o) {
    char walls[64];
    enum lab_result off = lab_attempt_result(o->row, &o->off, false);
    if (off == LAB_OPEN)
        decide(o, LAB_IS_HELD, "%s", held_words(o));
    else
        decide(o, LAB_CANNOT_FAIL, "without %s it is still %s: %s", lab_walls_text(walls, o->row),
               lab_result_names[off], words(&o->off));
}

void lab_judge(struct lab_outcome *o, bool root, bool with_off) {
    if (o->row->kind == LAB_USABLE) {
        judge_usable(o);
        return;
    }
    enum lab_result inside = lab_attempt_result(o->row, &o->inside, false);
    if (inside == LAB_OPEN)
        decide(o, LAB_IS_OPEN, "%s%s", words(&o->inside),
               o->inside.heard       ? " (the listener heard it)"
               : o->inside.changed   ? " (the host's files changed)"
               : o->inside.lingering ? " (it was there after the end)"
                                     : "");
    else if (judge_control(o, root))
        return;
    else if (inside == LAB_BROKEN)
        decide(o, LAB_IS_BROKEN, "inside: %s", words(&o->inside));
    else if (with_off && o->row->kind == LAB_WALL)
        judge_off(o);
    else
        decide(o, LAB_IS_HELD, "%s", held_words(o));
}

struct lab_counts lab_count(const struct lab_outcome *o, size_t n) {
    struct lab_counts c = {{0}};
    for (size_t i = 0; i < n; i++)
        c.of[o[i].verdict]++;
    return c;
}

bool lab_all_held(const struct lab_counts *c) {
    return c->of[LAB_IS_OPEN] + c->of[LAB_IS_BROKEN] + c->of[LAB_CANNOT_FAIL] == 0 && c->of[LAB_IS_HELD] > 0;
}
