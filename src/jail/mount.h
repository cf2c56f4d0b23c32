/* mount.h: mounts by descriptor (the fsopen/open_tree/move_mount family), so that no path is resolved twice.
 * runs in: launcher (its set-up child) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* False on kernels before 6.15, which clone a mount, or take it for the layer of an overlay, only where it is attached in the
 * caller's own mount namespace (mount_park). Told by the release: to park works on every kernel, and to try the other costs
 * more than a look. */
bool mount_knows_detached(void);

/* Attaches a detached mount where nobody misses what it covers: the caller's mount namespace must be its own. 0 or -errno. */
int mount_park(int fd);

/* A detached tmpfs, nosuid and nodev, of at most `bytes` and `inodes` (0 = the kernel's default), its root with
 * `mode`. A descriptor or -errno. Source: tmpfs(5). */
int mount_tmpfs(uint64_t bytes, uint64_t inodes, mode_t mode, struct error *err);

/* A detached file system without options but `options` ("name=value" or "name", NULL-terminated), with `attributes`
 * (MOUNT_ATTR_*). A descriptor or -errno. */
int mount_new(const char *type, const char *const *options, uint64_t attributes, struct error *err);

/* A detached copy of what stands at `path` beneath `dirfd` ("" = dirfd itself), with all mounts below it, private, with
 * `attributes` set on all of it. Links are not followed. A descriptor or -errno. */
int mount_tree(int dirfd, const char *path, uint64_t attributes);

/* Gives the detached tree `fd` an id map (mount_setattr(2), MOUNT_ATTR_IDMAP). 0 or -errno: -EINVAL where the file
 * system knows no id maps (overlay, FUSE). */
int mount_idmap(int fd, int userns_fd);

/* Attaches the detached mount `fd` on what `target_fd` names. 0 or -errno. Privileged: safe because the target was
 * opened beneath the new root without following links, and is named by descriptor. */
int mount_attach(int fd, int target_fd);

/* An overlay of `lowers` (topmost first) under `upper` and `work` (-1, -1: read-only), detached. `trusted`: made by
 * host root, with redirect_dir and index on; else with user.* attributes. A descriptor or -errno. Source:
 * Documentation/filesystems/overlayfs.rst. */
int mount_overlay(const int *lowers, size_t n_lowers, int upper, int work, bool trusted, struct error *err);
