/* launch.h: the channel between controller and launcher (one launcher per step).
 *
 *   controller                          launcher
 *   BEGIN (ids)                  ->              what needs no plan is begun
 *   START (plan, fds)            ->
 *                                <-     PLACED   the cgroup folders it is about to make
 *   CREATE                       ->              (the controller has them on record)
 *                                <-     [TERMINAL], ENFORCED (what is in force, read back from the kernel), SPACE*
 *                                <-     STARTED, DENIED*, REFUSAL
 *   SIGNAL*, FREEZE, THAW, COUNT, KILL ->
 *                                <-     FROZEN, THAWED, UNDONE, FIGURES: one answer to each of FREEZE, THAW, COUNT
 *                                <-     ENDED    everything of the step is gone; then end of file
 *   at any time before STARTED:  <-     FAILED   nothing ran; then end of file
 *
 * The plan and its groups are on record before anything is made. What is in force follows while the worker starts: nothing
 * it does leaves the sandbox before its end, when the controller collects; a door that lets something out earlier waits for
 * its own record. A controller that cannot write a record kills the step.
 *
 * End of file from the controller means: kill everything, clean up, exit.
 * A second use: CLEAN, for what a dead run left (no START on that connection).
 * runs in: controller, launcher */
#pragma once

#include <stdint.h>

#include "wire/wire.h"

enum launch_type {
    /* controller -> launcher */
    LAUNCH_START =
        1,         /* text run (ULID), u32 step number; fds: plan (plan_pack, sealed memory), stdin, stdout, stderr */
    LAUNCH_CREATE, /* - */
    LAUNCH_SIGNAL, /* u32 signal number: deliver to the worker's main process */
    LAUNCH_KILL,   /* u32 enum launch_reason: end the step now */
    LAUNCH_BEGIN,  /* u32 first of this run's host ids (0 as an ordinary user): a START will follow */
    LAUNCH_FREEZE, /* u32 1: the deadline waits until THAW */
    LAUNCH_THAW,   /* - */
    LAUNCH_COUNT,  /* - */
    LAUNCH_CLEAN, /* u32 n, n x text path of a cgroup folder: kill what is in it, remove it; answered by ENDED or FAILED */

    /* launcher -> controller */
    LAUNCH_PLACED = 64, /* u32 n, n x text path of a cgroup folder */
    LAUNCH_ENFORCED,    /* text JSON object
                           {"limits":{NAME:{"asked":N,"in_force":N|null,"by":"cgroup-v1|cgroup-v2|rlimit|tmpfs|timer|count|watch|none"}},
                           "walls":{NAME:"held"|"off"|"degraded: WHY"}, "ids":{...}, "notes":[...]} */
    LAUNCH_SPACE, /* any number of them: u32 n, n x text inside path; fds in the same order: folders outside the sandbox that show what
                        stands there
                        ("/tmp", "/home/agent", "/out", "/dev/shm" and each overlay and copy target that an export lies in)
                      */
    LAUNCH_STARTED,  /* u32 host pid of init */
    LAUNCH_TERMINAL, /* fd: the master side */
    LAUNCH_DENIED,   /* text system call or attempt, u64 times since the last record of it */
    LAUNCH_REFUSAL,  /* text reason that the worker declared (`dw refuse`); a claim */
    LAUNCH_FROZEN,   /* text by what ("cgroup-v2", "signals"), u32 processes, u64 microseconds that it took */
    LAUNCH_THAWED,   /* u64 microseconds that it was frozen */
    LAUNCH_UNDONE,   /* u32 errno, text: FREEZE or THAW could not be done; the step is as it was */
    LAUNCH_FIGURES,  /* struct launch_figures, see launch_put_figures */
    LAUNCH_ENDED,    /* struct launch_end, see launch_put_end */
    LAUNCH_FAILED,   /* u32 errno, text message (door, object, rule, remedy) */
};

/* Why the step was ended by us; LAUNCH_BY_ITSELF when nobody ended it. */
enum launch_reason {
    LAUNCH_BY_ITSELF,
    LAUNCH_BY_WALL,     /* the deadline */
    LAUNCH_BY_OUTPUT,   /* too many bytes on stdout and stderr */
    LAUNCH_BY_OPERATOR, /* stop */
    LAUNCH_BY_MEMORY,   /* the watcher saw more than the limit where no cgroup holds it */
    LAUNCH_BY_ERROR,    /* one of our own processes died or broke the protocol */
    LAUNCH_REASON_N
};

/* How the worker's main process ended: init's claim, bounded; the kernel's facts below outrank it. */
enum launch_how {
    LAUNCH_HOW_UNKNOWN,        /* init died without a report */
    LAUNCH_HOW_EXITED,         /* value = exit status 0..255 */
    LAUNCH_HOW_SIGNALED,       /* value = signal number */
    LAUNCH_HOW_NOT_FOUND,      /* 127; `detail` says what was looked for and which input to add */
    LAUNCH_HOW_NOT_EXECUTABLE, /* 126; `detail` says why */
    LAUNCH_HOW_N
};

struct launch_end {
    uint32_t reason; /* enum launch_reason */
    uint32_t how;    /* enum launch_how */
    uint32_t value;
    uint32_t init_status;     /* waitid of init as the kernel gave it: exit status, or 128 + signal */
    uint64_t oom_kills;       /* kernel counters of the step's cgroup; UINT64_MAX = not known on this host */
    uint64_t process_denials; /* pids.events max; UINT64_MAX = not known */
    uint64_t memory_peak;     /* bytes; UINT64_MAX = not known */
    uint64_t processes_peak;  /* UINT64_MAX = not known */
    uint64_t cpu_us;          /* user and system time of everything in the step */
    uint64_t wall_us;         /* worker's start to everything gone */
    uint64_t disk_peak;       /* bytes used at the end in the space (a tmpfs keeps no peak) */
    uint64_t files_peak;      /* inodes used at the end */
    uint32_t disk_full;       /* 1: the space had no block, 2: no inode, 3: neither, left at the end */
    char detail[512];         /* for a person; "" = nothing to add */
};

/* What a step uses at this moment; UINT64_MAX = not known on this host. */
struct launch_figures {
    uint64_t memory;    /* bytes */
    uint64_t processes; /* processes and threads of the worker, where a group counts them; else processes */
    uint64_t cpu_us;
    uint64_t disk, files; /* bytes and inodes in the space */
    uint64_t wall_us;     /* since the worker's start */
};

void launch_put_figures(struct wire_message *m, const struct launch_figures *f);
void launch_get_figures(struct wire_message *m, struct launch_figures *ret);

void launch_put_end(struct wire_message *m, const struct launch_end *e);
/* Values out of their enum break the message. */
void launch_get_end(struct wire_message *m, struct launch_end *ret);
