/* cmd_run.c: `doorward run`.
 *
 * runs in: controller (untrusted input: a policy file's bytes, arguments) */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/task.h"
#include "control/helper.h"
#include "control/control.h"

extern const struct verb verb_run;

static struct policy_flags flags;
static const char *status_fd;
static bool json, raw;

static const struct cli_option options[] = {
    CLI_TASK_OPTIONS(flags),
    CLI_ATTACH_OPTIONS(flags),
    {"raw", 0, CLI_FLAG, &raw, NULL, "pass control characters on to our terminal as they are"},
    {"status-fd", 0, CLI_TEXT, &status_fd, "N", "write the final record to this descriptor"},
    CLI_JSON_OPTION(&json),
    {.kind = CLI_END},
};

struct job {
    int status; /* descriptor for the final record, -1 for none */
    struct place place;
    struct task task;
};

static void job_free(struct job *j) {
    task_free(&j->task);
    place_close(&j->place);
}
#define _cleanup_job_ _cleanup_(job_free)

/* The descriptor must be there, writable, and not be passed on to anybody. */
static int take_status_fd(struct job *j, struct error *err) {
    char *end;
    if (!status_fd)
        return 0;
    long n = strtol(status_fd, &end, 10);
    int mode = *end || end == status_fd || n < 0 || n > INT_MAX ? -1 : fcntl((int)n, F_GETFL);
    char safe[64];
    str_safe(safe, sizeof(safe), status_fd);
    if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
        return error_set(
            err, -EBADF,
            "run: --status-fd %s is no descriptor that can be written; as in: doorward run --status-fd 3 3>FILE", safe);
    j->status = (int)n;
    if (n > 2)
        fcntl(j->status, F_SETFD, FD_CLOEXEC);
    return 0;
}

static int refuse_hidden_terminal(struct error *err) {
    return json && flags.terminal
               ? error_set(err, -EINVAL, "run: -t and --json exclude each other: nobody would see the terminal")
               : 0;
}

static int run_job(struct job *j, const struct cli_words *words, struct control_result *result, struct error *err) {
    char digest[DIGEST_HEX];
    const struct task *t = &j->task;
    int r = task_read(&j->task, &verb_run, &flags, words, words->n ? words->args[0] : NULL, err);
    if (r == 0)
        r = cli_open_place(&j->place, err);
    if (r == 0)
        r = task_compile(&j->task, &flags, &j->place, err);
    if (r == 0 && policy_digest(t->policy, digest) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    if (r < 0)
        return r;
    struct control_request q = {.place = &j->place,
                                .task = policy_task(t->policy),
                                .purpose = policy_purpose(t->policy),
                                .policy_name = t->file.name,
                                .policy_text = t->file.bytes,
                                .policy_digest = digest,
                                .plans = t->plans,
                                .n_plans = t->n_plans,
                                .ready_fd = -1,
                                .status_fd = j->status,
                                .raw = raw,
                                .in = STDIN_FILENO,
                                .out = json ? -1 : STDOUT_FILENO,
                                .err = json ? -1 : STDERR_FILENO};
    return control_run(&q, result, err);
}

static void report(const struct control_result *result, const json_t *final) {
    size_t i;
    json_t *line;
    const json_t *notes = result ? result->notes : NULL;
    json_array_foreach(notes, i, line) {
        fprintf(stderr, "doorward: %s\n", json_string_value(line));
    }
    if (json)
        cli_print_json(stdout, final);
}

static int run(const struct cli_words *words, struct error *err) {
    _cleanup_job_ struct job j = {.status = -1, .place = PLACE_EMPTY};
    _cleanup_control_result_ struct control_result result = {0};
    spawn_early();
    int r = take_status_fd(&j, err);
    if (r == 0)
        r = refuse_hidden_terminal(err);
    if (r == 0)
        r = run_job(&j, words, &result, err);
    if (r < 0) {
        _cleanup_json_ json_t *final = control_final_error(err, j.status);
        report(NULL, final);
        return r;
    }
    report(&result, result.final);
    return result.exit_status;
}

const struct verb verb_run = {
    .name = "run",
    .args = "POLICY | -- COMMAND [ARG...]",
    .summary = "Run a command, or the steps of a policy file, behind walls",
    .options = options,
    .least = 0,
    .most = 1,
    .command = true,
    .run = run,
};
