/* run.c: the run: its journal, its steps in order, its end. See control.h.
 *
 * The order of things at the start: the run's name goes into the table of live runs, so that it is found if we die;
 * the first launcher is started, and makes nothing that could outlive us before we say so; the journal is made meanwhile. So a run of which
 * anything happened has a journal, and one that has none left nothing.
 * runs in: controller (untrusted input: the worker's bytes and claims; holds: the journal) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>

#include "base/fd.h"
#include "base/str.h"
#include "control/control.h"
#include "control/final.h"
#include "control/inputs.h"
#include "control/live.h"

enum {
    DENIED_TOLD = 5,          /* the others stand in the journal */
    READER_MS = 60000,        /* how long a reader of our output may take nothing after the end */
    DESCRIPTORS_LEAST = 256,  /* the launcher's and ours */
    DESCRIPTORS_AN_INPUT = 2, /* the launcher's: its mount, and what shows it outside */
};

#define POLICY_NAME "policy.yaml"

struct run {
    const struct control_request *q;
    char name[ULID_TEXT];
    struct live live;
    struct ids ids;
    struct sink out, err;
    json_t *inputs, *final, *notes;
    struct run_switch control;
    int run_fd, signals;
    sigset_t old_mask;
    struct journal *journal;
    struct step_context context;
    struct stop stop;
    bool recorded; /* the end is in the journal */
};

void control_result_free(struct control_result *r) {
    json_decref(r->final);
    json_decref(r->notes);
    *r = (struct control_result){0};
}

/* SIGPIPE and SIGXFSZ come from our own writes, whose errno says the same. The others are read from a descriptor, so
 * that one place decides about them, between two other events. */
static const int heard[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT};

static int take_signals(struct run *r, struct error *err) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ELEMENTS(heard); i++)
        sigaddset(&set, heard[i]);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, &r->old_mask);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return r->signals < 0 ? place_error(err, -errno, "cannot take signals") : 0;
}

static void run_close(struct run *r) {
    switch_close(&r->control);
    sink_close(&r->out);
    sink_close(&r->err);
    json_decref(r->inputs);
    json_decref(r->final);
    json_decref(r->notes);
    r->journal = journal_close(r->journal);
    if (r->recorded || r->run_fd < 0)
        live_leave(&r->live);
    else
        live_close(&r->live); /* the next command finds the run and puts its end on record */
    ids_leave(&r->ids);
    r->run_fd = fd_close(r->run_fd);
    if (r->signals >= 0)
        sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
    r->signals = fd_close(r->signals);
}
#define _cleanup_run_ _cleanup_(run_close)

static void note(struct run *r, const char *format, ...) _printf_(2, 3);
static void note(struct run *r, const char *format, ...) {
    char text[ERROR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    json_array_append_new(r->notes, json_string(text));
}

static json_t *start_json(struct run *r) {
    struct utsname host;
    json_t *steps = json_array();
    uname(&host);
    for (size_t i = 0; i < r->q->n_plans; i++)
        json_array_append_new(steps, json_string(r->q->plans[i].step));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:o, s:O, s:I}", "task", r->q->task, "purpose",
                     r->q->purpose, "doorward", DOORWARD_VERSION, "mode", r->q->place->root ? "root" : "user", "kernel",
                     host.release, "policy_digest", r->q->policy_digest, "policy", r->q->policy_name, "steps", steps,
                     "inputs", r->inputs, "pid", (json_int_t)getpid());
}

/* The policy file's own bytes, beside the journal that has its digest. */
static int keep_policy(const struct run *r, struct error *err) {
    const char *text = r->q->policy_text;
    if (!text)
        return 0;
    _cleanup_fd_ int fd = openat(r->run_fd, POLICY_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int e = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
    return e < 0 ? place_error(err, e, "cannot write runs/%s/" POLICY_NAME " in the state folder", r->name) : 0;
}

static int open_journal(struct run *r, struct error *err) {
    r->run_fd = place_open_run(r->q->place, r->name, true, err);
    if (r->run_fd < 0)
        return r->run_fd;
    int e = journal_create(r->run_fd, r->name, &r->journal, err);
    if (e < 0)
        return e;
    e = keep_policy(r, err);
    if (e < 0)
        return e;
    e = switch_open(&r->control, r->run_fd, err);
    if (e < 0)
        return e;
    _cleanup_json_ json_t *body = start_json(r);
    return journal_append(r->journal, "run.start", body, JOURNAL_WRITTEN, err);
}

/* Takes away the folder of a run that could not even be put on record. */
static void forget_run(struct run *r) {
    char name[64];
    snprintf(name, sizeof(name), "runs/%s", r->name);
    r->journal = journal_close(r->journal);
    if (r->run_fd < 0)
        return;
    unlinkat(r->run_fd, POLICY_NAME, 0);
    unlinkat(r->run_fd, JOURNAL_NAME, 0);
    switch_close(&r->control);
    if (unlinkat(r->q->place->state_fd, name, AT_REMOVEDIR) == 0)
        r->run_fd = fd_close(r->run_fd);
}

/* Our own soft limit is of no use to anybody: the worker's is the plan's. */
static int take_descriptors(const struct control_request *q, struct error *err) {
    struct rlimit l;
    size_t inputs = 0;
    for (size_t i = 0; i < q->n_plans; i++)
        inputs = q->plans[i].n_inputs > inputs ? q->plans[i].n_inputs : inputs;
    rlim_t need = DESCRIPTORS_LEAST + DESCRIPTORS_AN_INPUT * inputs;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return place_error(err, -errno, "cannot read the limit of open files");
    if (l.rlim_max < need)
        return error_set(err, -EMFILE,
                         "the limit of open files is %llu here, and a step with %zu inputs needs %llu; raise it "
                         "(ulimit -n %llu), or name a folder instead of each file",
                         (unsigned long long)l.rlim_max, inputs, (unsigned long long)need, (unsigned long long)need);
    if (l.rlim_cur < need) {
        l.rlim_cur = need;
        setrlimit(RLIMIT_NOFILE, &l);
    }
    return 0;
}

static int prepare(struct run *r, struct error *err) {
    const struct place *p = r->q->place;
    int e = ulid_new(r->name);
    if (e < 0)
        return error_errno(err, e, "cannot make a name for the run");
    e = take_descriptors(r->q, err);
    if (e == 0)
        e = take_signals(r, err);
    if (e == 0)
        e = live_take(p, r->name, &r->live, err);
    if (e == 0) /* the last characters of a ULID are random */
        e = ids_take(p, (uint32_t)(r->name[24] * 64 + r->name[25]) * 31u + (uint32_t)r->name[23], &r->ids, err);
    if (e == 0)
        e = inputs_fix(p, r->name, r->q->plans, r->q->n_plans, &r->inputs, err);
    return e;
}

static void tell_step(struct run *r, const struct plan *p, const struct step_result *s) {
    char name[STOP_NAME_MAX];
    const char *what;
    json_t *times;
    const struct stop *stop = &s->stop;
    bool quiet = stop->kind == STOP_COMPLETED || (stop->kind == STOP_FAILED && !stop->message[0]);
    if (!quiet)
        note(r, "step %s: %s: %s", p->step, stop_name(stop, name), stop->message);
    for (int l = 0; l < PLAN_LIMIT_N; l++)
        if (stop->limits[l].hit && !stop->limits[l].hard)
            note(r, "step %s: limit %s was hit; see limits_hit in `doorward show %s`", p->step, plan_limit_names[l],
                 r->name);
    if (stop->kind == STOP_COMPLETED)
        return;
    int told = 0;
    json_object_foreach(s->denied, what, times) {
        if (told++ < DENIED_TOLD)
            note(r, "step %s: denied inside: %s (%lld times)", p->step, what, (long long)json_integer_value(times));
    }
}

static bool run_step(struct run *r, struct step *first, size_t number, struct error *err) {
    const struct plan *p = &r->q->plans[number];
    _cleanup_step_result_ struct step_result result = {0};
    _cleanup_step_ struct step *step = first;
    if (!step && step_begin(&r->context, p, (unsigned)number, &step, err) < 0) {
        r->stop = (struct stop){.kind = STOP_ERROR, .exit_status = stop_exit(STOP_ERROR, 0)};
        snprintf(r->stop.message, sizeof(r->stop.message), "%.*s", (int)sizeof(r->stop.message) - 1, err->message);
        note(r, "%s", err->message);
    } else {
        step_finish(step, &result);
        r->stop = result.stop;
        final_add_step(r->final, p->step, &result);
        tell_step(r, p, &result);
    }
    json_object_set_new(r->final, "step", json_string(p->step));
    return r->stop.kind == STOP_COMPLETED;
}

/* A signal between two steps. */
static bool asked_to_stop(struct run *r) {
    if (!r->context.stopped)
        return false;
    r->stop = (struct stop){.kind = STOP_STOPPED, .exit_status = stop_exit(STOP_STOPPED, 0)};
    return true;
}

static void finish_record(struct run *r) {
    char name[STOP_NAME_MAX];
    struct error err = {0};
    json_object_set_new(r->final, "stop", json_string(stop_name(&r->stop, name)));
    json_object_set_new(r->final, "exit", json_integer(r->stop.exit_status));
    json_object_set_new(r->final, "message", json_string(r->stop.message));
    if (journal_append(r->journal, "run.end", r->final, JOURNAL_WRITTEN, &err) == 0) {
        switch_event(&r->control, "run.end", r->final);
        r->recorded = true;
        return;
    }
    /* What is not on record did not end well, whatever it did. */
    r->stop = (struct stop){.kind = STOP_ERROR, .exit_status = stop_exit(STOP_ERROR, 0)};
    json_object_set_new(r->final, "stop", json_string("error"));
    json_object_set_new(r->final, "exit", json_integer(r->stop.exit_status));
    json_object_set_new(r->final, "message", json_string(err.message));
    note(r, "%s", err.message);
}

/* The run is over and on record; what our own readers have not taken yet is theirs to take, for a while. */
static void deliver(struct run *r) {
    static const char *const names[] = {"standard output", "standard error"};
    struct sink *sinks[] = {&r->out, &r->err};
    for (size_t i = 0; i < ELEMENTS(sinks); i++) {
        sink_finish(sinks[i], READER_MS, r->signals);
        if (sinks[i]->dropped && sinks[i]->failed && sinks[i]->failed != EPIPE)
            note(r, "%s: %llu bytes were not taken (%s); the whole is in %s/runs/%s/steps", names[i],
                 (unsigned long long)sinks[i]->dropped, strerror(sinks[i]->failed), r->q->place->state, r->name);
    }
}

static void set_context(struct run *r) {
    const struct control_request *q = r->q;
    sink_open(&r->out, q->out);
    sink_open(&r->err, q->err);
    r->context = (struct step_context){.place = q->place,
                                       .run = r->name,
                                       .run_fd = -1,
                                       .ids = &r->ids,
                                       .signals = r->signals,
                                       .sinks = {&r->out, &r->err},
                                       .guarded = {!q->raw && isatty(q->out), !q->raw && isatty(q->err)},
                                       .input = q->in,
                                       .window = isatty(q->in) ? q->in : q->out};
}

/* Whoever started a detached run waits for its name. */
static void tell_ready(const struct run *r) {
    if (r->q->ready_fd < 0)
        return;
    fd_write_all(r->q->ready_fd, r->name, ULID_TEXT - 1);
    close(r->q->ready_fd);
}

/* The first launcher and the journal at the same time. */
static int begin(struct run *r, struct step **ret, struct error *err) {
    _cleanup_step_ struct step *first = NULL;
    set_context(r);
    int e = step_begin(&r->context, &r->q->plans[0], 0, &first, err);
    if (e == 0)
        e = open_journal(r, err);
    if (e < 0) {
        forget_run(r);
        return e;
    }
    r->context.run_fd = r->run_fd;
    r->context.journal = r->journal;
    r->context.control = &r->control;
    tell_ready(r);
    *ret = TAKE_PTR(first);
    return 0;
}

int control_run(const struct control_request *q, struct control_result *ret, struct error *err) {
    _cleanup_run_ struct run r = {
        .q = q, .live = LIVE_EMPTY, .ids = IDS_EMPTY, .run_fd = -1, .signals = -1, .control = {.listener = -1}};
    struct step *first = NULL;
    int e = prepare(&r, err);
    if (e == 0)
        e = begin(&r, &first, err);
    if (e < 0)
        return e;
    r.final = final_new(r.name, "error", stop_exit(STOP_ERROR, 0), "");
    r.notes = json_array();
    for (size_t i = 0; i < q->n_plans && run_step(&r, TAKE_PTR(first), i, err) && i + 1 < q->n_plans; i++)
        if (asked_to_stop(&r))
            break;
    finish_record(&r);
    final_write(q->status_fd, r.final);
    deliver(&r);
    snprintf(ret->run, sizeof(ret->run), "%s", r.name);
    stop_name(&r.stop, ret->stop);
    ret->exit_status = r.stop.exit_status;
    ret->final = TAKE_PTR(r.final);
    ret->notes = TAKE_PTR(r.notes);
    return 0;
}
