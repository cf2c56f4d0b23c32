/* linux_compat.h: kernel interfaces that the C library or Debian 12's headers (kernel 6.1) lack.
 *
 * What starts with every step is linked with musl where that is installed (its start costs a third of glibc's), and musl
 * has no wrappers for the mount API, capset or waitid with usage; so they stand here, once, for both.
 * runs in: all */
#pragma once

#include <linux/mount.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Landlock ABI 4-7: include/uapi/linux/landlock.h */
#define DW_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define DW_LANDLOCK_SCOPE_SIGNAL               (1ULL << 1)
#define DW_LANDLOCK_ACCESS_FS_TRUNCATE         (1ULL << 14)
#define DW_LANDLOCK_ACCESS_FS_IOCTL_DEV        (1ULL << 15)

struct dw_landlock_ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

static inline int dw_openat2(int dirfd, const char *path, const struct open_how *how) {
    return (int)syscall(SYS_openat2, dirfd, path, how, sizeof(*how));
}

/* The mount API: fsopen(2), open_tree(2), move_mount(2), mount_setattr(2) and their kin, as the kernel takes them. */
static inline int dw_fsopen(const char *type, unsigned flags) {
    return (int)syscall(SYS_fsopen, type, flags);
}

static inline int dw_fsconfig(int fs, unsigned command, const char *key, const void *value, int aux) {
    return (int)syscall(SYS_fsconfig, fs, command, key, value, aux);
}

static inline int dw_fsmount(int fs, unsigned flags, unsigned attributes) {
    return (int)syscall(SYS_fsmount, fs, flags, attributes);
}

static inline int dw_open_tree(int dirfd, const char *path, unsigned flags) {
    return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int dw_move_mount(int from, int to) {
    return (int)syscall(SYS_move_mount, from, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* The same on a path beneath `dirfd`; its last component may not be a link. */
static inline int dw_move_mount_at(int from, int dirfd, const char *path) {
    return (int)syscall(SYS_move_mount, from, "", dirfd, path, MOVE_MOUNT_F_EMPTY_PATH);
}

static inline int dw_mount_setattr(int fd, unsigned flags, struct mount_attr *attr) {
    return (int)syscall(SYS_mount_setattr, fd, "", flags, attr, sizeof(*attr));
}

static inline int dw_close_range(unsigned first, unsigned last, unsigned flags) {
    return (int)syscall(SYS_close_range, first, last, flags);
}
