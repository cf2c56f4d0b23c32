/* ns.h: namespaces and id maps.
 * runs in: launcher, and any process of ours that confines itself */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A fork with new namespaces (`flags`: CLONE_NEW*), straight into the cgroup v2 folder `cgroup_fd` when that is
 * >= 0 (no migration, so none of its cost). Returns 0 in the child, the pid in the parent, or -errno.
 * *ret_pidfd names the child for ever; a number could be recycled. Source: clone(2), CLONE_INTO_CGROUP. */
pid_t ns_clone(uint64_t flags, int cgroup_fd, int *ret_pidfd);

/* One line of an id map: `count` ids from `inside` on stand for those from `outside` on. */
struct ns_extent {
    uint32_t inside, outside, count;
};

#define NS_EXTENTS_MAX 8

/* The maps of user and of group ids. */
struct ns_maps {
    struct ns_extent uid[NS_EXTENTS_MAX], gid[NS_EXTENTS_MAX];
    size_t n_uid, n_gid;
};

/* Writes uid_map and gid_map of `pid`. With `deny_setgroups` (an ordinary user must) setgroups(2) is refused for good
 * inside: user_namespaces(7). 0 or -errno. */
int ns_write_maps(pid_t pid, const struct ns_maps *maps, int deny_setgroups, struct error *err);

/* A user namespace that holds nothing but a map, for an id-mapped mount (mount_setattr(2)): a descriptor or -errno. */
int ns_map_fd(const struct ns_maps *maps, struct error *err);

/* A socket of the current network namespace, to bring its loopback interface up with later: the kernel asks whether the
 * caller may administer the socket's namespace, which who made its user namespace always may. A descriptor or -errno. */
int ns_loopback(void);

/* SIGKILL to a child of ours that we have not reaped, by its handle; where the host refuses that (ENOSYS, or EPERM of a
 * container's filter) by its number, which cannot be somebody else's before we reap it. pidfd_send_signal(2). */
void ns_kill(int pidfd, pid_t child);

/* Brings the loopback interface up, in the network namespace that `fd` (ns_loopback) belongs to. 0 or -errno. */
int ns_loopback_up(int fd);
