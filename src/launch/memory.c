/* memory.c: the memory of a step where no control group counts it.
 *
 * Private resident memory of init and everything below it, and what the space holds. A process that was orphaned
 * goes to the reaper, so nothing of the step is missed.
 * runs in: launcher (untrusted input: none that is parsed beyond numbers) */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/launch.h"

enum { CHILDREN_TEXT = 65536, DEPTH_MAX = 512 };

static ssize_t read_proc(pid_t pid, const char *name, char *to, size_t room) {
    char path[80];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_all(fd, to, room - 1);
    to[n > 0 ? n : 0] = 0;
    return n;
}

/* Resident pages that are not shared with a file: /proc/PID/statm, columns 2 and 3. */
static uint64_t private_pages(pid_t pid) {
    char text[128];
    unsigned long long resident = 0, shared = 0;
    if (read_proc(pid, "statm", text, sizeof(text)) <= 0 || sscanf(text, "%*u %llu %llu", &resident, &shared) != 2)
        return 0;
    return resident > shared ? resident - shared : 0;
}

static uint64_t pages_below(pid_t pid, int depth);

/* The kernel lists children by the thread that forked them. */
static uint64_t pages_of_children(pid_t pid, const char *thread, int depth) {
    char name[320];
    uint64_t pages = 0;
    _cleanup_free_ char *text = malloc(CHILDREN_TEXT);
    snprintf(name, sizeof(name), "task/%s/children", thread);
    if (!text || read_proc(pid, name, text, CHILDREN_TEXT) <= 0)
        return 0;
    for (char *p = text, *end;; p = end) {
        long child = strtol(p, &end, 10);
        if (end == p)
            return pages;
        pages += pages_below((pid_t)child, depth + 1);
    }
}

static uint64_t pages_below(pid_t pid, int depth) {
    char path[64];
    uint64_t pages = private_pages(pid);
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *dir = depth < DEPTH_MAX ? opendir(path) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            pages += pages_of_children(pid, e->d_name, depth);
    if (dir)
        closedir(dir);
    return pages;
}

uint64_t memory_watch(const struct launch *l) {
    struct statfs s;
    uint64_t bytes = pages_below(l->init, 0) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (l->space >= 0 && fstatfs(l->space, &s) == 0)
        bytes += (s.f_blocks - s.f_bfree) * (uint64_t)s.f_bsize;
    return bytes;
}
