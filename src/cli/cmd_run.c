/* cmd_run.c: `doorward run`.
 *
 * runs in: controller (untrusted input: a policy file's bytes, arguments) */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/common.h"
#include "control/control.h"

static struct policy_flags flags;
static const char *status_fd;
static bool json;

/* `shapes` marks the rows that describe the task; with a policy file those would be a second, hidden policy. */
static const struct cli_option options[] = {
    {"overlay", 0, CLI_LIST, &flags.overlay, "FROM:TO", "folder, writable inside, the original is never written"},
    {"read", 0, CLI_LIST, &flags.read, "FROM[:TO]", "file or folder, read-only inside"},
    {"copy", 0, CLI_LIST, &flags.copy, "FROM:TO", "file or folder, copied in, writable"},
    {"env", 'e', CLI_LIST, &flags.env, "NAME=VALUE", "environment variable"},
    {"pass-env", 0, CLI_LIST, &flags.pass_env, "NAME", "variable passed on from here"},
    {"workdir", 'w', CLI_TEXT, &flags.workdir, "PATH", "folder inside where the command starts"},
    {"export", 0, CLI_LIST, &flags.export, "NAME=PATH", "file inside that is collected at the end"},
    {"memory", 0, CLI_TEXT, &flags.memory, "SIZE", "limit, as 2GiB"},
    {"cpus", 0, CLI_TEXT, &flags.cpus, "NUMBER", "limit, as 2 or 0.5"},
    {"processes", 0, CLI_TEXT, &flags.processes, "COUNT", "limit, threads count too"},
    {"timeout", 0, CLI_TEXT, &flags.timeout, "TIME", "limit of wall time, as 90s or 20m"},
    {"disk", 0, CLI_TEXT, &flags.disk, "SIZE", "limit of everything written inside"},
    {"output", 0, CLI_TEXT, &flags.output, "SIZE", "limit of standard output and error together"},
    {"degrade", 0, CLI_LIST, &flags.degrade, "NAME", "wall or limit that may be missing on this host"},
    {"sensitive", 0, CLI_FLAG, &flags.sensitive, NULL, "allow inputs that are refused as sensitive"},
    {"terminal", 't', CLI_FLAG, &flags.terminal, NULL, "give the command a terminal of its own"},
    {"input", 'i', CLI_FLAG, &flags.input, NULL, "pass standard input on"},
    {"status-fd", 0, CLI_TEXT, &status_fd, "N", "write the final record to this descriptor"},
    CLI_JSON_OPTION(&json),
    {.kind = CLI_END},
};

/* What a policy file already says. */
static bool describes_task(const struct cli_option *o) {
    return o->target != (void *)&flags.terminal && o->target != (void *)&flags.input &&
           o->target != (void *)&status_fd && o->target != (void *)&json;
}

static bool was_given(const struct cli_option *o) {
    return o->kind == CLI_FLAG ? *(bool *)o->target : *(void **)o->target != NULL;
}

static int refuse_mixture(struct error *err) {
    for (const struct cli_option *o = options; o->kind != CLI_END; o++)
        if (describes_task(o) && was_given(o))
            return error_set(err, -EINVAL,
                             "run: --%s describes a task, and the policy file does so already; write it there",
                             o->name);
    return 0;
}

struct job {
    int status; /* descriptor for the final record, -1 for none */
    struct place place;
    struct policy_host host;
    struct cli_policy file;
    struct policy *from_flags;
    struct policy *policy; /* one of the two */
    struct plan *plans;
    size_t n_plans;
};

static void job_free(struct job *j) {
    for (size_t i = 0; i < j->n_plans; i++)
        plan_free(&j->plans[i]);
    free(j->plans);
    policy_free(j->from_flags);
    cli_policy_free(&j->file);
    cli_host_free(&j->host);
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

static int parse_flags(struct job *j, const struct cli_words *words, struct error *err) {
    _cleanup_free_ char *base = NULL;
    flags.argv = words->command;
    if (!flags.argv || !flags.argv[0])
        return error_set(err, -EINVAL, "run: there is no command; as in: doorward run -- python3 agent.py");
    int r = cli_current_folder(&base, err);
    if (r == 0)
        r = policy_from_flags(&flags, base, &j->from_flags, err);
    j->policy = j->from_flags;
    return r;
}

static int parse(struct job *j, const struct cli_words *words, struct error *err) {
    if (words->n == 0)
        return parse_flags(j, words, err);
    if (words->command)
        return error_set(err, -EINVAL, "run: a policy file and a command exclude each other; the file names its own");
    int r = refuse_mixture(err);
    if (r == 0)
        r = cli_read_policy(words->args[0], &j->file, err);
    j->policy = j->file.policy;
    return r;
}

static int compile(struct job *j, struct error *err) {
    size_t n = policy_n_steps(j->policy);
    j->plans = calloc(n, sizeof(*j->plans));
    if (!j->plans)
        return error_set(err, -ENOMEM, "out of memory");
    cli_host(&j->place, &j->host);
    policy_attach(j->policy, flags.input, flags.terminal);
    for (size_t i = 0; i < n; i++) {
        int r = policy_compile(j->policy, i, &j->host, &j->plans[i], err);
        if (r < 0)
            return r;
        j->n_plans++;
    }
    return 0;
}

static int run_job(struct job *j, const struct cli_words *words, struct control_result *result, struct error *err) {
    char digest[DIGEST_HEX];
    int r = parse(j, words, err);
    if (r == 0)
        r = cli_open_place(&j->place, err);
    if (r == 0)
        r = compile(j, err);
    if (r == 0 && policy_digest(j->policy, digest) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    if (r < 0)
        return r;
    struct control_request q = {.place = &j->place,
                                .task = policy_task(j->policy),
                                .purpose = policy_purpose(j->policy),
                                .policy_name = j->file.name,
                                .policy_text = j->file.bytes,
                                .policy_digest = digest,
                                .plans = j->plans,
                                .n_plans = j->n_plans,
                                .in = STDIN_FILENO,
                                .out = json ? -1 : STDOUT_FILENO,
                                .err = json ? -1 : STDERR_FILENO};
    return control_run(&q, result, err);
}

/* A pipe whose reader sleeps must not keep us for ever. */
static void write_status(int fd, const json_t *final) {
    enum { READER_MS = 10000, CHUNK = 512 };
    _cleanup_free_ char *text = json_canonical(final);
    size_t n = text ? strlen(text) : 0;
    if (!text)
        return;
    text[n] = '\n'; /* in place of the NUL */
    for (size_t done = 0; done <= n;) {
        struct pollfd p = {fd, POLLOUT, 0};
        if (poll(&p, 1, READER_MS) <= 0)
            return;
        ssize_t w = write(fd, text + done, n + 1 - done < CHUNK ? n + 1 - done : CHUNK);
        if (w < 0 && errno != EINTR && errno != EAGAIN)
            return;
        done += w > 0 ? (size_t)w : 0;
    }
}

static void report(const struct job *j, const struct control_result *result, const json_t *final) {
    size_t i;
    json_t *line;
    if (result)
        json_array_foreach(result->notes, i, line) fprintf(stderr, "doorward: %s\n", json_string_value(line));
    if (j->status >= 0)
        write_status(j->status, final);
    if (json)
        cli_print_json(stdout, final);
}

static int run(const struct cli_words *words, struct error *err) {
    _cleanup_job_ struct job j = {.status = -1, .place = PLACE_EMPTY};
    _cleanup_control_result_ struct control_result result = {0};
    int r = take_status_fd(&j, err);
    if (r == 0)
        r = run_job(&j, words, &result, err);
    if (r < 0) {
        _cleanup_json_ json_t *final = control_final_error(err);
        report(&j, NULL, final);
        return r;
    }
    report(&j, &result, result.final);
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
