/* stop_test.c: the last table of policy.md, row by row. */
#include "base/test.h"

#include <signal.h>

#include "control/stop.h"

#define UNKNOWN UINT64_MAX

/* A step that ended by itself, exit 0, nothing hit. */
static struct stop_facts plain(void) {
    return (struct stop_facts){.ended = true,
                               .limits = plan_limit_defaults,
                               .end = {.how = LAUNCH_HOW_EXITED, .memory_peak = 5 << 20, .processes_peak = 3}};
}

static struct stop decide(const struct stop_facts *f) {
    struct stop s;
    stop_decide(f, &s);
    return s;
}

static const char *name(const struct stop *s) {
    static char to[STOP_NAME_MAX];
    return stop_name(s, to);
}

struct row {
    const char *what;
    struct stop_facts facts; /* over plain() */
    const char *stop;
    int exit_status;
};

#define ENDED(...) .ended = true, .limits = plan_limit_defaults, .end = {__VA_ARGS__}

static const struct row rows[] = {
    {"exit 0", {ENDED(.how = LAUNCH_HOW_EXITED)}, "completed", 0},
    {"exit 1", {ENDED(.how = LAUNCH_HOW_EXITED, .value = 1)}, "failed", 1},
    {"exit 255", {ENDED(.how = LAUNCH_HOW_EXITED, .value = 255)}, "failed", 255},
    {"exit 124 is the worker's", {ENDED(.how = LAUNCH_HOW_EXITED, .value = 124)}, "failed", 124},
    {"not executable", {ENDED(.how = LAUNCH_HOW_NOT_EXECUTABLE)}, "failed", 126},
    {"not found", {ENDED(.how = LAUNCH_HOW_NOT_FOUND)}, "failed", 127},
    {"SIGKILL", {ENDED(.how = LAUNCH_HOW_SIGNALED, .value = 9)}, "failed", 137},
    {"SIGSEGV", {ENDED(.how = LAUNCH_HOW_SIGNALED, .value = 11)}, "failed", 139},
    {"deadline", {ENDED(.reason = LAUNCH_BY_WALL, .how = LAUNCH_HOW_SIGNALED, .value = 9)}, "limit:wall", 124},
    {"deadline, init silent", {ENDED(.reason = LAUNCH_BY_WALL)}, "limit:wall", 124},
    {"output", {ENDED(.reason = LAUNCH_BY_OUTPUT), .output_exceeded = true}, "limit:output", 124},
    {"output, exited first", {ENDED(.how = LAUNCH_HOW_EXITED), .output_exceeded = true}, "limit:output", 124},
    {"memory, main killed", {ENDED(.how = LAUNCH_HOW_SIGNALED, .value = 9, .oom_kills = 1)}, "limit:memory", 137},
    {"memory, init killed too",
     {ENDED(.how = LAUNCH_HOW_UNKNOWN, .init_status = 137, .oom_kills = 2)},
     "limit:memory",
     137},
    {"memory seen by the watcher", {ENDED(.reason = LAUNCH_BY_MEMORY)}, "limit:memory", 137},
    {"memory, a child killed", {ENDED(.how = LAUNCH_HOW_EXITED, .oom_kills = 1)}, "completed", 0},
    {"memory, a child killed, exit 3", {ENDED(.how = LAUNCH_HOW_EXITED, .value = 3, .oom_kills = 1)}, "failed", 3},
    {"SIGKILL, count not known", {ENDED(.how = LAUNCH_HOW_SIGNALED, .value = 9, .oom_kills = UNKNOWN)}, "failed", 137},
    {"SIGTERM with a child's memory kill",
     {ENDED(.how = LAUNCH_HOW_SIGNALED, .value = 15, .oom_kills = 1)},
     "failed",
     143},
    {"refused", {ENDED(.how = LAUNCH_HOW_EXITED, .value = 2), .refusal = true}, "refused", 76},
    {"refused, exit 0", {ENDED(.how = LAUNCH_HOW_EXITED), .refusal = true}, "refused", 76},
    {"a refusal does not outrank the deadline", {ENDED(.reason = LAUNCH_BY_WALL), .refusal = true}, "limit:wall", 124},
    {"a refusal does not outrank memory",
     {ENDED(.how = LAUNCH_HOW_SIGNALED, .value = 9, .oom_kills = 1), .refusal = true},
     "limit:memory",
     137},
    {"a refusal does not outrank a signal",
     {ENDED(.how = LAUNCH_HOW_SIGNALED, .value = 11), .refusal = true},
     "failed",
     139},
    {"operator", {ENDED(.reason = LAUNCH_BY_OPERATOR)}, "stopped", 143},
    {"operator, worker obeyed", {ENDED(.how = LAUNCH_HOW_EXITED), .operator_asked = true}, "stopped", 143},
    {"operator before the start", {.not_started = true, .operator_asked = true}, "stopped", 143},
    {"never started", {.not_started = true}, "error", 125},
    {"the launcher died", {.limits = plan_limit_defaults}, "error", 125},
    {"the launcher died on its own account", {ENDED(.reason = LAUNCH_BY_ERROR)}, "error", 125},
    {"no report", {ENDED(.how = LAUNCH_HOW_UNKNOWN)}, "error", 125},
    {"the journal failed", {ENDED(.how = LAUNCH_HOW_EXITED), .broken = true}, "error", 125},
    {"a claim out of range", {ENDED(.how = LAUNCH_HOW_EXITED, .value = 256)}, "error", 125},
    {"signal 0", {ENDED(.how = LAUNCH_HOW_SIGNALED)}, "error", 125},
    {"signal 65", {ENDED(.how = LAUNCH_HOW_SIGNALED, .value = 65)}, "error", 125},
    {"export missing", {ENDED(.how = LAUNCH_HOW_EXITED), .missing_export = "report"}, "failed", 1},
};

TEST(every_row_of_the_table) {
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        struct stop s = decide(&rows[i].facts);
        if (strcmp(name(&s), rows[i].stop) != 0 || s.exit_status != rows[i].exit_status)
            printf("# %s: %s %d\n", rows[i].what, name(&s), s.exit_status);
        CHECK_STR(name(&s), rows[i].stop);
        CHECK_EQ(s.exit_status, rows[i].exit_status);
    }
}

TEST(fixed_exit_statuses) {
    CHECK_EQ(stop_exit(STOP_COMPLETED, 0), 0);
    CHECK_EQ(stop_exit(STOP_REFUSED, 0), 76);
    CHECK_EQ(stop_exit(STOP_WAITING, 0), 75);
    CHECK_EQ(stop_exit(STOP_TRIPWIRE, 0), 77);
    CHECK_EQ(stop_exit(STOP_REVOKED, 0), 77);
    CHECK_EQ(stop_exit(STOP_STOPPED, 0), 143);
    CHECK_EQ(stop_exit(STOP_ERROR, 0), 125);
    CHECK_EQ(stop_exit(STOP_LOST, 0), 125);
    CHECK_EQ(stop_exit(STOP_FAILED, 0), -1);
    for (int l = 0; l < PLAN_LIMIT_N; l++)
        CHECK_EQ(stop_exit(STOP_LIMIT, l), l == PLAN_MEMORY ? 137 : 124);
}

TEST(no_end_but_completion_is_zero) {
    for (int k = 0; k < STOP_KIND_N; k++)
        CHECK(k == STOP_COMPLETED || stop_exit(k, 0) != 0);
    struct stop_facts f = plain();
    f.missing_export = "x";
    CHECK(decide(&f).exit_status != 0);
}

TEST(soft_limits_are_listed_and_do_not_stop) {
    struct stop_facts f = plain();
    f.end.process_denials = 4;
    f.end.disk_full = 3;
    f.end.oom_kills = 1;
    f.end.processes_peak = 512;
    struct stop s = decide(&f);
    CHECK_EQ(s.kind, STOP_COMPLETED);
    CHECK(s.limits[PLAN_PROCESSES].hit && !s.limits[PLAN_PROCESSES].hard);
    CHECK_EQ(s.limits[PLAN_PROCESSES].peak, 512);
    CHECK_EQ(s.limits[PLAN_PROCESSES].cap, plan_limit_defaults[PLAN_PROCESSES]);
    CHECK(s.limits[PLAN_DISK].hit && s.limits[PLAN_FILES].hit && s.limits[PLAN_MEMORY].hit);
    CHECK(!s.limits[PLAN_WALL].hit && !s.limits[PLAN_OUTPUT].hit);
    _cleanup_json_ json_t *list = stop_limits_json(&s);
    CHECK_EQ(json_array_size(list), 4);
    for (size_t i = 0; i < json_array_size(list); i++) {
        CHECK(json_is_false(json_object_get(json_array_get(list, i), "hard")));
        CHECK(json_string_length(json_object_get(json_array_get(list, i), "remedy")) > 0);
    }
}

TEST(a_hard_limit_says_figure_cap_and_remedy) {
    struct stop_facts f = plain();
    f.end.reason = LAUNCH_BY_WALL;
    f.end.wall_us = 1800000000;
    struct stop s = decide(&f);
    CHECK(s.limits[PLAN_WALL].hard);
    CHECK(strstr(s.message, "30m used") && strstr(s.message, "--timeout"));
    f = plain();
    f.output_exceeded = true;
    f.output = 20000000;
    s = decide(&f);
    CHECK(strstr(s.message, "20MB used, at most 10MB"));
}

TEST(unknown_counts_are_no_hits) {
    struct stop_facts f = plain();
    f.end.oom_kills = f.end.process_denials = f.end.memory_peak = UNKNOWN;
    struct stop s = decide(&f);
    CHECK(!s.limits[PLAN_MEMORY].hit && !s.limits[PLAN_PROCESSES].hit);
    _cleanup_json_ json_t *list = stop_limits_json(&s);
    CHECK_EQ(json_array_size(list), 0);
}

TEST(details_are_harmless) {
    struct stop_facts f = plain();
    f.end.how = LAUNCH_HOW_NOT_FOUND;
    snprintf(f.end.detail, sizeof(f.end.detail), "no \033[2Jprogram");
    struct stop s = decide(&f);
    CHECK_STR(s.message, "no \\x1b[2Jprogram");
}

TEST_MAIN()
