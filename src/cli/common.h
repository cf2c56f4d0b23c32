/* common.h: what several verbs need: the state folder, the host as the policy asks about it.
 * runs in: cli */
#pragma once

#include "cli/cli.h"
#include "control/place.h"
#include "policy/policy.h"

/* Finds and opens doorward's folders, then looks for runs whose controller died and says so on standard error. */
int cli_open_place(struct place *ret, struct error *err);

/* Answers of this host for a policy; `place` is open or at least found, and must outlive it. */
void cli_host(const struct place *place, struct policy_host *ret);
void cli_host_free(struct policy_host *h);
#define _cleanup_host_ _cleanup_(cli_host_free)

/* A policy file as it was read. */
struct cli_policy {
    char *name; /* as given, harmless on a terminal */
    char *base; /* canonical folder of the file */
    char *bytes;
    size_t n;
    struct policy *policy;
};

/* Reads and parses a policy file. */
int cli_read_policy(const char *path, struct cli_policy *ret, struct error *err);
void cli_policy_free(struct cli_policy *p);
#define _cleanup_cli_policy_ _cleanup_(cli_policy_free)

/* The canonical current folder, owned by the caller. */
int cli_current_folder(char **ret, struct error *err);

/* Prints one line of canonical JSON; returns 0 or -ENOMEM. */
int cli_print_json(FILE *to, const json_t *j);
