/* plan_test.c: encoding, rules and words of plans. runs in: tests */
#include "plan/plan.h"

#include <errno.h>

#include "base/str.h"
#include "base/test.h"

static char *text(const char *s) {
    return strdup(s);
}

/* A plan that keeps every rule; tests spoil one thing at a time. */
static struct plan sample(void) {
    struct plan p = {.task = text("fix-bug"), .step = text("main"), .workdir = text("/work")};
    strv_add(&p.argv, "make");
    strv_add(&p.argv, "te\"st \xc3\xa9");
    strv_add(&p.env, "PATH=/bin");
    strv_add(&p.env, "A=b=c");
    p.inputs = calloc(3, sizeof(*p.inputs));
    p.n_inputs = 3;
    p.inputs[0] = (struct plan_input){PLAN_OVERLAY, text("/work"),    text("/src"), true,          NULL, NULL,
                                      false,        PLAN_DIGEST_NONE, false,        PLAN_SCAN_OFF, false};
    strv_add(&p.inputs[0].exclude, "*.pem");
    p.inputs[1] = (struct plan_input){PLAN_READ, text("/work/x"),  text("/x"), true,          NULL, NULL,
                                      true,      PLAN_DIGEST_NONE, false,      PLAN_SCAN_OFF, false};
    p.inputs[2] = (struct plan_input){PLAN_COPY, text("/in/f"),    text("/f"), false,         NULL, NULL,
                                      false,     PLAN_DIGEST_NONE, false,      PLAN_SCAN_OFF, false};
    memcpy(p.limits, plan_limit_defaults, sizeof(p.limits));
    p.exports = calloc(1, sizeof(*p.exports));
    p.n_exports = 1;
    p.exports[0] = (struct plan_export){text("report"), text("/out/r.json"), 1000, true, false};
    p.degrade_wall[PLAN_WALL_CGROUP] = true;
    p.degrade_limit[PLAN_MEMORY] = true;
    p.lab_off[PLAN_WALL_NET] = true;
    p.terminal = true;
    return p;
}

static void set(char **at, const char *s) {
    free(*at);
    *at = text(s);
}

/* 1 when plan_check refuses and its message contains `want`. */
static int refused(const struct plan *p, const char *want) {
    struct error err = {0};
    int r = plan_check(p, &err);
    if (r == 0 || !strstr(err.message, want))
        printf("# %d \"%s\" lacks \"%s\"\n", r, err.message, want);
    return r == -EINVAL && strstr(err.message, want) != NULL;
}

TEST(a_plan_comes_back_the_same) {
    _cleanup_plan_ struct plan p = sample();
    _cleanup_plan_ struct plan q = {0};
    struct error err = {0};
    CHECK_EQ(plan_check(&p, &err), 0);
    _cleanup_free_ char *a = plan_encode(&p);
    CHECK(a);
    CHECK_EQ(plan_decode(a, strlen(a), &q, &err), 0);
    _cleanup_free_ char *b = plan_encode(&q);
    CHECK_STR(b, a);
    CHECK_STR(q.argv[1], "te\"st \xc3\xa9");
    CHECK_EQ(q.n_inputs, 3);
    CHECK_EQ(q.inputs[1].kind, PLAN_READ);
    CHECK(q.inputs[1].sensitive && q.inputs[1].directory && !q.inputs[1].exclude);
    CHECK_STR(q.inputs[0].exclude[0], "*.pem");
    CHECK_EQ(q.exports[0].max, 1000);
    CHECK(q.exports[0].required && !q.exports[0].executable);
    CHECK(q.degrade_wall[PLAN_WALL_CGROUP] && q.degrade_limit[PLAN_MEMORY] && q.lab_off[PLAN_WALL_NET]);
    CHECK(q.terminal && !q.input);
}

TEST(the_digest_follows_every_field) {
    _cleanup_plan_ struct plan p = sample();
    char a[DIGEST_HEX], b[DIGEST_HEX];
    CHECK_EQ(plan_digest(&p, a), 0);
    CHECK(digest_is_hex(a));
    p.inputs[2].sensitive = true;
    CHECK_EQ(plan_digest(&p, b), 0);
    CHECK(strcmp(a, b) != 0);
    p.inputs[2].sensitive = false;
    CHECK_EQ(plan_digest(&p, b), 0);
    CHECK_STR(a, b);
}

/* The encoding of `p` with `from` replaced by `to`, decoded. */
static int decode_changed(const char *from, const char *to, struct error *err) {
    _cleanup_plan_ struct plan p = sample();
    _cleanup_plan_ struct plan q = {0};
    _cleanup_free_ char *a = plan_encode(&p);
    _cleanup_buf_ struct buf b = {0};
    char *at = a ? strstr(a, from) : NULL;
    if (!at) {
        printf("# no %s in %s\n", from, a ? a : "(null)");
        return 0;
    }
    buf_put(&b, a, (size_t)(at - a));
    buf_puts(&b, to);
    buf_puts(&b, at + strlen(from));
    int r = plan_decode(b.bytes, b.n, &q, err);
    return q.argv || q.inputs ? 0 : r; /* untouched on failure */
}

TEST(decoding_refuses_what_it_does_not_know) {
    static const char *const rows[][3] = {
        {"\"version\":1", "\"version\":2", "plan.version is 2"},
        {"\"version\":1", "\"version\":1,\"extra\":0", "plan.extra is not known"},
        {"\"version\":1", "\"version\":\"1\"", "plan.version must be a whole number"},
        {"\"terminal\":true", "\"terminal\":1", "plan.terminal must be true or false"},
        {"\"terminal\":true", "\"input\":true", "duplicate"},
        {"\"terminal\":true,", "", "plan.terminal is missing"},
        {"\"kind\":\"copy\"", "\"kind\":\"move\"", "plan.inputs[2].kind: \"move\" is not known"},
        {"\"kind\":\"copy\"", "\"kind\":\"copy\",\"mode\":1", "plan.inputs[2].mode is not known"},
        {"\"user\":\"agent\"", "\"user\":\"me\"", "plan.user"},
        {"\"walls\":[\"cgroup\"]", "\"walls\":[\"moat\"]", "plan.degrade.walls: \"moat\" is not known"},
        {"\"walls\":[\"cgroup\"]", "\"walls\":[\"cgroup\",\"cgroup\"]", "there twice"},
        {"\"limits\":[\"memory\"]", "\"limits\":[7]", "plan.degrade.limits[0] must be a string"},
        {"\"cpus\":2000", "\"cpus\":2000,\"luck\":7", "plan.limits"},
        {"\"cpus\":2000", "\"cpus\":-1", "must not be negative"},
        {"\"cpus\":2000", "\"cpus\":0", "plan.limits.cpus is 0"},
        {"\"cpus\":2000,", "", "plan.limits.cpus is missing"},
        {"\"exclude\":[\"*.pem\"]", "\"exclude\":\"*.pem\"", "plan.inputs[0].exclude must be an array"},
        {"\"argv\":[\"make\"", "\"argv\":[\"ma\\u0000ke\"", "not JSON"},
        {"\"inputs\":[{", "\"inputs\":[3,{", "plan.inputs[0] must be an object"},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        struct error err = {0};
        CHECK(decode_changed(rows[i][0], rows[i][1], &err) < 0);
        if (!strstr(err.message, rows[i][2]))
            printf("# \"%s\" lacks \"%s\"\n", err.message, rows[i][2]);
        CHECK(strstr(err.message, rows[i][2]));
    }
    struct plan q = {0};
    struct error err = {0};
    CHECK(plan_decode("[]", 2, &q, &err) < 0);
    CHECK(plan_decode("", 0, &q, &err) < 0);
    CHECK(plan_decode("{}", 2, &q, &err) < 0);
}

TEST(names_have_one_form) {
    static const char *const good[] = {"a", "0", "fix-bug_2", "a-"};
    static const char *const bad[] = {"", "-a", "_a", "A", "a b", "a/b", "\xc3\xa9", "a\n"};
    char long_name[PLAN_NAME_MAX + 2];
    for (size_t i = 0; i < ELEMENTS(good); i++)
        CHECK(plan_name_is_valid(good[i]));
    for (size_t i = 0; i < ELEMENTS(bad); i++)
        CHECK(!plan_name_is_valid(bad[i]));
    memset(long_name, 'a', sizeof(long_name));
    long_name[PLAN_NAME_MAX + 1] = 0;
    CHECK(!plan_name_is_valid(long_name));
    long_name[PLAN_NAME_MAX] = 0;
    CHECK(plan_name_is_valid(long_name));
    CHECK(plan_variable_is_valid("npm_config_@x:y", 15) && plan_variable_is_valid("A=", 1));
    CHECK(!plan_variable_is_valid("", 0) && !plan_variable_is_valid("A B", 3) && !plan_variable_is_valid("A=", 2));
}

TEST(canonical_paths_are_told_from_others) {
    static const char *const good[] = {"/", "/a", "/a/b", "/...", "/.a", "/a..", "/..a/b"};
    static const char *const bad[] = {"",   "a",   "/a/",  "//",    "//a",  "/a//b",
                                      "/.", "/..", "/a/.", "/a/..", "/./a", "/../a"};
    for (size_t i = 0; i < ELEMENTS(good); i++)
        CHECK(plan_path_is_canonical(good[i]));
    for (size_t i = 0; i < ELEMENTS(bad); i++)
        CHECK(!plan_path_is_canonical(bad[i]));
    char long_path[PLAN_PATH_MAX + 2];
    memset(long_path, 'a', sizeof(long_path));
    long_path[0] = '/';
    long_path[PLAN_PATH_MAX + 1] = 0;
    CHECK(!plan_path_is_canonical(long_path));
    long_path[PLAN_PATH_MAX] = 0;
    CHECK(plan_path_is_canonical(long_path));
}

TEST(targets_of_our_own_are_closed) {
    static const char *const bad[] = {"/",      "/proc",    "/proc/self",   "/dev",        "/dev/shm", "/dev/shm/x",
                                      "/sys/x", "/usr",     "/usr/local/x", "/etc/passwd", "/run",     "/run/doorward",
                                      "/bin",   "/lib64/x", "/home",        "work",        "/work/",   "/a/../usr"};
    static const char *const good[] = {"/work",  "/in/x",  "/home/agent", "/home/agent/.x", "/home/me",
                                       "/tmp",   "/tmp/x", "/out/x",      "/usrx",          "/binary",
                                       "/procs", "/opt/x", "/var/lib/x"};
    struct error err = {0};
    for (size_t i = 0; i < ELEMENTS(bad); i++)
        if (plan_target_check(bad[i], &err) != -EINVAL) {
            printf("# %s\n", bad[i]);
            CHECK(!"refused");
        }
    for (size_t i = 0; i < ELEMENTS(good); i++)
        CHECK_EQ(plan_target_check(good[i], &err), 0);
}

TEST(inputs_keep_their_order_and_kind) {
    _cleanup_plan_ struct plan p = sample();
    set(&p.inputs[2].target, "/work/x");
    CHECK(refused(&p, "two inputs stand at /work/x"));
    set(&p.inputs[2].target, "/in/f");
    set(&p.inputs[0].target, "/work/x/y");
    CHECK(refused(&p, "plan.inputs[0]: /work/x/y comes before"));
    set(&p.inputs[0].target, "/work");
    set(&p.inputs[2].target, "/work-too");
    struct error err = {0};
    CHECK_EQ(plan_check(&p, &err), 0);
    p.inputs[0].directory = false;
    CHECK(refused(&p, "an overlay needs a folder"));
    p.inputs[0].kind = PLAN_COPY;
    CHECK(refused(&p, "exclude and only are for folders"));
    strv_free(p.inputs[0].exclude);
    p.inputs[0].exclude = NULL;
    CHECK(refused(&p, "lies below an input that is a file"));
    set(&p.inputs[1].target, "/usr/x");
    CHECK(refused(&p, "plan.inputs[1].target: no input may stand at /usr/x"));
    set(&p.inputs[1].target, "/in/x");
    set(&p.inputs[1].source, "x/../y");
    CHECK(refused(&p, "plan.inputs[1].source"));
    set(&p.inputs[1].source, "/a\xff");
    CHECK(refused(&p, "plan.inputs[1].source is not UTF-8 at byte 2"));
}

TEST(thousands_of_inputs_are_checked_quickly) {
    _cleanup_plan_ struct plan p = sample();
    struct error err = {0};
    p.inputs = realloc(p.inputs, PLAN_INPUTS_MAX * sizeof(*p.inputs));
    for (; p.n_inputs < PLAN_INPUTS_MAX; p.n_inputs++) {
        char target[64];
        snprintf(target, sizeof(target), "/in/%zu", p.n_inputs);
        p.inputs[p.n_inputs] = (struct plan_input){PLAN_READ, text(target),     text(target), false,         NULL, NULL,
                                                   false,     PLAN_DIGEST_NONE, false,        PLAN_SCAN_OFF, false};
    }
    CHECK_EQ(plan_check(&p, &err), 0);
    p.n_inputs++;
    CHECK(refused(&p, "plan.inputs has 8193 entries"));
    p.n_inputs--;
}

TEST(the_command_has_bounds) {
    _cleanup_plan_ struct plan p = sample();
    char *big = calloc(1, PLAN_ARG_MAX + 2);
    memset(big, 'x', PLAN_ARG_MAX + 1);
    set(&p.argv[1], big);
    CHECK(refused(&p, "plan.argv[1] (\"xxx"));
    big[PLAN_ARG_MAX] = 0;
    set(&p.argv[1], big);
    struct error err = {0};
    CHECK_EQ(plan_check(&p, &err), 0);
    for (int i = 0; i < 16; i++)
        strv_add(&p.argv, big);
    CHECK(refused(&p, "together"));
    for (size_t i = 2; p.argv[i]; i++) {
        free(p.argv[i]);
        p.argv[i] = NULL;
    }
    memcpy(big, "BIG=", 4);
    big[PLAN_ARG_MAX] = 'x';
    set(&p.env[1], big);
    CHECK(refused(&p, "plan.env[1] (\"BIG=x"));
    free(big);
    set(&p.env[1], "PATH=twice");
    CHECK(refused(&p, "variable PATH stands there twice"));
    set(&p.env[1], "=x");
    CHECK(refused(&p, "not NAME=value"));
    set(&p.env[1], "NAME");
    CHECK(refused(&p, "not NAME=value"));
    set(&p.env[1], "NAME=");
    set(&p.argv[0], "");
    CHECK(refused(&p, "plan.argv is empty"));
}

TEST(exports_come_from_writable_places) {
    _cleanup_plan_ struct plan p = sample();
    static const char *const bad[] = {"/work/x/f", "/usr/x", "/proc/x", "/in/g",       "/out",
                                      "/work",     "/",      "/run/x",  "/in/f/below", "/home/x"};
    static const char *const good[] = {"/work/f", "/tmp/f", "/out/a/b", "/home/agent/f", "/dev/shm/f", "/in/f"};
    struct error err = {0};
    for (size_t i = 0; i < ELEMENTS(bad); i++) {
        set(&p.exports[0].path, bad[i]);
        CHECK(refused(&p, "plan.exports[0].path"));
    }
    for (size_t i = 0; i < ELEMENTS(good); i++) {
        set(&p.exports[0].path, good[i]);
        CHECK_EQ(plan_check(&p, &err), 0);
    }
    p.exports[0].max = 0;
    CHECK(refused(&p, "plan.exports[0].max"));
    p.exports[0].max = 1;
    set(&p.exports[0].name, "Report");
    CHECK(refused(&p, "plan.exports[0].name"));
}

TEST(a_work_folder_must_stand) {
    _cleanup_plan_ struct plan p = sample();
    static const char *const bad[] = {"/nowhere", "/in/f", "/tmp/x", "/in/f/y", "work", "/work/..", "/out/x"};
    static const char *const good[] = {"/", "/work", "/work/a/b", "/in", "/tmp", "/home/agent", "/usr/lib"};
    struct error err = {0};
    for (size_t i = 0; i < ELEMENTS(bad); i++) {
        set(&p.workdir, bad[i]);
        CHECK(refused(&p, "plan.workdir"));
    }
    for (size_t i = 0; i < ELEMENTS(good); i++) {
        set(&p.workdir, good[i]);
        CHECK_EQ(plan_check(&p, &err), 0);
    }
}

TEST(limits_have_ranges) {
    _cleanup_plan_ struct plan p = sample();
    for (size_t i = 0; i < PLAN_LIMIT_N; i++) {
        uint64_t was = p.limits[i];
        p.limits[i] = UINT64_MAX;
        CHECK(refused(&p, plan_limit_names[i]));
        p.limits[i] = plan_limit_ranges[i].least - 1; /* 0 - 1 wraps past the top, which is refused as well */
        CHECK(refused(&p, plan_limit_names[i]));
        p.limits[i] = was;
        CHECK(was >= plan_limit_ranges[i].least && was <= plan_limit_ranges[i].most);
    }
}

TEST(words_say_what_the_plan_does_and_no_values) {
    _cleanup_plan_ struct plan p = sample();
    _cleanup_buf_ struct buf b = {0};
    strv_add(&p.env, "TOKEN=hunter2");
    set(&p.inputs[2].source, "/f\x1b[2J\n");
    CHECK_EQ(plan_print(&p, &b), 0);
    static const char *const want[] = {"step main of fix-bug\n",
                                       "make 'te\"st \xc3\xa9'\n",
                                       "/work: folder /src, copy-on-write",
                                       "without *.pem",
                                       "SENSITIVE",
                                       "/f\\x1b[2J\\x0a",
                                       "wall       30m",
                                       "2GiB",
                                       "200k",
                                       "report: file /out/r.json, at most 1kB, required",
                                       "TOKEN",
                                       "network   none"};
    for (size_t i = 0; i < ELEMENTS(want); i++) {
        if (!strstr(b.bytes, want[i]))
            printf("# no \"%s\" in:\n# %s\n", want[i], b.bytes);
        CHECK(strstr(b.bytes, want[i]));
    }
    CHECK(!strstr(b.bytes, "hunter2"));
    CHECK(!strchr(b.bytes, 0x1b));
}

TEST(limit_figures_have_their_unit) {
    char t[32];
    CHECK_STR(plan_limit_text(t, PLAN_WALL, 1800000), "30m");
    CHECK_STR(plan_limit_text(t, PLAN_CPUS, 1500), "1.5");
    CHECK_STR(plan_limit_text(t, PLAN_FILES, 200000), "200k");
}

TEST_MAIN()
