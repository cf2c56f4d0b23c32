/* rows.h: what the lab tries, one row a probe.
 *
 * The harness and the probe program share this table: the harness takes from it which walls hold a probe and how it
 * is judged, the probe program pairs each name with the function that does it (probe.c).
 *
 * A row is one of three kinds. A wall row is something that must not work inside: the same action succeeds outside
 * (its control), is refused inside, and works inside again once the walls in `off` (and the limit) are left out. A
 * usable row is something that must go on working inside. A setup row is held by how the sandbox is made, not by a
 * wall that can be taken off; its control shows that it can fail.
 * runs in: cli, probe (outside and inside) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

enum lab_kind { LAB_WALL, LAB_USABLE, LAB_SETUP, LAB_KIND_N };
extern const char *const lab_kind_names[LAB_KIND_N]; /* "wall", "usable", "setup" */

/* What one attempt came to. The exit status of the probe program is the number. */
enum lab_result {
    LAB_HELD,   /* refused as it must be; for a usable row: it works */
    LAB_OPEN,   /* the action succeeded; for a usable row: it does not work */
    LAB_BROKEN, /* neither can be said */
    LAB_ABSENT, /* this host has no such thing, so there is nothing to hold */
    LAB_RESULT_N
};
extern const char *const lab_result_names[LAB_RESULT_N];

/* How the harness prepares and judges a row. */
enum {
    LAB_NEEDS_ROOT = 1 << 0,   /* the control can only succeed as root */
    LAB_HEARD = 1 << 1,        /* canary: bytes that a listener of the stage received */
    LAB_FILES = 1 << 2,        /* canary: digest of the stage's files */
    LAB_LINGER = 1 << 3,       /* canary: processes that are there after the end */
    LAB_FDS = 1 << 4,          /* starts with descriptors 9 (file), 20 (socket), 1500 (folder) open */
    LAB_TTY = 1 << 5,          /* starts under a controlling terminal */
    LAB_TWICE = 1 << 6,        /* run twice; the second looks for what the first left */
    LAB_SOCKETS = 1 << 7,      /* the folder with the stage's socket is a read input */
    LAB_LINKS = 1 << 8,        /* inputs whose targets lead through links */
    LAB_STAGED = 1 << 9,       /* the folder with set-id copies of the probe is a read input */
    LAB_KILLED = 1 << 11,      /* whoever runs it is killed once the probe has said LAB_LEFT */
    LAB_INTERACTIVE = 1 << 12, /* in a terminal of the sandbox\'s own (-t) */
    LAB_UNDER = 1 << 13,       /* Landlock as the layer under others: those in `off` are left out of both attempts */
    LAB_TIGHT = 1 << 10,       /* runs under the lab's small limits */
};

#define LAB_NO_LIMIT    (-1)
#define LAB_REFUSED_MAX 6

struct lab_row {
    const char *name;
    const char *case_id; /* of the field cases; "walls" where the design alone asks for it */
    enum lab_kind kind;
    uint32_t off; /* bits 1 << enum plan_wall: left out together to see the probe fail */
    int limit;    /* enum plan_limit that is left out as well, or LAB_NO_LIMIT */
    uint32_t flags;
    unsigned deadline_ms;         /* for one attempt, from outside */
    const char *must;             /* what must hold, one line */
    int refused[LAB_REFUSED_MAX]; /* errno values that count as refused; 0 ends; none = the function judges */
};

extern const struct lab_row lab_rows[];
extern const size_t lab_n_rows;

/* The row of that name, or NULL. */
const struct lab_row *lab_row_find(const char *name);

/* What the lab's tight limits are, and how much the probes try to use: well above, and little enough for any host. */
#define LAB_PROCESSES      40
#define LAB_PROCESSES_TRY  120
#define LAB_MEMORY         (96u << 20)
#define LAB_MEMORY_TRY     (320u << 20)
#define LAB_DISK           (8u << 20)
#define LAB_DISK_TRY       (24u << 20)
#define LAB_FILES_CAP      400
#define LAB_FILES_TRY      1200
#define LAB_OPEN_FILES     64
#define LAB_OPEN_FILES_TRY 300
#define LAB_OUTPUT         (64u << 10)
#define LAB_OUTPUT_TRY     (512u << 10)
#define LAB_WALL_MS        500
#define LAB_WALL_TRY_MS    1200
#define LAB_LINGER_MS      6000               /* how long a child that must not outlive its step would */
#define LAB_LEFT           "left a process\n" /* what a LAB_KILLED probe prints when it may be killed */
