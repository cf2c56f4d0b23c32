/* ns.c: see ns.h. runs in: launcher, and any process of ours that confines itself */
#include "jail/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

pid_t ns_clone(uint64_t flags, int cgroup_fd, int *ret_pidfd) {
    int pidfd = -1;
    struct clone_args args = {
        .flags = flags | (ret_pidfd ? CLONE_PIDFD : 0),
        .pidfd = (uint64_t)(uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };
    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup_fd;
    }
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        return -errno;
    if (pid > 0 && ret_pidfd)
        *ret_pidfd = pidfd;
    return (pid_t)pid;
}

void ns_kill(int pidfd, pid_t child) {
    if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0 && child > 0)
        kill(child, SIGKILL);
}

static int write_proc(pid_t pid, const char *name, const char *text, size_t n) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* The kernel takes a map in one write or not at all: user_namespaces(7). */
    ssize_t w = write(fd, text, n);
    return w < 0 ? -errno : (size_t)w == n ? 0 : -EIO;
}

static int write_map(pid_t pid, const char *name, const struct ns_extent *extents, size_t n) {
    char text[NS_EXTENTS_MAX * 40];
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%u %u %u\n", extents[i].inside, extents[i].outside,
                               extents[i].count);
    return write_proc(pid, name, text, at);
}

int ns_write_maps(pid_t pid, const struct ns_maps *maps, int deny_setgroups, struct error *err) {
    int r = deny_setgroups ? write_proc(pid, "setgroups", "deny", 4) : 0;
    if (r < 0)
        return error_errno(err, r, "cannot deny setgroups in the user namespace");
    r = write_map(pid, "uid_map", maps->uid, maps->n_uid);
    if (r < 0)
        return error_errno(err, r, "cannot write the map of user ids");
    r = write_map(pid, "gid_map", maps->gid, maps->n_gid);
    return r < 0 ? error_errno(err, r, "cannot write the map of group ids") : 0;
}

/* Only there so that /proc/PID/ns/user exists, until it is killed; or with its parent, whose channels it has copies of. */
static void __attribute__((noreturn)) hold_namespace(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent)
        pause();
    _exit(0);
}

int ns_map_fd(const struct ns_maps *maps, struct error *err) {
    _cleanup_fd_ int pidfd = -1;
    pid_t us = getpid(), pid = ns_clone(CLONE_NEWUSER, -1, &pidfd);
    if (pid < 0)
        return error_errno(err, pid, "wall userns: cannot make a user namespace for an id map");
    if (pid == 0)
        hold_namespace(us);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    int r = ns_write_maps(pid, maps, 0, err);
    int fd = r < 0 ? r : open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        fd = error_errno(err, -errno, "cannot open the user namespace of an id map");
    ns_kill(pidfd, pid);
    waitpid(pid, NULL, 0);
    return fd;
}

int ns_loopback(void) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

int ns_loopback_up(int fd) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}
