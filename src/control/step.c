/* step.c: see step.h: the conversation with the launcher.
 * runs in: controller (untrusted input: the worker's bytes and, through the launcher, its claims) */
#include "control/step.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/str.h"
#include "control/step_room.h"
#include "control/surveying.h"
#include "control/terminal.h"

enum {
    GRACE_MS = 1000,     /* between a signal passed on to the worker and the end */
    PATIENCE_MS = 10000, /* for the launcher to clear up after it was told to end */
    CGROUPS_MAX = 16,
    DENIED_MAX = 64, /* different ones kept for the final message; all are in the journal */
};

static uint64_t now_ms(void) {
    return clock_monotonic_us() / 1000;
}

/* One of our own failed. The first reason stays; the launcher is told to end everything. */
static int broken(struct step *s, const struct error *err) {
    if (!s->facts.broken) {
        s->facts.broken = true;
        s->why = *err;
    }
    s->channel_done = true;
    return -EPROTO;
}

int step_broken_by(struct step *s, const char *what) {
    struct error err = {0};
    error_set(&err, -EPROTO, "step %s: the launcher %s; nothing of the step is to be trusted", s->plan->step, what);
    return broken(s, &err);
}

int step_record(struct step *s, const char *type, json_t *body, enum journal_sync sync) {
    _cleanup_json_ json_t *owned = body;
    struct error err = {0};
    if (owned && json_object_set_new(owned, "step", json_string(s->plan->step)) == 0 &&
        journal_append(s->c->journal, type, owned, sync, &err) == 0) {
        switch_event(s->c->control, type, owned);
        return 0;
    }
    if (!err.code)
        error_set(&err, -ENOMEM, "step %s: no memory for the record %s", s->plan->step, type);
    return broken(s, &err);
}

/* A launcher that is gone already may have said why: that is read before the end of the channel. */
int step_tell(struct step *s, uint16_t type) {
    wire_begin(&s->out, type);
    int r = wire_send(s->helper.channel, &s->out);
    return r < 0 && r != -EPIPE ? step_broken_by(s, "does not read its channel") : 0;
}

int step_tell_u32(struct step *s, uint16_t type, uint32_t v) {
    wire_begin(&s->out, type);
    wire_put_u32(&s->out, v);
    return wire_send(s->helper.channel, &s->out);
}

/* Tells the launcher to end the step, and starts the clock after which it is killed. */
static void kill_step(struct step *s, enum launch_reason reason) {
    s->kill_at = 0;
    if (s->killed)
        return;
    s->killed = true;
    s->give_up_at = now_ms() + PATIENCE_MS;
    int r = step_tell_u32(s, LAUNCH_KILL, reason);
    if (r < 0 &&
        r != -EPIPE) /* one that has ended meanwhile has said how, which is read before the end of the channel */
        s->channel_done = true;
}

/* Arguments and values may be secrets: the journal has their number and the plan's digest, the plan has the rest. */
static json_t *plan_json(const struct step *s) {
    const struct plan *p = s->plan;
    json_t *exports = json_array();
    for (size_t i = 0; i < p->n_exports; i++)
        json_array_append_new(exports, json_string(p->exports[i].name));
    return json_pack("{s:i, s:s, s:s, s:i, s:i, s:o, s:O}", "number", (int)s->number, "plan_digest", s->digest,
                     "program", p->argv[0], "arguments", (int)strv_count(p->argv) - 1, "inputs", (int)p->n_inputs,
                     "exports", exports, "groups", s->groups);
}

/* The folders that the launcher is about to make go on record before it may make them: a run that dies from here on
 * can be cleaned by whoever finds it. */
static int on_placed(struct step *s, struct wire_message *m) {
    char path[PATH_MAX];
    uint32_t n = wire_get_u32(m);
    if (n > CGROUPS_MAX)
        return step_broken_by(s, "names too many cgroups");
    for (uint32_t i = 0; i < n && !m->broken; i++) {
        wire_get_text(m, path, sizeof(path));
        json_array_append_new(s->groups, json_string(path));
    }
    if (wire_end(m) < 0)
        return step_broken_by(s, "sent a broken message");
    int r = step_record(s, "step.plan", plan_json(s), JOURNAL_WRITTEN);
    s->state = STEP_PLACED;
    return r < 0 ? r : step_tell(s, LAUNCH_CREATE);
}

/* The launcher's own deadline comes first; this one is for a launcher that does not act, from the moment on at which
 * the worker may run. */
void step_set_deadline(struct step *s) {
    s->give_up_at = now_ms() + s->plan->limits[PLAN_WALL] + PATIENCE_MS;
}

static int on_enforced(struct step *s, struct wire_message *m) {
    char text[WIRE_BODY_MAX];
    json_t *enforced = NULL;
    struct error err = {0};
    wire_get_text(m, text, sizeof(text));
    if (wire_end(m) < 0)
        return step_broken_by(s, "sent a broken message");
    if (json_read(text, strlen(text), &enforced, &err) < 0)
        return broken(s, &err);
    int r = step_record(s, "step.enforced", json_pack("{s:o}", "enforced", enforced), JOURNAL_WRITTEN);
    s->state = STEP_ENFORCED;
    step_set_deadline(s);
    return r;
}

static int on_space(struct step *s, struct wire_message *m) {
    char path[PATH_MAX];
    uint32_t n = wire_get_u32(m);
    for (uint32_t i = 0; i < n && !m->broken; i++) {
        wire_get_text(m, path, sizeof(path));
        int fd = wire_take_fd(m);
        if (fd >= 0 && collect_add_place(&s->space, path, fd) < 0)
            return step_broken_by(s, "handed over a folder that it may not");
    }
    return wire_end(m) < 0 ? step_broken_by(s, "sent a broken message") : 0;
}

static int on_started(struct step *s, struct wire_message *m) {
    uint32_t pid = wire_get_u32(m);
    if (wire_end(m) < 0)
        return step_broken_by(s, "sent a broken message");
    s->state = STEP_RUNNING;
    step_set_deadline(s);
    int r = step_record(s, "step.start", json_pack("{s:I}", "pid", (json_int_t)pid), JOURNAL_WRITTEN);
    surveying_begin(s);
    if (r == 0 && s->facts.operator_asked) { /* while it was being started: nobody told the worker yet */
        s->facts.operator_asked = false;
        step_ask_to_stop(s, SIGTERM, false);
    }
    return r;
}

/* The kernel tells the worker's foreground processes by SIGWINCH. */
static void pass_window(const struct step *s) {
    struct winsize w;
    if (s->relay.master >= 0 && ioctl(s->c->window, TIOCGWINSZ, &w) == 0)
        ioctl(s->relay.master, TIOCSWINSZ, &w);
}

static int on_terminal(struct step *s, struct wire_message *m) {
    int master = wire_take_fd(m);
    if (wire_end(m) < 0 || !s->plan->terminal || s->relay.master >= 0) {
        fd_close(master);
        return step_broken_by(s, "sent a terminal that nobody asked for");
    }
    bool input = s->plan->input || isatty(s->c->input);
    relay_terminal(&s->relay, master, input ? s->c->input : -1);
    if (input)
        terminal_raw(s->c->input);
    pass_window(s);
    return 0;
}

static int on_denied(struct step *s, struct wire_message *m) {
    char what[4096], key[256];
    wire_get_text(m, what, sizeof(what));
    uint64_t times = wire_get_u64(m);
    if (wire_end(m) < 0)
        return step_broken_by(s, "sent a broken message");
    str_safe(key, sizeof(key), what);
    json_int_t before = json_integer_value(json_object_get(s->denied, key));
    if (before || json_object_size(s->denied) < DENIED_MAX)
        json_object_set_new(s->denied, key, json_integer(before + (json_int_t)times));
    json_t *body = json_pack("{s:s, s:o, s:I}", "door", "system call", "attempt", journal_text(what, strlen(what)),
                             "times", (json_int_t)times);
    return step_record(s, "door.denied", body, JOURNAL_WRITTEN);
}

static int on_refusal(struct step *s, struct wire_message *m) {
    char reason[WIRE_BODY_MAX];
    wire_get_text(m, reason, sizeof(reason));
    if (wire_end(m) < 0)
        return step_broken_by(s, "sent a broken message");
    if (s->facts.refusal)
        return 0; /* the first one counts; a worker could repeat it for ever */
    s->facts.refusal = true;
    str_safe(s->refusal, sizeof(s->refusal), reason);
    return step_record(s, "step.refusal", json_pack("{s:o}", "reason", journal_text(reason, strlen(reason))),
                       JOURNAL_WRITTEN);
}

static int on_ended(struct step *s, struct wire_message *m) {
    launch_get_end(m, &s->facts.end);
    if (wire_end(m) < 0)
        return step_broken_by(s, "sent a broken message");
    s->facts.ended = true;
    s->state = STEP_OVER;
    return 0;
}

static int on_failed(struct step *s, struct wire_message *m) {
    char text[ERROR_MESSAGE_MAX], safe[ERROR_MESSAGE_MAX];
    int code = wire_get_code(m);
    wire_get_text(m, text, sizeof(text));
    if (wire_end(m) < 0)
        return step_broken_by(s, "sent a broken message");
    error_set(&s->why, code, "%s", str_safe(safe, sizeof(safe), text));
    s->facts.not_started = true;
    s->state = STEP_OVER;
    return 0;
}

#define IN(state) (1u << (state))
static const struct {
    uint16_t type;
    unsigned states;
    int (*handle)(struct step *, struct wire_message *);
} messages[] = {
    {LAUNCH_PLACED, IN(STEP_STARTING), on_placed},
    {LAUNCH_ENFORCED, IN(STEP_PLACED), on_enforced},
    {LAUNCH_SPACE, IN(STEP_ENFORCED), on_space},
    {LAUNCH_STARTED, IN(STEP_ENFORCED), on_started},
    {LAUNCH_TERMINAL, IN(STEP_PLACED), on_terminal},
    {LAUNCH_DENIED, IN(STEP_ENFORCED) | IN(STEP_RUNNING), on_denied},
    {LAUNCH_REFUSAL, IN(STEP_ENFORCED) | IN(STEP_RUNNING), on_refusal},
    {LAUNCH_FROZEN, IN(STEP_RUNNING), step_on_frozen},
    {LAUNCH_THAWED, IN(STEP_RUNNING), step_on_thawed},
    {LAUNCH_UNDONE, IN(STEP_RUNNING), step_on_undone},
    {LAUNCH_FIGURES, IN(STEP_RUNNING), step_on_figures},
    {LAUNCH_ENDED, IN(STEP_ENFORCED) | IN(STEP_RUNNING), on_ended},
    {LAUNCH_FAILED, IN(STEP_STARTING) | IN(STEP_PLACED) | IN(STEP_ENFORCED), on_failed},
};

/* Takes one message, if there is one. */
static void hear(struct step *s) {
    int r = wire_receive(s->helper.channel, &s->in);
    if (r == -EAGAIN)
        return;
    if (r == 0) {
        if (s->state != STEP_OVER && !s->channel_done) {
            s->died = true;
            step_broken_by(s, "died");
        }
        s->channel_done = true;
        return;
    }
    for (size_t i = 0; r > 0 && i < ELEMENTS(messages); i++)
        if (messages[i].type == s->in.type && (messages[i].states & IN(s->state))) {
            messages[i].handle(s, &s->in);
            return;
        }
    wire_drop(&s->in);
    step_broken_by(s, "said what it may not say now");
}

/* An operator asks for the end: the worker hears the signal and has a moment to put its things in order. A second
 * signal ends it at once. Before the worker runs there is nothing to wait for. */
void step_ask_to_stop(struct step *s, int number, bool now) {
    bool again = s->facts.operator_asked || now || s->frozen; /* who is frozen hears no signal */
    s->c->stopped = s->facts.operator_asked = true;
    if (s->state == STEP_STARTING || s->state == STEP_PLACED) {
        s->facts.not_started = true;
        s->channel_done = true;
    } else if (s->state == STEP_RUNNING && again) {
        kill_step(s, LAUNCH_BY_OPERATOR);
    } else if (s->state == STEP_RUNNING) {
        s->kill_at = now_ms() + GRACE_MS;
        if (step_tell_u32(s, LAUNCH_SIGNAL, (uint32_t)number) < 0)
            kill_step(s, LAUNCH_BY_OPERATOR);
    } else {
        s->give_up_at = now_ms() + PATIENCE_MS; /* it is being started: on_started asks again */
    }
}

static void hear_signals(struct step *s) {
    struct signalfd_siginfo info;
    while (read(s->c->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        int number = (int)info.ssi_signo;
        if (number == SIGWINCH) {
            pass_window(s);
        } else if (number == SIGCONT) {
            if (s->relay.master >= 0 && s->relay.input_from >= 0)
                terminal_raw(s->c->input);
        } else {
            step_ask_to_stop(s, number, false);
        }
    }
}

/* Milliseconds until the next thing that time brings; -1 for never. */
static int next_timeout(const struct step *s) {
    uint64_t at = s->kill_at && s->kill_at < s->give_up_at ? s->kill_at : s->give_up_at, now = now_ms();
    if (!s->give_up_at)
        at = s->kill_at;
    if (surveying_at(s) && (!at || surveying_at(s) < at))
        at = surveying_at(s);
    if (!at)
        return -1;
    return at <= now ? 0 : at - now > INT_MAX ? INT_MAX : (int)(at - now);
}

static void check_time(struct step *s) {
    uint64_t now = now_ms();
    if (s->kill_at && now >= s->kill_at)
        kill_step(s, LAUNCH_BY_OPERATOR);
    if (s->give_up_at && now >= s->give_up_at) {
        step_broken_by(s, "did not end the step in time and was killed");
        if (syscall(SYS_pidfd_send_signal, s->helper.pidfd, SIGKILL, NULL, 0) < 0)
            kill(s->helper.pid, SIGKILL); /* not reaped yet, so the number is still its own */
    }
}

static void wait_and_act(struct step *s) {
    enum { CHANNEL, SIGNALS, SURVEYOR, SWITCH, OWN = SWITCH + SWITCH_POLLS };
    struct pollfd p[OWN + RELAY_POLLS] = {
        {s->helper.channel, POLLIN, 0}, {s->c->signals, POLLIN, 0}, surveying_poll(s)};
    switch_poll(s->c->control, p + SWITCH);
    relay_poll(&s->relay, p + OWN);
    int n = poll(p, ELEMENTS(p), next_timeout(s));
    if (n < 0 && errno != EINTR) { /* without it nothing would be heard any more: not a thing to go on after */
        step_broken_by(s, "cannot be listened to: poll fails");
        s->channel_done = true;
        syscall(SYS_pidfd_send_signal, s->helper.pidfd, SIGKILL, NULL, 0);
    }
    if (n > 0) {
        relay_serve(&s->relay, p + OWN);
        if (p[SIGNALS].revents)
            hear_signals(s);
        if (p[CHANNEL].revents && !s->channel_done)
            hear(s);
        switch_serve(s->c->control, p + SWITCH, s);
    }
    surveying_serve(s, &p[SURVEYOR]);
    if (s->relay.exceeded && s->state == STEP_RUNNING)
        kill_step(s, LAUNCH_BY_OUTPUT);
    check_time(s);
}

void step_converse(struct step *s) {
    while (s->state != STEP_OVER && !s->channel_done)
        wait_and_act(s);
    switch_step_over(s->c->control);
    terminal_restore();
    relay_drain(&s->relay);
}

/* The worker's ends of its standard streams. With a terminal the launcher opens its slave instead. */
static int put_streams(struct step *s) {
    int ends[3] = {-1, -1, -1};
    int r = 0;
    if (s->plan->terminal || !s->plan->input)
        ends[0] = open("/dev/null", (s->plan->terminal ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    else
        r = relay_input_pipe(&s->relay, s->c->input, &ends[0]);
    if (r == 0 && ends[0] < 0)
        r = -errno;
    if (r == 0 && !s->plan->terminal)
        r = relay_pipes(&s->relay, ends + 1);
    for (int i = 0; i < 3; i++) {
        wire_put_fd(&s->out, s->plan->terminal ? ends[0] : ends[i]);
        s->given[i] = ends[i];
    }
    return r;
}

static int send_start(struct step *s, struct error *err) {
    wire_begin(&s->out, LAUNCH_BEGIN);
    wire_put_u32(&s->out, s->c->ids->base);
    int r = wire_send(s->helper.channel, &s->out);
    if (r < 0 && r != -EPIPE)
        return place_error(err, r, "step %s: cannot speak to the launcher", s->plan->step);
    _cleanup_buf_ struct buf packed = {0};
    int plan = plan_pack(s->plan, &packed);
    if (plan == 0)
        plan = fd_sealed("plan", packed.bytes, packed.n);
    if (plan < 0)
        return place_error(err, plan, "step %s: cannot hand over the plan", s->plan->step);
    s->given[3] = plan;
    wire_begin(&s->out, LAUNCH_START);
    wire_put_text(&s->out, s->c->run);
    wire_put_u32(&s->out, s->number);
    wire_put_fd(&s->out, plan);
    r = put_streams(s);
    if (r == 0 && (r = wire_send(s->helper.channel, &s->out)) == -EPIPE)
        r = 0; /* it begins before it has the plan, and may have failed with a reason, which is heard like any other */
    return r < 0 ? place_error(err, r, "step %s: cannot hand over the plan", s->plan->step) : 0;
}

static void close_given(struct step *s) {
    for (size_t i = 0; i < ELEMENTS(s->given); i++)
        s->given[i] = fd_close(s->given[i]);
}

int step_begin(struct step_context *c, const struct plan *plan, unsigned number, struct step **ret, struct error *err) {
    _cleanup_step_ struct step *s = calloc(1, sizeof(*s));
    if (!s)
        return error_set(err, -ENOMEM, "out of memory");
    s->c = c;
    s->plan = plan;
    s->number = number;
    s->helper = (struct helper)HELPER_EMPTY;
    relay_init(&s->relay);
    for (size_t i = 0; i < ELEMENTS(s->given); i++)
        s->given[i] = -1;
    s->groups = json_array();
    s->denied = json_object();
    s->text = plan_encode(plan);
    if (!s->groups || !s->denied || !s->text)
        return error_set(err, -ENOMEM, "out of memory");
    if (c->ids->base && !plan->lab_off[PLAN_WALL_USERNS]) /* as the launcher maps them */
        s->space.owner = c->ids->base + (plan->user == PLAN_USER_ROOT ? 0 : PLAN_AGENT_ID);
    digest_hex(s->text, strlen(s->text), s->digest);
    int r = spawn_helper("doorward-launch", plan->lab_off[PLAN_WALL_FDS], &s->helper, err);
    if (r == 0)
        r = send_start(s, err);
    close_given(s);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(s);
    return 0;
}

struct step *step_end(struct step *s) {
    if (!s)
        return NULL;
    terminal_restore();
    close_given(s);
    surveying_end(s);
    spawn_end(&s->helper);
    relay_close(&s->relay);
    collect_free(&s->space);
    json_decref(s->groups);
    json_decref(s->denied);
    free(s->text);
    free(s);
    return NULL;
}
