/* switching.c: what the operator's switch makes a step do, and what the launcher answers to that.
 * runs in: controller (untrusted input: requests of whoever may run doorward as this user) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "control/step_room.h"

static const char *const state_names[] = {[STEP_STARTING] = "starting",
                                          [STEP_PLACED] = "starting",
                                          [STEP_ENFORCED] = "starting",
                                          [STEP_RUNNING] = "running",
                                          [STEP_OVER] = "ending"};

static void put_known(json_t *to, const char *key, uint64_t v) {
    json_object_set_new(to, key, v == UINT64_MAX ? json_null() : json_integer((json_int_t)v));
}

/* `f` NULL: nothing is counted yet. */
static json_t *status_json(const struct step *s, const struct launch_figures *f) {
    json_t *used = json_object(), *limits = json_object();
    if (f) {
        put_known(used, "memory", f->memory);
        put_known(used, "processes", f->processes);
        put_known(used, "cpu_us", f->cpu_us);
        put_known(used, "disk", f->disk);
        put_known(used, "files", f->files);
        put_known(used, "wall_us", f->wall_us);
    }
    put_known(used, "output", s->relay.total);
    for (size_t l = 0; l < PLAN_LIMIT_N; l++)
        put_known(limits, plan_limit_names[l], s->plan->limits[l]);
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:O}", "run", s->c->run, "task", s->plan->task, "step",
                     s->plan->step, "state",
                     s->frozen   ? "frozen"
                     : s->killed ? "ending"
                                 : state_names[s->state],
                     "clock_held", s->frozen && s->hold_clock, "used", used, "limits", limits, "denied", s->denied);
}

static json_t *frozen_json(const struct step *s, bool already) {
    return json_pack("{s:s, s:s, s:b, s:b}", "step", s->plan->step, "state", s->frozen ? "frozen" : "running",
                     "already", already, "clock_held", s->frozen && s->hold_clock);
}

static enum switch_outcome on_status(struct step *s, uint32_t argument, uint32_t uid, json_t **ret, struct error *err) {
    if (s->state != STEP_RUNNING) {
        *ret = status_json(s, NULL);
        return SWITCH_NOW;
    }
    if (!s->asked_count && step_tell(s, LAUNCH_COUNT) == 0)
        s->asked_count = true;
    return SWITCH_LATER;
}

static enum switch_outcome on_events(struct step *s, uint32_t argument, uint32_t uid, json_t **ret, struct error *err) {
    *ret = status_json(s, NULL);
    return SWITCH_NOW;
}

/* One of the two at a time: the launcher's answer tells which it was. */
static bool busy(const struct step *s, struct error *err) {
    if (s->asked_frozen || s->asked_thaw)
        error_set(err, -EBUSY, "the step is just being frozen or thawed; ask again");
    return s->asked_frozen || s->asked_thaw;
}

static enum switch_outcome on_freeze(struct step *s, uint32_t hold, uint32_t uid, json_t **ret, struct error *err) {
    if (busy(s, err))
        return SWITCH_REFUSED;
    if (s->frozen) {
        *ret = frozen_json(s, true);
        return SWITCH_NOW;
    }
    if (s->state != STEP_RUNNING || s->killed) {
        error_set(err, -EAGAIN, "the step is %s; only a running step can be frozen",
                  s->killed ? "ending" : state_names[s->state]);
        return SWITCH_REFUSED;
    }
    s->hold_clock = hold;
    s->freezer = uid;
    s->asked_frozen = step_tell_u32(s, LAUNCH_FREEZE, hold) == 0;
    return SWITCH_LATER;
}

static enum switch_outcome on_thaw(struct step *s, uint32_t argument, uint32_t uid, json_t **ret, struct error *err) {
    if (busy(s, err))
        return SWITCH_REFUSED;
    if (!s->frozen) {
        *ret = frozen_json(s, true);
        return SWITCH_NOW;
    }
    s->freezer = uid;
    s->asked_thaw = step_tell(s, LAUNCH_THAW) == 0;
    return SWITCH_LATER;
}

static enum switch_outcome on_stop(struct step *s, uint32_t now, uint32_t uid, json_t **ret, struct error *err) {
    if (step_record(s, "step.stop", json_pack("{s:I, s:b}", "uid", (json_int_t)uid, "at_once", now != 0),
                    JOURNAL_WRITTEN) < 0) {
        *err = s->why;
        return SWITCH_REFUSED;
    }
    step_ask_to_stop(s, SIGTERM, now);
    *ret = json_pack("{s:s, s:b}", "step", s->plan->step, "asked", true);
    return SWITCH_NOW;
}

static const struct {
    uint16_t type;
    enum switch_outcome (*handle)(struct step *, uint32_t, uint32_t, json_t **, struct error *);
} rows[] = {
    {CONTROL_STATUS, on_status}, {CONTROL_EVENTS, on_events}, {CONTROL_FREEZE, on_freeze},
    {CONTROL_THAW, on_thaw},     {CONTROL_STOP, on_stop},
};

enum switch_outcome step_switch(struct step *s, uint16_t request, uint32_t argument, uint32_t uid, json_t **ret,
                                struct error *err) {
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        if (rows[i].type == request)
            return rows[i].handle(s, argument, uid, ret, err);
    error_set(err, -ENOSYS, "no such request");
    return SWITCH_REFUSED;
}

int step_on_frozen(struct step *s, struct wire_message *m) {
    char by[32];
    wire_get_text(m, by, sizeof(by));
    uint32_t processes = wire_get_u32(m);
    uint64_t took = wire_get_u64(m);
    if (wire_end(m) < 0 || !s->asked_frozen)
        return step_broken_by(s, "sent a broken message");
    s->asked_frozen = false;
    s->frozen = true;
    if (s->hold_clock && !s->killed)
        s->give_up_at = 0;
    json_t *body = json_pack("{s:s, s:I, s:I, s:b, s:I}", "by", by, "processes", (json_int_t)processes, "took_us",
                             (json_int_t)took, "clock_held", s->hold_clock, "uid", (json_int_t)s->freezer);
    json_t *answer = json_deep_copy(body);
    if (answer) {
        json_object_set_new(answer, "step", json_string(s->plan->step));
        json_object_set_new(answer, "state", json_string("frozen"));
        json_object_set_new(answer, "already", json_false());
    }
    int r = step_record(s, "step.frozen", body, JOURNAL_WRITTEN);
    switch_answer(s->c->control, CONTROL_FREEZE, answer, &s->why);
    return r;
}

int step_on_thawed(struct step *s, struct wire_message *m) {
    uint64_t held = wire_get_u64(m);
    if (wire_end(m) < 0 || !s->asked_thaw)
        return step_broken_by(s, "sent a broken message");
    s->asked_thaw = s->frozen = false;
    if (!s->killed)
        step_set_deadline(s);
    int r = step_record(s, "step.thawed",
                        json_pack("{s:I, s:I}", "frozen_us", (json_int_t)held, "uid", (json_int_t)s->freezer),
                        JOURNAL_WRITTEN);
    json_t *answer = frozen_json(s, false);
    if (answer)
        json_object_set_new(answer, "frozen_us", json_integer((json_int_t)held));
    switch_answer(s->c->control, CONTROL_THAW, answer, &s->why);
    return r;
}

/* The launcher says the reason in words that are our own; the step is as it was before. */
int step_on_undone(struct step *s, struct wire_message *m) {
    char text[ERROR_MESSAGE_MAX], safe[ERROR_MESSAGE_MAX];
    struct error err = {0};
    int code = wire_get_code(m);
    wire_get_text(m, text, sizeof(text));
    if (wire_end(m) < 0 || !(s->asked_frozen || s->asked_thaw))
        return step_broken_by(s, "sent a broken message");
    error_set(&err, code, "%s", str_safe(safe, sizeof(safe), text));
    uint16_t request = s->asked_frozen ? CONTROL_FREEZE : CONTROL_THAW;
    s->asked_frozen = s->asked_thaw = false;
    switch_answer(s->c->control, request, NULL, &err);
    return 0;
}

int step_on_figures(struct step *s, struct wire_message *m) {
    struct launch_figures f;
    launch_get_figures(m, &f);
    if (wire_end(m) < 0 || !s->asked_count)
        return step_broken_by(s, "sent a broken message");
    s->asked_count = false;
    switch_answer(s->c->control, CONTROL_STATUS, status_json(s, &f), &s->why);
    return 0;
}
