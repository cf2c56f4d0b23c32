/* tree.c: the processes of a step as this pid namespace numbers them: init and everything below it.
 *
 * A process that was orphaned goes to the reaper, so a walk from init misses nothing but what moves while it is walked;
 * who must be sure walks again.
 * runs in: launcher (untrusted input: none that is parsed beyond numbers) */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/launch.h"

enum { CHILDREN_TEXT = 65536, DEPTH_MAX = 512 };

ssize_t tree_read(pid_t pid, const char *name, char *to, size_t room) {
    char path[320];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_all(fd, to, room - 1);
    to[n > 0 ? n : 0] = 0;
    return n;
}

static void walk(pid_t parent, pid_t pid, int depth, tree_visit visit, void *data);

/* The kernel lists children by the thread that forked them. */
static void walk_children(pid_t pid, const char *thread, int depth, tree_visit visit, void *data) {
    char name[280];
    _cleanup_free_ char *text = malloc(CHILDREN_TEXT);
    snprintf(name, sizeof(name), "task/%s/children", thread);
    if (!text || tree_read(pid, name, text, CHILDREN_TEXT) <= 0)
        return;
    for (char *p = text, *end;; p = end) {
        long child = strtol(p, &end, 10);
        if (end == p)
            return;
        walk(pid, (pid_t)child, depth + 1, visit, data);
    }
}

static void walk(pid_t parent, pid_t pid, int depth, tree_visit visit, void *data) {
    char path[64];
    visit(data, parent, pid, depth);
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *dir = depth < DEPTH_MAX ? opendir(path) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            walk_children(pid, e->d_name, depth, visit, data);
    if (dir)
        closedir(dir);
}

void tree_each(pid_t init, tree_visit visit, void *data) {
    walk(0, init, 0, visit, data);
}

const char *tree_stat(char *text, char *ret_state, pid_t *ret_parent) {
    const char *rest = strrchr(text, ')'); /* the name before it may hold anything: proc(5) */
    int parent;
    if (!rest || sscanf(rest, ") %c %d", ret_state, &parent) != 2)
        return NULL;
    *ret_parent = (pid_t)parent;
    return rest + 2;
}
