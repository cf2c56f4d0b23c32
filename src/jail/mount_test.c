/* mount_test.c: namespaces and mounts (ns.c, mount.c), in a child with a user and a mount namespace of its own: the same for
 * root and for an ordinary user. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "jail/mount.h"
#include "jail/ns.h"

/* Ends a child with the number of the line that does not hold. */
#define NEED(x)                                                                                                        \
    do {                                                                                                               \
        if (!(x))                                                                                                      \
            _exit(__LINE__);                                                                                           \
    } while (0)

/* The line of `run` that did not hold in a child with new namespaces and one id mapped; 0 when all did. */
static int inside(uint64_t flags, void (*run)(void)) {
    int go[2], pidfd = -1, status;
    struct error err;
    if (pipe2(go, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = ns_clone(CLONE_NEWUSER | flags, -1, &pidfd);
    if (pid == 0) {
        char byte;
        NEED(read(go[0], &byte, 1) == 1);
        run();
        _exit(0);
    }
    struct ns_maps maps = {.uid = {{1000, geteuid(), 1}}, .gid = {{1000, getegid(), 1}}, .n_uid = 1, .n_gid = 1};
    int r = pid < 0 ? pid : ns_write_maps(pid, &maps, 1, &err);
    if (r < 0 || write(go[1], "", 1) != 1)
        return -1;
    r = waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    close(pidfd);
    close(go[0]);
    close(go[1]);
    return r;
}

static int put(int dirfd, const char *name, const char *text) {
    _cleanup_fd_ int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int holds(int dirfd, const char *name, const char *text) {
    char got[32] = "";
    _cleanup_fd_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && fd_read_all(fd, got, sizeof(got) - 1) >= 0 && !strcmp(got, text);
}

static void ids_and_network(void) {
    NEED(getuid() == 1000 && getgid() == 1000 && getpid() == 1);
    int fd = ns_loopback();
    NEED(fd >= 0 && ns_loopback_up(fd) == 0);
    NEED(ns_loopback_up(-1) == -EBADF);
    /* setgroups is refused for good. */
    gid_t group = 1000;
    NEED(syscall(SYS_setgroups, 1, &group) < 0 && errno == EPERM);
}

static void limited_tmpfs(void) {
    struct error err = {0};
    struct statfs s;
    struct stat st;
    int fd = mount_tmpfs(1 << 20, 20, 01777, &err);
    NEED(fd >= 0 && fstatfs(fd, &s) == 0 && (uint64_t)s.f_blocks * (uint64_t)s.f_bsize == 1 << 20 && s.f_files == 20);
    NEED(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 01777);
    static char block[1 << 16];
    int file = openat(fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; i < 16; i++)
        NEED(write(file, block, sizeof(block)) > 0);
    NEED(write(file, block, sizeof(block)) < 0 && errno == ENOSPC);
    NEED(ftruncate(file, 0) == 0);
    int made = 0;
    for (char name[] = "A"; *name < 'Z' && mkdirat(fd, name, 0700) == 0; ++*name)
        made++;
    NEED(made >= 16 && made < 20 && errno == ENOSPC); /* twenty, the file and the root among them */
    fd = mount_tmpfs(0, 5, 0755, &err);
    NEED(fd >= 0 && fstatfs(fd, &s) == 0 && s.f_files == 5);
}

static void what_cannot_be_made(void) {
    static const char *const options[] = {"no-such-option=1", NULL};
    struct error err = {0};
    NEED(mount_new("no-such-type", NULL, 0, &err) == -ENODEV && strstr(err.message, "no-such-type"));
    NEED(mount_new("tmpfs", options, 0, &err) == -EINVAL && strstr(err.message, "no-such-option"));
    int root = open("/", O_PATH | O_CLOEXEC);
    NEED(mount_overlay(&root, 0, -1, -1, false, &err) < 0 && strstr(err.message, "overlay"));
}

static void trees_and_overlays(void) {
    struct error err = {0};
    struct stat st;
    int space = mount_tmpfs(1 << 20, 100, 0755, &err);
    NEED(space >= 0);
    static const char *const folders[] = {"low", "mask", "up", "wk", "at"};
    for (size_t i = 0; i < ELEMENTS(folders); i++)
        NEED(mkdirat(space, folders[i], 0755) == 0);
    NEED(put(space, "low/a", "one") == 0 && put(space, "low/b", "two") == 0 && symlinkat("low", space, "link") == 0);
    /* A copy of a tree is read-only and apart; a link is not followed. */
    int tree = mount_tree(space, "low", MS_RDONLY);
    NEED(tree >= 0 && holds(tree, "a", "one") && put(tree, "a", "x") == -EROFS && holds(space, "low/a", "one"));
    int link = mount_tree(space, "link", 0);
    NEED(link == -EINVAL || (link >= 0 && fstat(link, &st) == 0 && S_ISLNK(st.st_mode)));
    NEED(mount_tree(space, "none", 0) == -ENOENT);
    /* Attached by descriptor it is there; detached it is reached by its descriptor alone. */
    int at = openat(space, "at", O_PATH | O_DIRECTORY | O_CLOEXEC);
    NEED(mount_attach(tree, at) == -EINVAL || holds(space, "at/a", "one"));
    /* An overlay keeps the lower layer as it is, a whiteout hides, and a new file may take the name. */
    NEED(mknodat(space, "mask/b", S_IFCHR, 0) == 0);
    int low = openat(space, "low", O_PATH | O_CLOEXEC), mask = openat(space, "mask", O_PATH | O_CLOEXEC);
    int up = openat(space, "up", O_PATH | O_CLOEXEC), work = openat(space, "wk", O_PATH | O_CLOEXEC);
    const int lowers[] = {mask, low};
    int over = mount_overlay(lowers, 2, up, work, false, &err);
    NEED(over >= 0);
    NEED(holds(over, "a", "one") && fstatat(over, "b", &st, 0) < 0 && errno == ENOENT);
    NEED(put(over, "a", "changed") == 0 && put(over, "b", "mine") == 0);
    NEED(holds(over, "a", "changed") && holds(over, "b", "mine") && holds(space, "low/a", "one") &&
         holds(space, "low/b", "two") && holds(space, "up/a", "changed"));
    /* Without an upper layer it is read-only. */
    int shown = mount_overlay(lowers, 2, -1, -1, false, &err);
    NEED(shown >= 0 && holds(shown, "a", "one") && put(shown, "a", "x") == -EROFS);
}

TEST(namespaces_ids_and_loopback) {
    CHECK_EQ(inside(CLONE_NEWPID | CLONE_NEWNET, ids_and_network), 0);
}

TEST(a_tmpfs_ends_at_its_limits) {
    CHECK_EQ(inside(CLONE_NEWNS, limited_tmpfs), 0);
}

TEST(what_cannot_be_made_is_named) {
    CHECK_EQ(inside(CLONE_NEWNS, what_cannot_be_made), 0);
}

TEST(trees_are_apart_and_overlays_keep_what_is_below) {
    CHECK_EQ(inside(CLONE_NEWNS, trees_and_overlays), 0);
}

TEST(maps_are_taken_whole_or_not_at_all) {
    struct error err = {0};
    struct ns_maps bad = {.uid = {{0, 0, 1}, {0, 5, 1}}, .gid = {{0, 0, 1}}, .n_uid = 2, .n_gid = 1}; /* 0 twice */
    int pidfd = -1, status;
    pid_t pid = ns_clone(CLONE_NEWUSER, -1, &pidfd);
    if (pid == 0)
        for (;;)
            pause();
    CHECK(pid > 0);
    int r = ns_write_maps(pid, &bad, 0, &err);
    ns_kill(pidfd, pid);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(r < 0 && strstr(err.message, "map of user ids"));
    close(pidfd);
}

TEST(a_child_is_killed_with_and_without_its_handle) {
    for (int with = 0; with < 2; with++) {
        int pidfd = -1, status;
        pid_t pid = ns_clone(0, -1, &pidfd);
        if (pid == 0)
            for (;;)
                pause();
        CHECK(pid > 0);
        ns_kill(with ? pidfd : -1, pid);
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        close(pidfd);
    }
}

TEST(a_map_for_mounts_is_roots_to_make) {
    struct ns_maps maps = {.uid = {{0, 100000, 10}}, .gid = {{0, 100000, 10}}, .n_uid = 1, .n_gid = 1};
    struct error err = {0};
    _cleanup_fd_ int fd = ns_map_fd(&maps, &err);
    CHECK(geteuid() == 0 ? fd >= 0 : fd < 0 && err.code < 0);
}

TEST_MAIN()
