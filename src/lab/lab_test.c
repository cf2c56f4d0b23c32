/* lab_test.c: the table of probes, judging, the plans of probes, the record. runs in: tests */
#include "base/test.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>

#include "base/str.h"
#include "lab/lab.h"

TEST(every_row_has_a_wall_to_take_off_or_says_what_else_it_is) {
    CHECK(lab_n_rows > 60);
    for (size_t i = 0; i < lab_n_rows; i++) {
        const struct lab_row *r = &lab_rows[i];
        bool can_be_off = r->off != 0 || r->limit != LAB_NO_LIMIT;
        CHECK(can_be_off == (r->kind == LAB_WALL));
        CHECK(r->off < 1u << PLAN_WALL_N && r->limit < (int)PLAN_LIMIT_N);
        CHECK(r->must && r->must[0] && r->case_id && r->case_id[0]);
        CHECK(r->deadline_ms >= 1000);
        CHECK(lab_row_find(r->name) == r); /* no name twice */
        CHECK(r->name[strspn(r->name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0');
    }
    CHECK(lab_row_find("no-such-probe") == NULL);
}

TEST(every_wall_and_limit_but_cpus_is_tried) {
    uint32_t walls = 0, limits = 0;
    for (size_t i = 0; i < lab_n_rows; i++) {
        walls |= lab_rows[i].off;
        limits |= lab_rows[i].limit == LAB_NO_LIMIT ? 0 : 1u << lab_rows[i].limit;
    }
    for (int w = 0; w < PLAN_WALL_N; w++)
        CHECK(walls >> w & 1);
    for (int l = 0; l < PLAN_LIMIT_N; l++)
        CHECK(limits >> l & 1 || l == PLAN_CPUS); /* a share of time is measured by the benchmarks */
}

static void read_answer(struct lab_attempt *a, const char *text) {
    *a = (struct lab_attempt){.done = true};
    lab_read_answer(lab_row_find("mount"), text, strlen(text), a);
}

#define ANSWER(result) "{\"probe\":\"mount\",\"result\":\"" result "\",\"errno\":1,\"detail\":\"d\"}\n"

TEST(an_answer_is_the_last_line_and_exactly_of_its_form) {
    struct lab_attempt a;
    read_answer(&a, "noise\n" ANSWER("open") "more noise\n" ANSWER("held"));
    CHECK(a.answered);
    CHECK_EQ(a.said, LAB_HELD);
    CHECK_EQ(a.err, 1);
    CHECK_STR(a.detail, "d");
    static const char *const bad[] = {
        "",
        "\n",
        "{",
        "{}\n",
        "held\n",
        (ANSWER("no")),
        "{\"probe\":\"home\",\"result\":\"held\",\"errno\":1,\"detail\":\"another probe's\"}\n",
        "{\"probe\":\"mount\",\"result\":\"held\",\"errno\":1,\"detail\":\"d\",\"more\":1}\n",
        "{\"probe\":\"mount\",\"result\":\"held\",\"errno\":\"1\",\"detail\":\"d\"}\n",
        "{\"probe\":\"mount\",\"result\":\"held\",\"detail\":\"d\"}\n"};
    for (size_t i = 0; i < ELEMENTS(bad); i++) {
        read_answer(&a, bad[i]);
        CHECK(!a.answered);
    }
}

static struct lab_attempt said(enum lab_result r) {
    return (struct lab_attempt){.done = true, .answered = true, .said = r};
}

TEST(canaries_outrank_what_the_probe_says) {
    const struct lab_row *tcp = lab_row_find("loopback-tcp"), *file = lab_row_find("write-canary"),
                         *child = lab_row_find("outliving-child");
    struct lab_attempt a = said(LAB_HELD);
    CHECK_EQ(lab_attempt_result(tcp, &a, false), LAB_HELD);
    a.heard = true;
    CHECK_EQ(lab_attempt_result(tcp, &a, false), LAB_OPEN);
    CHECK_EQ(lab_attempt_result(lab_row_find("mount"), &a, false), LAB_HELD); /* not this row's canary */
    a = said(LAB_HELD);
    a.changed = true;
    CHECK_EQ(lab_attempt_result(file, &a, false), LAB_OPEN);
    a = said(LAB_OPEN);
    CHECK_EQ(lab_attempt_result(child, &a, false), LAB_HELD); /* it left a child, which was gone at the end */
    a.lingering = 1;
    CHECK_EQ(lab_attempt_result(child, &a, false), LAB_OPEN);
    a = (struct lab_attempt){.done = true, .stop = "error", .exit = 125};
    CHECK_EQ(lab_attempt_result(child, &a, false), LAB_BROKEN); /* it never ran */
    CHECK_EQ(lab_attempt_result(lab_row_find("killed-controller"), &(struct lab_attempt){.done = true}, false),
             LAB_BROKEN);
}

TEST(a_control_counts_only_when_the_listener_heard_it) {
    struct lab_attempt a = said(LAB_OPEN);
    CHECK_EQ(lab_attempt_result(lab_row_find("loopback-tcp"), &a, true), LAB_HELD);
    a.heard = true;
    CHECK_EQ(lab_attempt_result(lab_row_find("loopback-tcp"), &a, true), LAB_OPEN);
}

TEST(what_cannot_speak_is_judged_by_how_it_ended) {
    struct lab_attempt a = {.done = true, .stop = "limit:output", .exit = 124};
    CHECK_EQ(lab_attempt_result(lab_row_find("output"), &a, false), LAB_HELD);
    CHECK_EQ(lab_attempt_result(lab_row_find("deadline"), &a, false), LAB_BROKEN); /* another limit */
    a = (struct lab_attempt){.done = true, .exit = 128 + SIGSYS};
    CHECK_EQ(lab_attempt_result(lab_row_find("mount"), &a, false), LAB_HELD);
    a = (struct lab_attempt){.done = true, .stop = "error", .exit = 125};
    CHECK_EQ(lab_attempt_result(lab_row_find("mount"), &a, false), LAB_BROKEN);
    CHECK_EQ(lab_attempt_result(lab_row_find("link-targets"), &a, false), LAB_HELD);
    a = said(LAB_HELD);
    a.hung = true;
    CHECK_EQ(lab_attempt_result(lab_row_find("mount"), &a, false), LAB_BROKEN);
    a = said(LAB_HELD);
    snprintf(a.stop, sizeof(a.stop), "error");
    CHECK_EQ(lab_attempt_result(lab_row_find("attack-init"), &a, false), LAB_BROKEN);
    CHECK_EQ(lab_attempt_result(lab_row_find("mount"), &(struct lab_attempt){0}, false), LAB_BROKEN);
}

static enum lab_verdict verdict(const char *row, int before, int inside, int after, int off, bool root, bool with_off) {
    struct lab_outcome o = {.row = lab_row_find(row),
                            .before = said((enum lab_result)before),
                            .inside = said((enum lab_result)inside),
                            .after = said((enum lab_result)after),
                            .off = said((enum lab_result)off)};
    lab_judge(&o, root, with_off);
    return o.why[0] || o.verdict == LAB_IS_HELD ? o.verdict : LAB_VERDICT_N;
}

enum { H = LAB_HELD, O = LAB_OPEN, B = LAB_BROKEN, A = LAB_ABSENT };

TEST(verdicts) {
    static const struct {
        const char *row;
        int before, inside, after, off;
        bool root, with_off;
        enum lab_verdict want;
    } cases[] = {
        {"mount", O, H, O, O, true, true, LAB_IS_HELD},
        {"mount", O, H, O, H, true, true, LAB_CANNOT_FAIL},
        {"mount", O, H, O, B, true, true, LAB_CANNOT_FAIL},
        {"mount", O, H, O, H, true, false, LAB_IS_HELD}, /* another sandbox: its walls stay */
        {"mount", O, O, O, O, true, true, LAB_IS_OPEN},
        {"mount", H, O, O, O, true, true, LAB_IS_OPEN}, /* open is open, whatever the control says */
        {"mount", H, H, O, O, true, true, LAB_IS_BROKEN},
        {"mount", O, H, H, O, true, true, LAB_IS_BROKEN},
        {"mount", O, B, O, O, true, true, LAB_IS_BROKEN},
        {"x32-calls", A, H, A, H, true, true, LAB_IS_ABSENT},
        {"make-device", H, H, H, H, false, true, LAB_IS_ABSENT}, /* an ordinary user cannot make one outside */
        {"make-device", H, O, H, H, false, true, LAB_IS_OPEN},
        {"make-device", H, H, H, H, true, true, LAB_IS_BROKEN},
        {"core-dumps", O, H, O, H, true, true, LAB_IS_HELD}, /* a setup row has no wall to take off */
        {"semaphores", H, H, H, H, true, true, LAB_IS_HELD},
        {"semaphores", H, O, H, H, true, true, LAB_IS_OPEN},
        {"semaphores", O, O, H, H, true, true, LAB_IS_ABSENT},
    };
    for (size_t i = 0; i < ELEMENTS(cases); i++)
        CHECK_EQ(verdict(cases[i].row, cases[i].before, cases[i].inside, cases[i].after, cases[i].off, cases[i].root,
                         cases[i].with_off),
                 cases[i].want);
}

TEST(all_held_needs_something_that_held) {
    struct lab_counts none = {{0}}, held = {{0}}, open = {{0}};
    held.of[LAB_IS_HELD] = open.of[LAB_IS_HELD] = open.of[LAB_IS_OPEN] = 1;
    held.of[LAB_IS_ABSENT] = 3;
    CHECK(!lab_all_held(&none));
    CHECK(lab_all_held(&held));
    CHECK(!lab_all_held(&open));
    held.of[LAB_CANNOT_FAIL] = 1;
    CHECK(!lab_all_held(&held));
}

/* The least that plan_check accepts. */
static const char *base_text(void) {
    static char *text;
    static char *argv[] = {"true", NULL}, *env[] = {"PATH=/usr/bin", NULL};
    struct plan p = {.task = "run", .step = "main", .argv = argv, .env = env, .workdir = "/"};
    memcpy(p.limits, plan_limit_defaults, sizeof(p.limits));
    if (!text)
        text = plan_encode(&p);
    return text;
}

static char *facts[] = {"dir=/tmp/stage", "nonce=0", NULL};
static const struct lab_scene scene = {.probe = "/build/doorward-probe", .dir = "/tmp/stage", .facts = facts};

static int plan_of(const char *row, bool off, struct plan *ret, struct error *err) {
    _cleanup_plan_ struct plan base = {0};
    int r = plan_decode(base_text(), strlen(base_text()), &base, err);
    return r < 0 ? r : lab_plan(lab_row_find(row), &scene, &base, off, ret, err);
}

TEST(every_row_makes_a_plan_that_keeps_the_rules) {
    for (size_t i = 0; i < lab_n_rows; i++)
        for (int off = 0; off < 2; off++) {
            _cleanup_plan_ struct plan p = {0};
            struct error err = {0};
            int r = plan_of(lab_rows[i].name, off, &p, &err);
            if (r < 0)
                printf("# %s: %s\n", lab_rows[i].name, err.message);
            CHECK(r == 0);
            CHECK_STR(p.argv[2], lab_rows[i].name);
            CHECK_STR(p.argv[4], "nonce=0");
            CHECK(p.limits[PLAN_WALL] <= lab_rows[i].deadline_ms + 3000);
            bool out = off || lab_rows[i].flags & LAB_UNDER; /* but for Landlock, which is what such a row tries */
            for (int w = 0; w < PLAN_WALL_N; w++)
                CHECK_EQ(p.lab_off[w], (off || w != PLAN_WALL_LANDLOCK) && out && lab_rows[i].off >> w & 1);
        }
}

TEST(a_row_that_tests_a_limit_has_it_tight_or_off) {
    _cleanup_plan_ struct plan with = {0}, without = {0};
    CHECK(plan_of("memory", false, &with, NULL) == 0);
    CHECK(plan_of("memory", true, &without, NULL) == 0);
    CHECK_EQ(with.limits[PLAN_MEMORY], LAB_MEMORY);
    CHECK_EQ(with.limits[PLAN_DISK], plan_limit_defaults[PLAN_DISK]);
    CHECK(!with.lab_limit_off[PLAN_MEMORY] && without.lab_limit_off[PLAN_MEMORY]);
}

TEST(the_table_names_what_is_wrong_and_neutralises_it) {
    _cleanup_buf_ struct buf b = {0};
    struct lab_outcome o = {.row = lab_row_find("mount"), .inside = said(LAB_HELD), .off = said(LAB_OPEN)};
    o.inside.err = EPERM;
    lab_put_line(&b, &o);
    CHECK(strstr(b.bytes, "mount") && strstr(b.bytes, "seccomp+landlock") && strstr(b.bytes, "held EPERM"));
    CHECK(strstr(b.bytes, "open"));
    b.n = 0;
    o.verdict = LAB_IS_BROKEN;
    snprintf(o.why, sizeof(o.why), "\033[2Jgone");
    lab_put_line(&b, &o);
    CHECK(strstr(b.bytes, "broken: \\x1b[2Jgone"));
    b.n = 0;
    lab_put_summary(&b, &o, 1);
    CHECK_STR(b.bytes, "1 probes: 0 held, 1 broken\n");
}

TEST(the_record_says_what_ran_and_how_it_went) {
    struct lab_outcome o = {.row = lab_row_find("mount"), .before = said(LAB_OPEN), .inside = said(LAB_HELD)};
    struct lab_head head = {.mode = "user", .plan_digest = "00"};
    _cleanup_json_ json_t *j = lab_record(&head, &o, 1);
    CHECK(j != NULL);
    CHECK_STR(json_string_value(json_object_get(j, "mode")), "user");
    CHECK(json_object_get(j, "kernel") && json_object_get(j, "runtime") && !json_object_get(j, "against"));
    const json_t *r = json_array_get(json_object_get(j, "results"), 0);
    CHECK_STR(json_string_value(json_object_get(r, "probe")), "mount");
    CHECK_STR(json_string_value(json_object_get(r, "verdict")), "held");
    CHECK_STR(json_string_value(json_object_get(json_object_get(r, "control_before"), "result")), "open");
    CHECK(json_is_null(json_object_get(r, "without_wall")));
    CHECK_EQ(json_integer_value(json_object_get(json_object_get(j, "summary"), "held")), 1);
    _cleanup_json_ json_t *list = lab_list();
    CHECK_EQ(json_array_size(list), lab_n_rows);
}

TEST_MAIN()
