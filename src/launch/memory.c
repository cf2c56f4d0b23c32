/* memory.c: the memory of a step where no control group counts it.
 *
 * Private resident memory of init and everything below it, and what the space holds.
 * runs in: launcher (untrusted input: none that is parsed beyond numbers) */
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "launch/launch.h"

/* Resident pages that are not shared with a file: /proc/PID/statm, columns 2 and 3. */
static void add_private_pages(void *data, pid_t parent, pid_t pid, int depth) {
    char text[128];
    uint64_t *pages = data;
    unsigned long long resident = 0, shared = 0;
    if (tree_read(pid, "statm", text, sizeof(text)) > 0 && sscanf(text, "%*u %llu %llu", &resident, &shared) == 2)
        *pages += resident > shared ? resident - shared : 0;
}

uint64_t memory_watch(const struct launch *l) {
    struct statfs s;
    uint64_t pages = 0;
    tree_each(l->init, add_private_pages, &pages);
    uint64_t bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    if (l->space >= 0 && fstatfs(l->space, &s) == 0)
        bytes += (s.f_blocks - s.f_bfree) * (uint64_t)s.f_bsize;
    return bytes;
}
