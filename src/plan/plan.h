/* plan.h: the plan, the waist of doorward.
 *
 * A plan is the resolved, frozen list of what is enforced for ONE step on this host. Front ends
 * (policy file, flags, lab) compile to it; the launcher executes it and knows nothing else. It has
 * one encoding, canonical JSON, and its digest is the SHA-256 of that.
 *
 * Everything in a plan is decided: paths are canonical (absolute, no links, no "." or ".."), units are
 * plain numbers, defaults are filled in. All strings are UTF-8 without NUL. An empty list means nothing.
 * runs in: controller, launcher, cli */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"

#define PLAN_VERSION  1
#define PLAN_NAME_MAX 64     /* task, step and export names: [a-z0-9][a-z0-9_-]* */
#define PLAN_PATH_MAX 4095   /* bytes of one path (PATH_MAX without NUL) */
#define PLAN_ARG_MAX  131071 /* bytes of one argument or NAME=value: the kernel's MAX_ARG_STRLEN (execve(2)) */
/* Bytes of argv and env together: a quarter of the usual 8 MiB stack (execve(2)), less what the kernel adds. */
#define PLAN_ARGS_TOTAL_MAX 2048000u
#define PLAN_INPUTS_MAX     8192 /* more mounts than this would pass fs.mount-max hosts set; also bounds the encoding */
#define PLAN_EXPORTS_MAX    256
#define PLAN_AGENT_ID       1000        /* uid and gid of the worker inside, but for user: root */
#define PLAN_ENCODED_MAX    (64u << 20) /* bytes of the encoded plan */

enum plan_user { PLAN_USER_AGENT, PLAN_USER_ROOT, PLAN_USER_N };

/* How an input reaches the worker. */
enum plan_input_kind {
    PLAN_READ,    /* host file or folder, read-only, live */
    PLAN_OVERLAY, /* folder, writable copy-on-write; the original is the lower layer and is never written */
    PLAN_COPY,    /* file or folder copied into the space, writable */
    PLAN_INPUT_KIND_N
};

/* How the content of an input that is a folder is put on record, beside the run. */
enum plan_digest {
    PLAN_DIGEST_NONE, /* path, count, size */
    PLAN_DIGEST_GIT,  /* commit, index, and what differs from it */
    PLAN_DIGEST_FULL, /* a digest over everything that the worker sees there */
    PLAN_DIGEST_N
};

/* What happens when an input seems to hold a secret. */
enum plan_scan { PLAN_SCAN_OFF, PLAN_SCAN_WARN, PLAN_SCAN_REFUSE, PLAN_SCAN_N };

struct plan_input {
    enum plan_input_kind kind;
    char *target; /* canonical path inside; never below another input's target unless that is its parent in the list */
    char *source; /* canonical path outside */
    bool directory; /* what the source was when the plan was made; another type at start refuses it */
    char **exclude; /* gitignore patterns, relative to the source; NULL for none */
    char **only;    /* gitignore patterns; when not empty, what no pattern matches is not there */
    bool sensitive; /* the policy said `sensitive: true` */
    enum plan_digest digest;
    bool digest_named; /* the policy names it: the step's end waits for it */
    enum plan_scan scan;
    bool private; /* `label: private`: must not leave except through named exports */
};

/* PLAN_LIMIT_x order is the order of print and journal. Zero is a valid cap only where said. */
enum plan_limit {
    PLAN_WALL,       /* milliseconds from the worker's start; hard */
    PLAN_MEMORY,     /* bytes, no swap; hard when the main process was killed for it, else soft */
    PLAN_PROCESSES,  /* processes and threads of the worker; soft */
    PLAN_CPUS,       /* thousandths of a processor */
    PLAN_DISK,       /* bytes of everything writable together; soft */
    PLAN_FILES,      /* inodes of everything writable together; soft */
    PLAN_OUTPUT,     /* bytes of stdout and stderr together; hard; 0 = none may be written */
    PLAN_OPEN_FILES, /* descriptors a process (RLIMIT_NOFILE); soft */
    PLAN_LIMIT_N
};

struct plan_export {
    char *name;
    char *path;      /* canonical path inside, in a writable place */
    uint64_t max;    /* bytes; larger is not collected */
    bool required;   /* a completed step without it ends as failed */
    bool executable; /* the collected file may carry an execute bit */
};

/* Walls that can be named: in `degrade`, and by the lab to run a probe without one.
 * plan_wall_names[] has the words. */
enum plan_wall {
    PLAN_WALL_USERNS, /* own user namespace and id map */
    PLAN_WALL_MOUNTS, /* own root; off: host tree read-write visible (lab only) */
    PLAN_WALL_PIDS,   /* own pid namespaces and /proc */
    PLAN_WALL_NET,    /* own network namespace */
    PLAN_WALL_IPC,    /* own ipc and uts namespaces */
    PLAN_WALL_SECCOMP,
    PLAN_WALL_LANDLOCK,
    PLAN_WALL_CAPS,    /* no capabilities, no_new_privs */
    PLAN_WALL_FDS,     /* closed list of descriptors */
    PLAN_WALL_ENV,     /* closed list of environment variables */
    PLAN_WALL_SESSION, /* own session, no terminal of the host */
    PLAN_WALL_CGROUP,  /* the step's own cgroup; off: limits that need it are not held */
    PLAN_WALL_REAP,    /* everything of the step dies with it */
    PLAN_WALL_N
};

enum plan_boundary { PLAN_BOUNDARY_NAMESPACE, PLAN_BOUNDARY_N }; /* gvisor and microvm come with their back ends */

struct plan {
    char *task; /* name; "run" for a run from flags */
    char *step; /* name; "main" for a run from flags */
    enum plan_boundary boundary;
    char **argv;   /* at least one; argv[0] is looked up in PATH of `env` when it has no '/' */
    char **env;    /* NAME=value, complete: nothing else reaches the worker */
    char *workdir; /* canonical path inside */
    enum plan_user user;
    bool terminal;             /* -t: a terminal of the sandbox's own */
    bool input;                /* -i: doorward's standard input is passed; else end of file at once */
    struct plan_input *inputs; /* parents before children */
    size_t n_inputs;
    uint64_t limits[PLAN_LIMIT_N];
    struct plan_export *exports;
    size_t n_exports;
    bool degrade_wall[PLAN_WALL_N]; /* may be missing on this host */
    bool degrade_limit[PLAN_LIMIT_N];
    bool lab_off[PLAN_WALL_N];        /* set only by the lab: this wall is left out to show that its probe can fail */
    bool lab_limit_off[PLAN_LIMIT_N]; /* the same for a limit */
};

extern const char *const plan_user_names[PLAN_USER_N];             /* "agent", "root" */
extern const char *const plan_input_kind_names[PLAN_INPUT_KIND_N]; /* "read", "overlay", "copy" */
extern const char *const plan_digest_names[PLAN_DIGEST_N];         /* "none", "git", "full" */
extern const char *const plan_scan_names[PLAN_SCAN_N];             /* "off", "warn", "refuse" */
extern const char *const plan_limit_names[PLAN_LIMIT_N];           /* "wall", "memory", ... "open-files" */
extern const char *const plan_wall_names[PLAN_WALL_N];             /* "userns", "mounts", ... "reap" */
extern const uint64_t plan_limit_defaults
    [PLAN_LIMIT_N]; /* policy.md: wall 30m, memory 2GiB, processes 512, cpus 2, disk 2GiB, files 200k, output 10MB, open-files 4096 */

/* Releases all members; accepts NULL and a zeroed plan. */
void plan_free(struct plan *p);
#define _cleanup_plan_ _cleanup_(plan_free)

/* Encodes to canonical JSON (owned by the caller; NULL when out of memory). Every field stands in it. */
char *plan_encode(const struct plan *p);

/* Decodes and checks what plan_encode made; unknown members and versions, wrong types, and everything
 * plan_check refuses are errors. *ret is untouched on failure. */
int plan_decode(const char *bytes, size_t n, struct plan *ret, struct error *err);

/* The same plan as bytes for the launcher, which reads no JSON: it is one exec of every start, and a parser less in a
 * process that holds rights. Both ends are one build on one machine. plan_unpack takes what is well-formed; whether it
 * keeps the rules is for plan_check to say. 0 or -ENOMEM; or -EPROTO, *ret untouched. */
int plan_pack(const struct plan *p, struct buf *out);
int plan_unpack(const char *bytes, size_t n, struct plan *ret, struct error *err);

/* The rules every plan keeps whatever front end made it: name forms, canonical paths, order of inputs,
 * sizes (PLAN_*_MAX), targets that may not be covered (/, /proc, /dev, /sys, /usr, /etc, /run and what
 * /usr is linked from), exports in writable places, limits in range. 0 or -EINVAL with the field named. */
int plan_check(const struct plan *p, struct error *err);

/* Hex SHA-256 of the encoding. 0 or -ENOMEM. */
int plan_digest(const struct plan *p, char ret[DIGEST_HEX]);

/* A limit's figure in its unit: "30m", "2GiB", "1.5", "200k". Returns `to`. */
const char *plan_limit_text(char to[32], enum plan_limit limit, uint64_t v);

/* The plan in words, for a person: what the worker sees, may change, how it is limited, what comes out. */
int plan_print(const struct plan *p, struct buf *out);

/* The part of it that says what runs and what it can reach: command, user, inputs, writable places, network, variables. */
int plan_print_reach(const struct plan *p, struct buf *out);

/* True when `path` is absolute, normalised (no "//", "/./", "/../", trailing "/" except "/" itself) and not too long. */
bool plan_path_is_canonical(const char *path);

/* The range that a limit may have, in its own unit; what lies outside is refused as absurd. */
struct plan_range {
    uint64_t least, most;
};
extern const struct plan_range plan_limit_ranges[PLAN_LIMIT_N];

/* True when `s` has the form of a task, step or export name ([a-z0-9][a-z0-9_-]*, at most PLAN_NAME_MAX bytes). */
bool plan_name_is_valid(const char *s);

/* True when `s` can name a variable: printable ASCII without '=' and space, at least one byte. `n` bytes. */
bool plan_variable_is_valid(const char *s, size_t n);

/* 0 when an input may stand at the inside path `target`, else -EINVAL with the reason and the remedy. */
int plan_target_check(const char *target, struct error *err);

/* True when a folder can stand at the inside path `path` when the worker starts: the root, a place of ours, the
 * host's /usr, a folder input or what lies below one, or a folder that leads to an input. */
bool plan_path_stands(const struct plan *p, const char *path);

/* Where an inside path lives: the input that covers it (longest target), or NULL when none does. */
const struct plan_input *plan_input_at(const struct plan *p, const char *path);

/* True when the worker can write at `path`: below an overlay or copy input, /tmp, /home/agent, /out, /dev/shm. */
bool plan_path_is_writable(const struct plan *p, const char *path);
