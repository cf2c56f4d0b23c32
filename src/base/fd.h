/* fd.h: descriptors, whole reads and writes, paths resolved by descriptor.
 * runs in: all */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Closes a descriptor when it is one; keeps errno. Always returns -1, so that `fd = fd_close(fd)` reads well. */
int fd_close(int fd);

static inline void fd_closep(int *fd) {
    *fd = fd_close(*fd);
}

#define _cleanup_fd_ _cleanup_(fd_closep)

/* Writes all `n` bytes, across EINTR and short writes. 0 or -errno. */
int fd_write_all(int fd, const void *bytes, size_t n);

/* Reads until `n` bytes or end of file. Returns the bytes read or -errno. */
ssize_t fd_read_all(int fd, void *bytes, size_t n);

/* Reads a whole file of at most `max` bytes into fresh memory (owned by the caller,
 * always NUL-terminated behind the last byte). -EFBIG when it is larger. */
int fd_read_file(int fd, size_t max, char **ret_bytes, size_t *ret_n, struct error *err);

/* Opens `path` beneath the folder `dirfd` without leaving it and without following
 * any link (openat2 RESOLVE_BENEATH|RESOLVE_NO_SYMLINKS|RESOLVE_NO_MAGICLINKS; where
 * the kernel has no openat2, component by component with O_NOFOLLOW). O_CLOEXEC is
 * always added. `path` may be "" or "." for the folder itself. Returns a descriptor
 * or -errno (-ELOOP: a link was met; -EXDEV: the path leaves the folder).
 * Source of the rule: openat2(2); CVE-2021-30465 is what happens without it. */
int fd_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

/* Makes every folder of `path` beneath `dirfd` (mode 0755) and returns the last one
 * opened O_PATH, or -errno. Never follows links. */
int fd_mkdirs_beneath(int dirfd, const char *path, mode_t mode);

/* A sealed, read-only memory file that holds `n` bytes, or -errno. The name is for /proc only. */
int fd_sealed(const char *name, const void *bytes, size_t n);

/* Closes every descriptor from `from` up, except the `n_keep` ascending numbers in `keep`.
 * Uses close_range(2); without it walks /proc/self/fd, and without that fails with
 * -ENOSYS, since a sweep that cannot be complete must refuse (CVE-2024-21626). */
int fd_close_from(int from, const int *keep, size_t n_keep);

/* The same by the caller's own list of its descriptors: `folder` is its /proc/self/fd, owned from here on; -1 (none) is
 * -ENOSYS. */
int fd_close_listed(int folder, int from, const int *keep, size_t n_keep);
