/* task.h: what run, plan and check have in common: a task from a policy file or from flags, compiled for this host.
 * runs in: cli, controller (untrusted input: a policy file's bytes, arguments) */
#pragma once

#include "cli/common.h"

/* The options that describe a task, as rows of a verb's table; `f` is its struct policy_flags. */
#define CLI_TASK_OPTIONS(f)                                                                                            \
    {"overlay", 0, CLI_LIST, &(f).overlay, "FROM:TO", "folder, writable inside, the original is never written"},       \
        {"read", 0, CLI_LIST, &(f).read, "FROM[:TO]", "file or folder, read-only inside"},                             \
        {"copy", 0, CLI_LIST, &(f).copy, "FROM:TO", "file or folder, copied in, writable"},                            \
        {"env", 'e', CLI_LIST, &(f).env, "NAME=VALUE", "environment variable"},                                        \
        {"pass-env", 0, CLI_LIST, &(f).pass_env, "NAME", "variable passed on from here"},                              \
        {"workdir", 'w', CLI_TEXT, &(f).workdir, "PATH", "folder inside where the command starts"},                    \
        {"export", 0, CLI_LIST, &(f).export, "NAME=PATH", "file inside that is collected at the end"},                 \
        {"memory", 0, CLI_TEXT, &(f).memory, "SIZE", "limit, as 2GiB"},                                                \
        {"cpus", 0, CLI_TEXT, &(f).cpus, "NUMBER", "limit, as 2 or 0.5"},                                              \
        {"processes", 0, CLI_TEXT, &(f).processes, "COUNT", "limit, threads count too"},                               \
        {"timeout", 0, CLI_TEXT, &(f).timeout, "TIME", "limit of wall time, as 90s or 20m"},                           \
        {"disk", 0, CLI_TEXT, &(f).disk, "SIZE", "limit of everything written inside"},                                \
        {"output", 0, CLI_TEXT, &(f).output, "SIZE", "limit of standard output and error together"},                   \
        {"degrade", 0, CLI_LIST, &(f).degrade, "NAME", "wall or limit that may be missing on this host"}, {            \
        "sensitive", 0, CLI_FLAG, &(f).sensitive, NULL, "allow inputs that are refused as sensitive"                   \
    }

/* -t and -i concern the run, also that of a policy file. */
#define CLI_ATTACH_OPTIONS(f)                                                                                          \
    {"terminal", 't', CLI_FLAG, &(f).terminal, NULL, "give the command a terminal of its own"}, {                      \
        "input", 'i', CLI_FLAG, &(f).input, NULL, "pass standard input on"                                             \
    }

struct task {
    struct cli_policy file; /* what was read of it; empty for flags */
    struct policy *from_flags;
    struct policy *policy; /* one of the two */
    struct policy_host host;
    struct plan *plans; /* in the order of the policy's steps */
    size_t n_plans;
};

void task_free(struct task *t);
#define _cleanup_task_ _cleanup_(task_free)

/* Reads the task: the policy file `file`, or where that is NULL the flags and the command of the words. Options that
 * describe a task beside a policy file are refused: they would be a second, hidden policy. */
int task_read(struct task *t, const struct verb *verb, struct policy_flags *flags, const struct cli_words *words,
              const char *file, struct error *err);

/* Compiles every step for this host. `place` is found, and must outlive the task. */
int task_compile(struct task *t, const struct policy_flags *flags, const struct place *place, struct error *err);
