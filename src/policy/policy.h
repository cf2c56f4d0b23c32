/* policy.h: from a policy file, or from flags, to plans.
 *
 * Pure: reads no file and no environment itself. What it must know of the host (does a path exist, what is
 * it, where do its links end) it asks through struct policy_host, so that a fuzzer and a test can answer.
 * Everything closed until named; unknown is an error; the key of a door that is not built is an error that
 * says so. Errors: FILE:LINE:COLUMN: path.of.key: what was found, what was expected, near miss.
 * runs in: controller, cli (untrusted input: the policy file; holds: nothing) */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "plan/plan.h"

#define POLICY_BYTES_MAX (1u << 20)
#define POLICY_STEPS_MAX 64

struct policy; /* one parsed, validated policy; its steps in the order they run */

enum policy_type { POLICY_FILE, POLICY_FOLDER, POLICY_SOCKET, POLICY_OTHER };

/* What the policy needs to know of the host. */
struct policy_host {
    /* Canonical absolute path (owned by the caller) and type of `path`, which may be relative to `base` (the policy
     * file's folder, or the current one for flags; absolute). -ENOENT, -ELOOP, -EACCES, ... with the path named. */
    int (*resolve)(void *data, const char *base, const char *path, char **ret_path, enum policy_type *ret_type,
                   struct error *err);
    /* The bytes (owned by the caller) of the regular file `path` beneath the canonical folder `base`, no link followed,
     * at most `max`. -EFBIG, -ENOENT, -ELOOP, ... */
    int (*read)(void *data, const char *base, const char *path, size_t max, char **ret, size_t *ret_n,
                struct error *err);
    /* Value of an environment variable of doorward's own, or NULL (for pass-env). */
    const char *(*variable)(void *data, const char *name);
    const char *home;    /* the user's home folder, canonical, or NULL */
    const char *state;   /* doorward's state folder */
    const char *runtime; /* doorward's socket folder */
    void *data;
};

void policy_free(struct policy *p);
static inline void policy_freep(struct policy **p) {
    policy_free(*p);
    *p = NULL;
}
#define _cleanup_policy_ _cleanup_(policy_freep)

/* Parses and validates `n` bytes of YAML or JSON. `name` is the file's name for messages, `base` its folder.
 * The whole tree is checked before anything else happens. */
int policy_parse(const char *name, const char *base, const char *bytes, size_t n, struct policy **ret,
                 struct error *err);

/* The flags of `doorward run`, exactly as given; each is validated by the same code as its policy key. */
struct policy_flags {
    char **argv;     /* the command */
    char **overlay;  /* FROM:TO; the last ':' divides */
    char **read;     /* FROM[:TO]; without TO the same path inside */
    char **copy;     /* FROM:TO */
    char **env;      /* NAME=VALUE */
    char **pass_env; /* NAME */
    char **export;   /* NAME=PATH */
    char **degrade;  /* wall or limit name */
    const char *workdir, *memory, *cpus, *processes, *timeout, *disk, *output; /* NULL = default */
    bool terminal, input, sensitive;
};

/* Builds the policy that the flags describe: task "run", one step "main". `base` is the current folder. */
int policy_from_flags(const struct policy_flags *flags, const char *base, struct policy **ret, struct error *err);

/* Says how the run is attached to doorward's own streams: -i and -t. They concern the run, not the file, but decide
 * what `plan.input`, `plan.terminal` and TERM are. */
void policy_attach(struct policy *p, bool input, bool terminal);

size_t policy_n_steps(const struct policy *p);
const char *policy_task(const struct policy *p);
const char *policy_purpose(const struct policy *p); /* "" when none was given */
const char *policy_step_name(const struct policy *p, size_t step);

/* Compiles one step to its plan. *ret is untouched on failure. */
int policy_compile(const struct policy *p, size_t step, const struct policy_host *host, struct plan *ret,
                   struct error *err);

/* Canonical JSON of the policy with all defaults visible (owned by the caller), and its digest. */
char *policy_canonical(const struct policy *p);
int policy_digest(const struct policy *p, char ret[DIGEST_HEX]);

/* Shapes that are allowed but worth a warning; each {"id","step","path","message","remedy"}; accepted ones
 * carry "accepted": REASON. A new reference. */
json_t *policy_lint(const struct policy *p, const struct policy_host *host);

/* The JSON Schema (2020-12) of the format, from the same tables that parse it. A new reference. */
json_t *policy_schema(void);
