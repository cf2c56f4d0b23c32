/* stop.c: see stop.h. runs in: controller (untrusted input: the numbers in launch_end that are claims) */
#include "control/stop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define UNKNOWN UINT64_MAX

/* policy.md, "How it ends". -1: the worker's own. */
static const struct {
    const char *name;
    int exit_status;
} kinds[STOP_KIND_N] = {
    [STOP_COMPLETED] = {"completed", 0}, [STOP_FAILED] = {"failed", -1},    [STOP_LIMIT] = {"limit", 124},
    [STOP_REFUSED] = {"refused", 76},    [STOP_WAITING] = {"waiting", 75},  [STOP_TRIPWIRE] = {"tripwire", 77},
    [STOP_REVOKED] = {"revoked", 77},    [STOP_STOPPED] = {"stopped", 143}, [STOP_ERROR] = {"error", 125},
    [STOP_LOST] = {"lost", 125},
};

enum {
    EXIT_MEMORY = 137,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_EXPORT_MISSING = 1,
    SIGNALS_FROM = 128,
    SIGNAL_MOST = 64,
};

int stop_exit(enum stop_kind kind, enum plan_limit limit) {
    return kind == STOP_LIMIT && limit == PLAN_MEMORY ? EXIT_MEMORY : kinds[kind].exit_status;
}

const char *stop_name(const struct stop *s, char to[STOP_NAME_MAX]) {
    snprintf(to, STOP_NAME_MAX, "%s%s%s", kinds[s->kind].name, s->kind == STOP_LIMIT ? ":" : "",
             s->kind == STOP_LIMIT ? plan_limit_names[s->limit] : "");
    return to;
}

static bool counted(uint64_t n) {
    return n != UNKNOWN && n > 0;
}

/* Each answers whether its row of the order below holds. */
static bool cannot_be_trusted(const struct stop_facts *f) {
    const struct launch_end *e = &f->end;
    if (f->broken || !f->ended || e->reason == LAUNCH_BY_ERROR)
        return true;
    return (e->how == LAUNCH_HOW_EXITED && e->value > 255) ||
           (e->how == LAUNCH_HOW_SIGNALED && (e->value == 0 || e->value > SIGNAL_MOST));
}

static bool stopped_before_start(const struct stop_facts *f) {
    return f->not_started && f->operator_asked && !f->broken;
}

static bool not_started(const struct stop_facts *f) {
    return f->not_started;
}

static bool past_deadline(const struct stop_facts *f) {
    return f->end.reason == LAUNCH_BY_WALL;
}

static bool past_output(const struct stop_facts *f) {
    return f->output_exceeded || f->end.reason == LAUNCH_BY_OUTPUT;
}

static bool stopped(const struct stop_facts *f) {
    return f->operator_asked || f->end.reason == LAUNCH_BY_OPERATOR;
}

/* The kernel killed for memory, and what ended was the main process, by the signal that the kernel uses; or init
 * itself went with it and could report nothing. */
static bool past_memory(const struct stop_facts *f) {
    const struct launch_end *e = &f->end;
    bool killed = (e->how == LAUNCH_HOW_SIGNALED && e->value == SIGKILL) ||
                  (e->how == LAUNCH_HOW_UNKNOWN && e->init_status == SIGNALS_FROM + SIGKILL);
    return e->reason == LAUNCH_BY_MEMORY || (counted(e->oom_kills) && killed);
}

static bool without_report(const struct stop_facts *f) {
    return f->end.how == LAUNCH_HOW_UNKNOWN;
}

static bool refused(const struct stop_facts *f) {
    return f->refusal && f->end.how == LAUNCH_HOW_EXITED;
}

static bool not_successful(const struct stop_facts *f) {
    return f->end.how != LAUNCH_HOW_EXITED || f->end.value != 0 || f->missing_export;
}

static bool always(const struct stop_facts *f) {
    (void)f;
    return true;
}

/* The first row that holds decides. A run that never started was not stopped by its limits, and what cannot be trusted
 * is never anything else; then what doorward and the kernel saw; then the worker's word; then its exit status. */
static const struct {
    bool (*holds)(const struct stop_facts *);
    enum stop_kind kind;
    enum plan_limit limit;
} order[] = {
    {stopped_before_start, STOP_STOPPED, 0},
    {not_started, STOP_ERROR, 0},
    {cannot_be_trusted, STOP_ERROR, 0},
    {past_deadline, STOP_LIMIT, PLAN_WALL},
    {past_output, STOP_LIMIT, PLAN_OUTPUT},
    {stopped, STOP_STOPPED, 0},
    {past_memory, STOP_LIMIT, PLAN_MEMORY},
    {without_report, STOP_ERROR, 0},
    {refused, STOP_REFUSED, 0},
    {not_successful, STOP_FAILED, 0},
    {always, STOP_COMPLETED, 0},
};

static int workers_own(const struct stop_facts *f) {
    static const int by_how[LAUNCH_HOW_N] = {
        [LAUNCH_HOW_NOT_FOUND] = EXIT_NOT_FOUND, [LAUNCH_HOW_NOT_EXECUTABLE] = EXIT_NOT_EXECUTABLE};
    const struct launch_end *e = &f->end;
    if (e->how == LAUNCH_HOW_EXITED)
        return e->value ? (int)e->value : EXIT_EXPORT_MISSING; /* exit 0 comes here only for a missing export */
    if (e->how == LAUNCH_HOW_SIGNALED)
        return SIGNALS_FROM + (int)e->value;
    return by_how[e->how];
}

/* What was used of each limit, and whether the step ran into it. UNKNOWN where the host keeps no such count. */
static void note_limits(const struct stop_facts *f, struct stop *s) {
    const struct launch_end *e = &f->end;
    const struct {
        enum plan_limit limit;
        bool hit;
        uint64_t peak;
    } seen[] = {
        {PLAN_WALL, e->reason == LAUNCH_BY_WALL, e->wall_us / 1000},
        {PLAN_MEMORY, counted(e->oom_kills) || e->reason == LAUNCH_BY_MEMORY, e->memory_peak},
        {PLAN_PROCESSES, counted(e->process_denials), e->processes_peak},
        {PLAN_DISK, e->disk_full & 1, e->disk_peak},
        {PLAN_FILES, e->disk_full & 2, e->files_peak},
        {PLAN_OUTPUT, past_output(f), f->output},
    };
    for (size_t i = 0; f->ended && i < ELEMENTS(seen); i++) {
        enum plan_limit l = seen[i].limit;
        s->limits[l] = (struct stop_limit_hit){.hit = seen[i].hit,
                                               .hard = seen[i].hit && s->kind == STOP_LIMIT && s->limit == l,
                                               .cap = f->limits[l],
                                               .peak = seen[i].peak};
    }
}

/* A limit's figure in its own unit. */
static const char *figure(enum plan_limit l, uint64_t v, char to[32]) {
    static const bool is_size[PLAN_LIMIT_N] = {[PLAN_MEMORY] = true, [PLAN_DISK] = true, [PLAN_OUTPUT] = true};
    if (is_size[l])
        return str_size(to, v);
    if (l == PLAN_WALL)
        return str_duration(to, v);
    snprintf(to, 32, "%llu", (unsigned long long)v);
    return to;
}

static const char *const remedies[PLAN_LIMIT_N] = {
    [PLAN_WALL] = "raise limits.wall (--timeout)",
    [PLAN_MEMORY] = "raise limits.memory (--memory)",
    [PLAN_PROCESSES] = "raise limits.processes (--processes)",
    [PLAN_CPUS] = "raise limits.cpus (--cpus)",
    [PLAN_DISK] = "raise limits.disk (--disk)",
    [PLAN_FILES] = "raise limits.files",
    [PLAN_OUTPUT] = "raise limits.output (--output), or let it write less",
    [PLAN_OPEN_FILES] = "raise limits.open-files",
};

static void explain(const struct stop_facts *f, struct stop *s) {
    char cap[32], peak[32] = "", detail[512];
    str_safe(detail, sizeof(detail), f->end.detail);
    if (s->kind == STOP_LIMIT) {
        const struct stop_limit_hit *l = &s->limits[s->limit];
        if (l->peak != UNKNOWN)
            figure(s->limit, l->peak, peak);
        snprintf(s->message, sizeof(s->message), "%s%sused, at most %s allowed; %s", peak, *peak ? " " : "",
                 figure(s->limit, l->cap, cap), remedies[s->limit]);
    } else if (s->kind == STOP_FAILED && f->missing_export && f->end.how == LAUNCH_HOW_EXITED && f->end.value == 0) {
        snprintf(s->message, sizeof(s->message),
                 "the worker exited 0, but its required export \"%s\" could not be collected", f->missing_export);
    } else if (s->kind == STOP_FAILED && f->end.how == LAUNCH_HOW_SIGNALED) {
        snprintf(s->message, sizeof(s->message), "killed by signal %u (%s)%s%s", f->end.value,
                 sigabbrev_np((int)f->end.value) ? sigabbrev_np((int)f->end.value) : "real-time", *detail ? ": " : "",
                 detail);
    } else if (s->kind == STOP_STOPPED) {
        snprintf(s->message, sizeof(s->message), "ended by an operator's signal");
    } else if (s->kind == STOP_FAILED || s->kind == STOP_ERROR) {
        snprintf(s->message, sizeof(s->message), "%s", detail);
    }
}

void stop_decide(const struct stop_facts *facts, struct stop *ret) {
    struct stop s = {0};
    size_t i = 0;
    while (!order[i].holds(facts))
        i++;
    s.kind = order[i].kind;
    s.limit = order[i].limit;
    s.exit_status = stop_exit(s.kind, s.limit);
    if (s.kind == STOP_FAILED)
        s.exit_status = workers_own(facts);
    note_limits(facts, &s);
    explain(facts, &s);
    *ret = s;
}

json_t *stop_limits_json(const struct stop *s) {
    json_t *list = json_array();
    for (int l = 0; list && l < PLAN_LIMIT_N; l++) {
        const struct stop_limit_hit *h = &s->limits[l];
        if (!h->hit)
            continue;
        json_t *row = json_pack(
            "{s:s, s:b, s:I, s:o, s:s}", "limit", plan_limit_names[l], "hard", h->hard, "cap", (json_int_t)h->cap,
            "peak", h->peak == UNKNOWN ? json_null() : json_integer((json_int_t)h->peak), "remedy", remedies[l]);
        json_array_append_new(list, row);
    }
    return list;
}
