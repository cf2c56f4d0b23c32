/* cmd_lab.c: `doorward lab`: rehearse every wall, print and record what held.
 * runs in: cli (untrusted input: what probes print from inside; holds: the lab's made-up secret) */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/common.h"
#include "control/control.h"
#include "lab/lab.h"
#include "lab/run.h"

static bool as_json, as_markdown, list;
static const char *against;
static char **only, **degrade;

static const struct cli_option options[] = {
    {"only", 0, CLI_LIST, &only, "PROBE", "only this probe; may be given again"},
    {"list", 0, CLI_FLAG, &list, NULL, "say what each probe tries and what must hold, run nothing"},
    {"against", 0, CLI_TEXT, &against, "PREFIX", "run the probes in another sandbox: PREFIX PROBE ARGS, by /bin/sh"},
    {"degrade", 0, CLI_LIST, &degrade, "NAME", "a wall or limit that may be missing here; without a task"},
    {"markdown", 0, CLI_FLAG, &as_markdown, NULL, "print a Markdown table with what was seen"},
    CLI_JSON_OPTION(&as_json),
    {0},
};

/* doorward-probe stands beside doorward, or in libexec. */
static char *find_probe(struct error *err) {
    char self[4000];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    static const char *const forms[] = {"/doorward-probe", "/../libexec/doorward/doorward-probe"};
    for (size_t i = 0; slash && i <= ELEMENTS(forms); i++) {
        char path[4200];
        if (i < ELEMENTS(forms))
            snprintf(path, sizeof(path), "%s%s", self, forms[i]);
        else
            snprintf(path, sizeof(path), "%s/doorward-probe", DOORWARD_LIBEXECDIR);
        if (access(path, X_OK) == 0)
            return realpath(path, NULL);
    }
    error_set(err, -ENOENT, "lab: doorward-probe is neither beside doorward nor in %s; install it there",
              DOORWARD_LIBEXECDIR);
    return NULL;
}

static int check_names(struct error *err) {
    for (size_t i = 0; only && only[i]; i++) {
        char safe[100];
        if (!lab_row_find(only[i]))
            return error_set(err, -EINVAL, "lab: no probe is called \"%s\"; `doorward lab --list` names them",
                             str_safe(safe, sizeof(safe), only[i]));
    }
    return 0;
}

static bool wanted(const struct lab_row *row) {
    return !only || strv_contains(only, row->name);
}

static int print_json(json_t *j, struct error *err) {
    _cleanup_json_ json_t *owned = j;
    _cleanup_free_ char *text = owned ? json_canonical(owned) : NULL;
    if (!text)
        return error_set(err, -ENOMEM, "lab: out of memory");
    puts(text);
    return 0;
}

static int print_list(struct error *err) {
    char walls[64];
    if (as_json)
        return print_json(lab_list(), err);
    for (size_t i = 0; i < lab_n_rows; i++)
        if (wanted(&lab_rows[i]))
            printf("%-20s %-6s %-6s %-22s %s\n", lab_rows[i].name, lab_rows[i].case_id,
                   lab_kind_names[lab_rows[i].kind], lab_walls_text(walls, &lab_rows[i]), lab_rows[i].must);
    return 0;
}

/* --- another sandbox --- */

/* The shell reads the prefix as the caller's shell would have; the probe's own words stay apart from it. */
static int inside_other(void *data, const struct lab_row *row, bool off, int status_fd) {
    const struct lab_bench *b = data;
    char script[8192];
    snprintf(script, sizeof(script), "exec %s \"$@\"", against);
    _cleanup_strv_ char **argv = NULL;
    const char *const head[] = {"sh", "-c", script, "sh", b->probe, "run", row->name};
    for (size_t i = 0; i < ELEMENTS(head); i++)
        strv_add(&argv, head[i]);
    for (size_t i = 0; b->stage->facts[i]; i++)
        strv_add(&argv, b->stage->facts[i]);
    /* For a prefix that must bind what its probes need: the probe's folder, and the stage's. */
    _cleanup_free_ char *folder = strdup(b->probe);
    if (folder)
        *strrchr(folder, '/') = '\0';
    setenv("LAB_PROBE", folder && folder[0] ? folder : "/", 1);
    setenv("LAB_STAGE", b->stage->dir, 1);
    execv("/bin/sh", argv);
    return 127;
}

/* --- our own sandbox --- */

struct own {
    const struct lab_bench *bench;
    const struct plan *base;
};

/* Runs one probe as `doorward run` would. In a child of the harness, with whatever the row leaves open in it. */
static int inside_own(void *data, const struct lab_row *row, bool off, int status_fd) {
    const struct own *own = data;
    const struct lab_stage *stage = own->bench->stage;
    const struct lab_scene scene = {.probe = own->bench->probe, .dir = stage->dir, .facts = stage->facts};
    _cleanup_place_ struct place place = PLACE_EMPTY;
    _cleanup_plan_ struct plan plan = {0};
    _cleanup_control_result_ struct control_result result = {0};
    struct error err = {0};
    int r = place_find(&place, &err);
    if (r == 0)
        r = place_open(&place, &err);
    if (r == 0)
        r = lab_plan(row, &scene, own->base, off, &plan, &err);
    char digest[DIGEST_HEX] = "";
    const struct control_request q = {.place = &place,
                                      .task = "lab",
                                      .purpose = "",
                                      .policy_digest = digest,
                                      .plans = &plan,
                                      .n_plans = 1,
                                      .in = 0,
                                      .out = 1,
                                      .err = 2};
    if (r == 0)
        r = plan_digest(&plan, digest);
    if (r == 0)
        r = control_run(&q, &result, &err);
    if (r < 0) {
        fprintf(stderr, "%s\n", err.message);
        dprintf(status_fd, "error\n");
        return CLI_EXIT_OWN_ERROR;
    }
    for (size_t i = 0; i < json_array_size(result.notes); i++)
        fprintf(stderr, "%s\n", json_string_value(json_array_get(result.notes, i)));
    dprintf(status_fd, "%s\n", result.stop);
    return result.exit_status;
}

/* --- the run --- */

static void show_line(const struct lab_outcome *o) {
    _cleanup_buf_ struct buf b = {0};
    lab_put_line(&b, o);
    fputs(b.bytes, stdout);
    fflush(stdout);
}

static int show_end(const struct lab_head *head, const struct lab_outcome *o, size_t n, struct error *err) {
    if (as_json)
        return print_json(lab_record(head, o, n), err);
    _cleanup_buf_ struct buf b = {0};
    if (as_markdown)
        lab_put_markdown(&b, head, o, n);
    else
        lab_put_summary(&b, o, n);
    fputs(b.bytes, stdout);
    return 0;
}

/* All wanted rows; exit status 0 or 1, or -errno. */
static int run_rows(const struct lab_bench *bench, const struct lab_head *head, struct error *err) {
    _cleanup_free_ struct lab_outcome *o = calloc(lab_n_rows, sizeof(*o));
    size_t n = 0;
    bool table = !as_json && !as_markdown;
    if (!o)
        return error_set(err, -ENOMEM, "lab: out of memory");
    for (size_t i = 0; i < lab_n_rows; i++) {
        if (!wanted(&lab_rows[i]))
            continue;
        lab_run_row(bench, &lab_rows[i], &o[n++]);
        if (n == 1 && !strcmp(o[0].inside.stop, "error") && !(lab_rows[i].flags & LAB_LINKS))
            return error_set(err, -EPERM, "lab: no sandbox starts here: %s", o[0].inside.detail);
        if (table && n == 1)
            show_line(NULL);
        if (table)
            show_line(&o[n - 1]);
    }
    struct lab_counts c = lab_count(o, n);
    int r = show_end(head, o, n, err);
    return r < 0 ? r : lab_all_held(&c) ? 0 : 1;
}

/* The policy whose steps are rehearsed: the task's, or that of `doorward run` without any flag. */
static int read_policy(const char *task, struct cli_policy *file, struct error *err) {
    static char *command[] = {"true", NULL};
    if (task)
        return cli_read_policy(task, file, err);
    const struct policy_flags flags = {.argv = command, .degrade = degrade};
    int r = cli_current_folder(&file->base, err);
    return r < 0 ? r : policy_from_flags(&flags, file->base, &file->policy, err);
}

static int run_step(const struct policy *policy, size_t step, const char *task, const struct policy_host *host,
                    const struct lab_bench *given, struct error *err) {
    _cleanup_plan_ struct plan base = {0};
    char policy_hex[DIGEST_HEX] = "", plan_hex[DIGEST_HEX] = "";
    int r = policy_compile(policy, step, host, &base, err);
    if (r == 0)
        r = policy_digest(policy, policy_hex);
    if (r == 0)
        r = plan_digest(&base, plan_hex);
    if (r < 0)
        return err->code ? r : error_errno(err, r, "lab: no digest");
    struct lab_bench bench = *given;
    struct own own = {&bench, &base};
    bench.inside = inside_own;
    bench.data = &own;
    bench.can_off = true;
    const struct lab_head head = {.mode = bench.root ? "root" : "user",
                                  .task = task ? policy_task(policy) : NULL,
                                  .step = task ? policy_step_name(policy, step) : NULL,
                                  .policy_digest = policy_hex,
                                  .plan_digest = plan_hex};
    if (task && !as_json)
        printf("step %s\n", head.step);
    return run_rows(&bench, &head, err);
}

static int run_steps(const char *task, const struct lab_bench *bench, struct error *err) {
    _cleanup_cli_policy_ struct cli_policy file = {0};
    _cleanup_place_ struct place place = PLACE_EMPTY;
    _cleanup_host_ struct policy_host host = {0};
    int r = place_find(&place, err), worst = 0;
    if (r == 0)
        r = read_policy(task, &file, err);
    if (r < 0)
        return r;
    cli_host(&place, &host);
    for (size_t i = 0; i < policy_n_steps(file.policy); i++) {
        r = run_step(file.policy, i, task, &host, bench, err);
        if (r < 0)
            return r;
        worst = r > worst ? r : worst;
    }
    return worst;
}

/* Hundreds of runs that are no one's work: their journals go into the stage's folder, which the stage removes, however
 * the lab ends. The table of ids stays the host's one, since runs of others may go on beside. */
static int own_state(const struct lab_stage *stage, struct error *err) {
    char folder[sizeof(stage->dir) + 8];
    snprintf(folder, sizeof(folder), "%s/state", stage->dir);
    if (mkdir(folder, 0700) < 0)
        return error_errno(err, -errno, "lab: %s", folder);
    setenv("XDG_STATE_HOME", folder, 1);
    return 0;
}

/* A controller that had to be killed left a run to be cleared up, as any next command would. */
static void clear_up(void) {
    _cleanup_place_ struct place place = PLACE_EMPTY;
    if (place_find(&place, NULL) == 0 && place_open(&place, NULL) == 0)
        control_sweep_lost(&place, NULL, NULL);
}

static int run_lab(const char *task, struct error *err) {
    _cleanup_free_ char *probe = find_probe(err);
    if (!probe)
        return err->code;
    bool root = geteuid() == 0;
    /* As root, a network of the lab's own: it can have the addresses that must not be reached, and nothing of the
     * lab listens on the host's. */
    bool own_network = root && unshare(CLONE_NEWNET) == 0;
    _cleanup_stage_ struct lab_stage stage = {.to = -1, .from = -1, .terminal = -1};
    int r = lab_stage_start(probe, "/tmp", own_network, &stage, err);
    if (r == 0)
        r = own_state(&stage, err);
    if (r < 0)
        return r;
    struct lab_bench bench = {.probe = probe, .stage = &stage, .root = root, .inside = inside_other};
    const struct lab_head head = {.mode = root ? "root" : "user", .against = against};
    bench.data = &bench;
    r = against ? run_rows(&bench, &head, err) : run_steps(task, &bench, err);
    clear_up();
    return r;
}

static int run(const struct cli_words *words, struct error *err) {
    int r = check_names(err);
    if (r < 0)
        return r;
    if (list)
        return print_list(err);
    if (against && words->n)
        return error_set(err, -EINVAL, "lab: --against runs no task of ours; give one of the two");
    return run_lab(words->n ? words->args[0] : NULL, err);
}

const struct verb verb_lab = {
    .name = "lab",
    .args = "[TASK.yaml]",
    .summary = "rehearse every wall, and record what held",
    .options = options,
    .most = 1,
    .run = run,
};
