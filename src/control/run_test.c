/* run_test.c: whole runs against fake_launch.c: stops, records, exports, misbehaving launchers. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "audit/journal.h"
#include "base/fd.h"
#include "base/str.h"
#include "control/control.h"

static char folder[64], tree[96];
static struct place place;
static struct plan plans[4];
static size_t n_plans;
static struct control_result result;
static struct error err;
static json_t *records;

static char home[64]; /* where this program and the fake lie, the fake under the name that the controller starts */

static void copy_file(const char *from, const char *to) {
    char digest[DIGEST_HEX];
    _cleanup_fd_ int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    if (in < 0 || out < 0 || digest_copy(in, out, UINT64_MAX, digest, NULL) < 0)
        printf("# cannot copy %s to %s\n", from, to);
}

static void remove_home(void) {
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", home);
    if (system(command) != 0)
        printf("# cannot remove %s\n", home);
}

/* The controller starts what is called doorward-launch beside its own executable: this program goes on from a folder
 * where that is the fake. */
__attribute__((constructor)) static void move_beside_the_fake(void) {
    char self[4096], path[128];
    const char *moved = getenv("DOORWARD_TEST_HOME");
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 32);
    if (moved) {
        snprintf(home, sizeof(home), "%s", moved);
        return;
    }
    snprintf(home, sizeof(home), "/tmp/dw-test-XXXXXX");
    self[n > 0 ? n : 0] = 0;
    setenv("DOORWARD_TEST_HOME", mkdtemp(home), 1);
    snprintf(path, sizeof(path), "%s/test-run", home);
    copy_file(self, path);
    char *name = strrchr(self, '/') + 1;
    snprintf(name, sizeof(self) - (size_t)(name - self), "test-fake-launch");
    char launcher[128];
    snprintf(launcher, sizeof(launcher), "%s/doorward-launch", home);
    copy_file(self, launcher);
    execl(path, path, NULL);
    printf("# cannot execute %s\n", path);
}

static void set_up(void) {
    snprintf(folder, sizeof(folder), "/tmp/dw-run-XXXXXX");
    setenv("XDG_STATE_HOME", mkdtemp(folder), 1);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    snprintf(tree, sizeof(tree), "%s/tree", folder);
    mkdir(tree, 0755); /* root collects with the ids of a worker that is not there */
    place = (struct place)PLACE_EMPTY;
    if (place_find(&place, &err) < 0 || place_open(&place, &err) < 0)
        printf("# %s\n", err.message);
    n_plans = 0;
    err = (struct error){0};
}

static void clean(void) {
    char command[128];
    place_close(&place);
    control_result_free(&result);
    json_decref(records);
    records = NULL;
    while (n_plans)
        plan_free(&plans[--n_plans]);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        printf("# cannot remove %s\n", folder);
}

static struct plan *add_step(const char *name, const char *const *argv) {
    struct plan *p = &plans[n_plans++];
    *p = (struct plan){.task = strdup("test"), .step = strdup(name), .workdir = strdup(tree)};
    memcpy(p->limits, plan_limit_defaults, sizeof(p->limits));
    for (; *argv; argv++)
        strv_add(&p->argv, *argv);
    return p;
}

#define STEP(name, ...) add_step(name, (const char *const[]){__VA_ARGS__, NULL})

static void add_export(struct plan *p, const char *name, const char *path, bool required) {
    p->exports = realloc(p->exports, (p->n_exports + 1) * sizeof(*p->exports));
    p->exports[p->n_exports++] =
        (struct plan_export){.name = strdup(name), .path = strdup(path), .max = 1 << 20, .required = required};
}

static int keep(void *data, const json_t *record) {
    (void)data;
    json_array_append(records, (json_t *)record);
    return 0;
}

static int run(void) {
    struct control_request q = {.place = &place,
                                .ready_fd = -1,
                                .task = "test",
                                .purpose = "",
                                .policy_digest = "0",
                                .plans = plans,
                                .n_plans = n_plans,
                                .status_fd = -1,
                                .in = 0,
                                .out = -1,
                                .err = -1};
    int r = control_run(&q, &result, &err);
    if (r < 0) {
        printf("# %s\n", err.message);
        return r;
    }
    records = json_array();
    int fd = place_open_run(&place, result.run, false, NULL);
    if (journal_walk(fd, keep, NULL, &err) < 0)
        printf("# %s\n", err.message);
    close(fd);
    return 0;
}

/* The `n`th record of a type. */
static const json_t *body(const char *type, size_t n) {
    size_t i;
    json_t *record;
    json_array_foreach(records, i, record) if (!strcmp(json_string_value(json_object_get(record, "type")), type) &&
                                               n-- == 0) return json_object_get(record, "body");
    return NULL;
}

static const char *text(const json_t *object, const char *key) {
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static long long number(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

/* The last record of a journal, and that the final record says the same. */
static bool ended_as(const char *stop, int exit_status) {
    const json_t *end = body("run.end", 0), *last = json_array_get(records, json_array_size(records) - 1);
    if (!strcmp(result.stop, stop) && result.exit_status == exit_status && !strcmp(text(end, "stop"), stop) &&
        !strcmp(text(last, "type"), "run.end") && number(end, "exit") == exit_status &&
        number(result.final, "exit") == exit_status && !strcmp(text(result.final, "stop"), stop))
        return true;
    printf("# %s %d: %s\n", result.stop, result.exit_status, text(result.final, "message"));
    return false;
}

static int count_dead;
static void tell(const char name[ULID_TEXT], const struct error *e) {
    (void)name;
    if (e->code)
        printf("# %s\n", e->message);
    count_dead++;
}

static int sweep(void) {
    count_dead = 0;
    control_sweep_lost(&place, tell, NULL);
    return count_dead;
}

TEST(a_run_completes) {
    set_up();
    STEP("main", "/bin/true");
    CHECK_EQ(run(), 0);
    CHECK(ended_as("completed", 0));
    static const char *const types[] = {"run.start", "step.plan", "step.enforced", "step.start", "step.end", "run.end"};
    CHECK_EQ(json_array_size(records), ELEMENTS(types));
    for (size_t i = 0; i < ELEMENTS(types); i++)
        CHECK_STR(text(json_array_get(records, i), "type"), types[i]);
    CHECK_EQ(sweep(), 0);
    clean();
}

TEST(the_plan_is_kept_with_its_digest) {
    char path[128], digest[DIGEST_HEX], *bytes;
    size_t n;
    set_up();
    STEP("main", "/bin/echo", "secret argument");
    CHECK_EQ(run(), 0);
    snprintf(path, sizeof(path), "runs/%s/plan-main.json", result.run);
    _cleanup_fd_ int fd = openat(place.state_fd, path, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(fd_read_file(fd, 1 << 20, &bytes, &n, NULL), 0);
    digest_hex(bytes, n, digest);
    free(bytes);
    CHECK_STR(text(body("step.plan", 0), "plan_digest"), digest);
    CHECK_STR(text(body("step.plan", 0), "program"), "/bin/echo");
    CHECK_EQ(number(body("step.plan", 0), "arguments"), 1);
    _cleanup_free_ char *all = json_canonical(records);
    CHECK(!strstr(all, "secret argument"));
    clean();
}

TEST(exit_and_signal_are_the_workers) {
    set_up();
    STEP("main", "/bin/sh", "-c", "exit 42");
    CHECK_EQ(run(), 0);
    CHECK(ended_as("failed", 42));
    clean();
    set_up();
    STEP("main", "/bin/sh", "-c", "kill -SEGV $$");
    CHECK_EQ(run(), 0);
    CHECK(ended_as("failed", 139));
    clean();
}

TEST(steps_run_in_order_until_one_fails) {
    set_up();
    STEP("one", "/bin/true");
    STEP("two", "/bin/false");
    STEP("three", "/bin/true");
    CHECK_EQ(run(), 0);
    CHECK(ended_as("failed", 1));
    CHECK_STR(text(result.final, "step"), "two");
    CHECK_STR(text(body("step.end", 0), "step"), "one");
    CHECK_STR(text(body("step.end", 1), "step"), "two");
    CHECK(body("step.plan", 2) == NULL);
    clean();
}

TEST(output_is_kept_and_limited) {
    char path[128];
    struct stat st;
    set_up();
    STEP("main", "/bin/sh", "-c", "echo out; echo err >&2")->limits[PLAN_OUTPUT] = 8;
    CHECK_EQ(run(), 0);
    CHECK(ended_as("completed", 0));
    CHECK_EQ(number(json_object_get(body("step.end", 0), "used"), "output"), 8);
    snprintf(path, sizeof(path), "runs/%s/steps/main/stdout", result.run);
    CHECK_EQ(fstatat(place.state_fd, path, &st, 0), 0);
    CHECK_EQ(st.st_size, 4);
    clean();
    set_up();
    STEP("main", "/bin/sh", "-c", "while :; do echo flood; done")->limits[PLAN_OUTPUT] = 1000;
    CHECK_EQ(run(), 0);
    CHECK(ended_as("limit:output", 124));
    CHECK_STR(text(body("limit.hit", 0), "limit"), "output");
    CHECK(json_is_true(json_object_get(body("limit.hit", 0), "hard")));
    snprintf(path, sizeof(path), "runs/%s/steps/main/stdout", result.run);
    CHECK_EQ(fstatat(place.state_fd, path, &st, 0), 0);
    CHECK_EQ(st.st_size, 1000);
    clean();
}

TEST(background_children_do_not_hold_a_step) {
    set_up();
    STEP("main", "@last-words");
    uint64_t before = clock_monotonic_us();
    CHECK_EQ(run(), 0);
    CHECK(clock_monotonic_us() - before < 600000);
    CHECK(ended_as("completed", 0));
    CHECK_EQ(number(json_object_get(body("step.end", 0), "used"), "output"), 13);
    clean();
}

TEST(soft_limits_and_denials_are_on_record) {
    set_up();
    STEP("main", "@soft");
    CHECK_EQ(run(), 0);
    CHECK(ended_as("completed", 0));
    CHECK_EQ(json_array_size(json_object_get(result.final, "limits_hit")), 2);
    CHECK_STR(text(body("limit.hit", 0), "limit"), "memory");
    CHECK_STR(text(body("limit.hit", 1), "limit"), "processes");
    CHECK_EQ(number(body("limit.hit", 1), "peak"), 64);
    CHECK_STR(text(body("door.denied", 0), "attempt"), "mount");
    CHECK_EQ(number(body("door.denied", 1), "times"), 4);
    CHECK_STR(text(body("door.denied", 2), "attempt"), "a\nb");
    clean();
}

TEST(a_refusal_is_typed_and_harmless) {
    set_up();
    STEP("main", "@refuse");
    CHECK_EQ(run(), 0);
    CHECK(ended_as("refused", 76));
    CHECK_STR(text(result.final, "message"), "the task asks for \\x1b[31mharm");
    CHECK(body("step.refusal", 0) && !body("step.refusal", 1));
    clean();
}

TEST(the_deadline_is_the_launchers_word) {
    set_up();
    STEP("main", "@wall");
    CHECK_EQ(run(), 0);
    CHECK(ended_as("limit:wall", 124));
    clean();
}

TEST(a_launcher_that_fails_or_lies_is_an_error) {
    static const char *const acts[] = {"@die",           "@die-placed", "@die-running", "@fail",
                                       "@fail-enforced", "@fail-late",  "@end-early",   "@bad-json",
                                       "@garbage",       "@bad-end",    "/no/program"};
    for (size_t i = 0; i < ELEMENTS(acts); i++) {
        set_up();
        add_export(STEP("main", acts[i]), "x", "/out/x", true);
        CHECK_EQ(run(), 0);
        if (strcmp(result.stop, "error") != 0)
            printf("# %s\n", acts[i]);
        CHECK(ended_as("error", 125));
        CHECK(strlen(text(result.final, "message")) > 10);
        CHECK(strcmp(acts[i], "@bad-end") == 0 || (!body("export.missing", 0) && !body("export.collected", 0)));
        CHECK_EQ(sweep(), 0);
        clean();
    }
}

TEST(what_the_launcher_says_is_told) {
    set_up();
    STEP("main", "@fail");
    CHECK_EQ(run(), 0);
    CHECK_STR(text(result.final, "message"), "wall seccomp: cannot be built; install a kernel");
    clean();
}

TEST(exports_are_collected_in_every_case) {
    char script[256], path[192];
    set_up();
    snprintf(script, sizeof(script), "echo result > %s/good; ln -s /etc/passwd %s/link", tree, tree);
    struct plan *p = STEP("main", "/bin/sh", "-c", script);
    add_export(p, "good", "/out/good", true);
    add_export(p, "link", "/out/link", false);
    add_export(p, "none", "/out/none", false);
    CHECK_EQ(run(), 0);
    CHECK(ended_as("completed", 0));
    const json_t *artifact = json_array_get(json_object_get(result.final, "artifacts"), 0);
    CHECK_STR(text(artifact, "name"), "good");
    CHECK_EQ(number(artifact, "size"), 7);
    CHECK(json_is_false(json_object_get(artifact, "incomplete")));
    snprintf(path, sizeof(path), "blobs/sha256/%.2s/%s", text(artifact, "digest"), text(artifact, "digest") + 2);
    CHECK_EQ(faccessat(place.state_fd, path, R_OK, 0), 0);
    CHECK_STR(text(body("export.refused", 0), "result"), "link");
    CHECK_STR(text(body("export.missing", 0), "name"), "none");
    clean();
    set_up();
    snprintf(script, sizeof(script), "echo half > %s/good; exit 3", tree);
    add_export(STEP("main", "/bin/sh", "-c", script), "good", "/out/good", true);
    CHECK_EQ(run(), 0);
    CHECK(ended_as("failed", 3));
    CHECK(json_is_true(json_object_get(body("export.collected", 0), "incomplete")));
    clean();
}

TEST(a_required_export_must_be_there) {
    set_up();
    add_export(STEP("main", "/bin/true"), "report", "/out/report.json", true);
    CHECK_EQ(run(), 0);
    CHECK(ended_as("failed", 1));
    CHECK(strstr(text(result.final, "message"), "required export report"));
    clean();
}

TEST(file_inputs_are_fixed_at_the_start) {
    char path[128], script[256];
    set_up();
    snprintf(path, sizeof(path), "%s/in.txt", folder);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    CHECK_EQ(fd_write_all(fd, "first", 5), 0);
    close(fd);
    snprintf(script, sizeof(script), "echo changed > %s", path);
    STEP("one", "/bin/sh", "-c", script);
    struct plan *p = STEP("two", "/bin/true");
    p->inputs = calloc(1, sizeof(*p->inputs));
    p->inputs[p->n_inputs++] =
        (struct plan_input){.kind = PLAN_READ, .target = strdup("/in/x"), .source = strdup(path)};
    CHECK_EQ(run(), 0);
    CHECK(ended_as("completed", 0));
    CHECK(strstr(plans[1].inputs[0].source, "/blobs/sha256/"));
    char *bytes;
    fd = open(plans[1].inputs[0].source, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(fd_read_file(fd, 100, &bytes, NULL, NULL), 0);
    close(fd);
    CHECK_STR(bytes, "first");
    free(bytes);
    const json_t *input = json_array_get(json_object_get(body("run.start", 0), "inputs"), 0);
    CHECK_STR(text(input, "source"), path);
    CHECK(strstr(plans[1].inputs[0].source, text(input, "digest") + 2));
    clean();
}

/* A controller in a child, so that it can be signalled and killed. `ready` is made by the worker. */
static pid_t controller(const char *script) {
    char ready[128];
    STEP("main", "/bin/sh", "-c", script);
    snprintf(ready, sizeof(ready), "%s/ready", tree);
    pid_t child = fork();
    if (child == 0) {
        int r = run();
        _exit(r < 0 ? 99 : result.exit_status);
    }
    for (int i = 0; i < 500 && access(ready, F_OK) < 0; i++)
        usleep(10000);
    return child;
}

TEST(a_signal_stops_the_run) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < ELEMENTS(numbers); i++) {
        int status;
        char script[256];
        set_up();
        snprintf(script, sizeof(script), "touch %s/ready; exec sleep 100", tree);
        pid_t child = controller(script);
        kill(child, numbers[i]);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 143);
        CHECK_EQ(sweep(), 0);
        clean();
    }
}

TEST(a_worker_that_ignores_the_signal_is_ended) {
    int status;
    char script[256];
    set_up();
    snprintf(script, sizeof(script), "trap '' TERM; touch %s/ready; while :; do sleep 0.1; done", tree);
    pid_t child = controller(script);
    uint64_t before = clock_monotonic_us();
    kill(child, SIGTERM);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 143);
    CHECK(clock_monotonic_us() - before < 3000000);
    clean();
}

static int last_run(char name[ULID_TEXT]) {
    char command[256];
    snprintf(command, sizeof(command), "ls %s/runs", place.state);
    FILE *f = popen(command, "re");
    int n = fscanf(f, "%26s", name);
    pclose(f);
    return n == 1 ? place_open_run(&place, name, false, NULL) : -1;
}

TEST(a_killed_controller_is_found_and_on_record) {
    int status;
    char script[256], name[ULID_TEXT] = "";
    set_up();
    snprintf(script, sizeof(script), "touch %s/ready; exec sleep 2", tree);
    pid_t child = controller(script);
    CHECK_EQ(sweep(), 0); /* it lives */
    kill(child, SIGKILL);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(sweep(), 1);
    CHECK_EQ(sweep(), 0);
    records = json_array();
    _cleanup_fd_ int fd = last_run(name);
    CHECK_EQ(journal_walk(fd, keep, NULL, &err), 0);
    CHECK(body("run.lost", 0));
    CHECK_STR(text(body("run.lost", 0), "step"), "main");
    CHECK_EQ(number(body("run.lost", 0), "exit"), 125);
    CHECK_EQ(control_lose(&place, name, &err), 0); /* nothing is added a second time */
    struct journal_report report;
    char *bytes;
    size_t n;
    _cleanup_fd_ int journal = openat(fd, JOURNAL_NAME, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(fd_read_file(journal, 1 << 20, &bytes, &n, NULL), 0);
    journal_check(bytes, n, &report);
    free(bytes);
    CHECK(report.ended && report.first_bad == UINT64_MAX);
    CHECK_EQ(report.records, json_array_size(records));
    clean();
}

TEST(a_run_without_a_record_never_was) {
    char name[ULID_TEXT], path[64];
    set_up();
    ulid_new(name);
    snprintf(path, sizeof(path), "runs/%s", name);
    close(place_open_run(&place, name, true, NULL));
    int fd = openat(place.state_fd, "live", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    char line[33];
    snprintf(line, sizeof(line), "%-31s\n", name);
    CHECK_EQ(fd_write_all(fd, line, 32), 0);
    close(fd);
    CHECK_EQ(sweep(), 0);
    CHECK(faccessat(place.state_fd, path, F_OK, 0) < 0);
    clean();
}

TEST(a_full_disk_lets_nothing_run) {
    char script[128];
    set_up();
    struct rlimit before, none;
    getrlimit(RLIMIT_FSIZE, &before);
    none = before;
    none.rlim_cur = 0; /* every write to a file fails, as on a full disk */
    snprintf(script, sizeof(script), "touch %s/ran", tree);
    STEP("main", "/bin/sh", "-c", script);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    int r = run();
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(r < 0);
    snprintf(script, sizeof(script), "%s/ran", tree);
    CHECK(access(script, F_OK) < 0);
    clean();
}

/* The last one: takes away what this program was moved to. */
TEST(nothing_is_left) {
    remove_home();
    CHECK(access(home, F_OK) < 0);
}

TEST_MAIN()
