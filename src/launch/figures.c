/* figures.c: what the step uses now, by the kernel's counters where a control group has them, else by a walk.
 * runs in: launcher (untrusted input: none that is parsed beyond numbers) */
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "launch/launch.h"

enum { OURS_DEPTH = 1 };

struct sum {
    uint64_t processes, ticks;
};

/* Columns 14 to 17 of /proc/PID/stat: its own time, and that of children which it has reaped; proc(5). */
static void add_process(void *data, pid_t parent, pid_t pid, int depth) {
    char text[1024], state;
    struct sum *s = data;
    pid_t ppid;
    unsigned long long t[4];
    const char *rest = tree_read(pid, "stat", text, sizeof(text)) > 0 ? tree_stat(text, &state, &ppid) : NULL;
    s->processes += depth > OURS_DEPTH;
    if (rest && sscanf(rest, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &t[0], &t[1], &t[2],
                       &t[3]) == 4)
        s->ticks += t[0] + t[1] + t[2] + t[3];
}

void figures_now(struct launch *l, struct launch_figures *f) {
    struct cgroup_figures now;
    struct statfs s;
    struct sum sum = {0};
    *f = (struct launch_figures){.disk = UINT64_MAX, .files = UINT64_MAX};
    cgroup_figures_now(&l->group, &now);
    tree_each(l->init, add_process, &sum);
    f->memory = now.memory_peak != UINT64_MAX ? now.memory_peak : memory_watch(l);
    f->processes = now.processes_peak == UINT64_MAX            ? sum.processes
                   : now.processes_peak > LIMITS_OUR_PROCESSES ? now.processes_peak - LIMITS_OUR_PROCESSES
                                                               : 0;
    f->cpu_us = now.cpu_us != UINT64_MAX ? now.cpu_us : sum.ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    f->wall_us = l->begun_us ? clock_monotonic_us() - l->begun_us : 0;
    if (l->space < 0 || fstatfs(l->space, &s) < 0)
        return;
    f->disk = (s.f_blocks - s.f_bfree) * (uint64_t)s.f_bsize;
    f->files = s.f_files - s.f_ffree;
}
