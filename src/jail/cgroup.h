/* cgroup.h: the step's own control groups, v1, v2 or both (hybrid).
 *
 * One folder of ours per hierarchy, below the group doorward itself is in (so an outer limit goes on holding); nothing
 * outside these folders is ever written but the v2 parent's cgroup.subtree_control. Placing a process costs
 * nothing on v2 (CLONE_INTO_CGROUP) and little on v1: a single-threaded child writes "0" into `tasks`, for which the
 * kernel skips the lock over all thread groups that a write to cgroup.procs takes (10 ms and more after a pause).
 * runs in: launcher */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum cgroup_kind { CGROUP_V1_MEMORY, CGROUP_V1_PIDS, CGROUP_V1_CPU, CGROUP_V2, CGROUP_N };

struct cgroup {
    char *path[CGROUP_N]; /* folder to be made, NULL where this host has no such hierarchy */
    int dir[CGROUP_N];    /* opened after it was made, else -1 */
    bool v2_controls;     /* the v2 tree carries memory and pids: then no v1 folder is used */
};

/* What the kernel says of the step; UINT64_MAX where it says nothing. Bytes, counts, microseconds. */
struct cgroup_figures {
    uint64_t oom_kills, process_denials, memory_peak, processes_peak, cpu_us;
};

/* Finds where our folder `name` would stand ("" = named later, by cgroup_name), from the texts of /proc/self/cgroup and /proc/self/mountinfo (pure;
 * changes nothing). 0, or -ENOMEM. No hierarchy found is not an error: all paths stay NULL. */
int cgroup_find(const char *cgroup_text, const char *mountinfo_text, const char *name, struct cgroup *ret);

/* The same, read from this process's /proc. */
int cgroup_find_here(const char *name, struct cgroup *ret, struct error *err);

/* Puts `name` behind each path that was found with "". 0 or -ENOMEM. */
int cgroup_name(struct cgroup *g, const char *name);

/* Makes the folder of one kind and opens it. 0 or -errno (-ENOENT: no such hierarchy; -EACCES: not ours to make). */
int cgroup_make(struct cgroup *g, enum cgroup_kind kind);

/* Sets a cap and reads it back: what is in force goes to *ret. 0 or -errno. `processes` counts every process in the
 * group, ours included. `cpus` is in thousandths of a processor. */
int cgroup_limit_memory(struct cgroup *g, uint64_t bytes, uint64_t *ret);
int cgroup_limit_processes(struct cgroup *g, uint64_t processes, uint64_t *ret);
int cgroup_limit_cpus(struct cgroup *g, uint64_t cpus, uint64_t *ret);

/* Descriptors that a fresh single-threaded child writes "0" into to enter the v1 folders. Returns how many (at most
 * CGROUP_N); owned by the caller. -errno on failure. */
int cgroup_entries(const struct cgroup *g, int ret_fds[CGROUP_N]);

/* Reads the kernel's counters. */
void cgroup_figures(const struct cgroup *g, struct cgroup_figures *ret);

/* The same at this moment: memory_peak and processes_peak are what is used now. */
void cgroup_figures_now(const struct cgroup *g, struct cgroup_figures *ret);

/* Ends everything in the group folder `path` (v2: cgroup.kill; v1: each member by pidfd, again until none is left),
 * then removes it. 0, also when it is not there; -EBUSY when something survived for two seconds. Only folders whose
 * last component begins with "doorward-" are touched: anything else is -EINVAL. */
int cgroup_clean(const char *path);

/* Removes the empty folders and closes. 0 or the first -errno. */
int cgroup_remove(struct cgroup *g);
void cgroup_free(struct cgroup *g);
