/* linux_compat.h: kernel interfaces that Debian 12's headers (kernel 6.1, glibc 2.36) lack.
 * runs in: all */
#pragma once

#include <linux/openat2.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Landlock ABI 4-7: include/uapi/linux/landlock.h */
#define DW_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define DW_LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#define DW_LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#define DW_LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)

struct dw_landlock_ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

static inline int dw_openat2(int dirfd, const char *path, const struct open_how *how) {
    return (int)syscall(SYS_openat2, dirfd, path, how, sizeof(*how));
}

static inline int dw_close_range(unsigned first, unsigned last, unsigned flags) {
    return (int)syscall(SYS_close_range, first, last, flags);
}
