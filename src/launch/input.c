/* input.c: inputs, from a path outside to a detached mount.
 *
 * As host root the mount carries an id map: the owner of the input's top becomes the worker, every other id below 65536
 * becomes the same id inside, so that each owner found has a name and can be dealt with, without walking the tree. As
 * an ordinary user there is one id and nothing to map.
 * runs in: launcher, and its set-up child */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/linux_compat.h"
#include "base/str.h"
#include "jail/mount.h"
#include "jail/ns.h"
#include "launch/launch.h"

int input_open(const struct plan_input *in, struct error *err) {
    char shown[256];
    _cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fd = root < 0 ? -errno : fd_open_beneath(root, in->source, O_PATH, 0);
    struct stat st;
    if (fd < 0)
        return error_errno(err, fd, "input %s cannot be opened%s", str_safe(shown, sizeof(shown), in->source),
                           fd == -ELOOP    ? " (it became a link after the plan was made: run again)"
                           : fd == -EACCES ? " (doorward's user may not read it: change its mode or leave it out)"
                                           : "");
    if (fstat(fd, &st) < 0)
        return error_errno(err, -errno, "input %s", str_safe(shown, sizeof(shown), in->source));
    if (S_ISDIR(st.st_mode) != in->directory || (!in->directory && !S_ISREG(st.st_mode)))
        return error_set(err, -ESTALE, "input %s is no longer %s: run again",
                         str_safe(shown, sizeof(shown), in->source), in->directory ? "a folder" : "a file");
    return TAKE_FD(fd);
}

static void add(struct ns_extent *e, size_t *n, uint32_t inside, uint32_t outside, uint32_t count) {
    if (count)
        e[(*n)++] = (struct ns_extent){inside, outside, count};
}

void input_swap_ids(struct ns_extent *e, size_t *n, uint32_t base, uint32_t owner, uint32_t self) {
    uint32_t low = owner < self ? owner : self, high = owner < self ? self : owner;
    *n = 0;
    if (owner == self) {
        add(e, n, 0, base, LAUNCH_ID_RANGE);
        return;
    }
    add(e, n, 0, base, low);
    add(e, n, owner, base + self, 1);
    if (high < LAUNCH_ID_RANGE) {
        add(e, n, self, base + owner, 1);
        add(e, n, low + 1, base + low + 1, high - low - 1);
        add(e, n, high + 1, base + high + 1, LAUNCH_ID_RANGE - high - 1);
    } else {
        add(e, n, low + 1, base + low + 1, LAUNCH_ID_RANGE - low - 1);
    }
}

static int map_ids(const struct launch *l, int tree, const struct stat *st, struct error *err) {
    struct ns_maps maps;
    input_swap_ids(maps.uid, &maps.n_uid, l->uid_base, st->st_uid, l->id);
    input_swap_ids(maps.gid, &maps.n_gid, l->uid_base, st->st_gid, l->id);
    _cleanup_fd_ int userns = ns_map_fd(&maps, err);
    int r = userns < 0 ? 0 : mount_idmap(tree, userns);
    return userns < 0 ? userns : r < 0 ? error_errno(err, r, "id map") : 0;
}

/* The mount of the original itself, read-only, mapped as root. */
static int original(const struct launch *l, const struct plan_input *in, int source, long owner, struct error *err) {
    struct stat st;
    char shown[256];
    _cleanup_fd_ int tree = mount_tree(source, "", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (tree < 0)
        return error_errno(err, tree, "input %s cannot be mounted", str_safe(shown, sizeof(shown), in->source));
    if (owner < 0 || !wall_stands(l, PLAN_WALL_USERNS))
        return TAKE_FD(tree);
    if (fstat(source, &st) < 0)
        return error_errno(err, -errno, "input %s", str_safe(shown, sizeof(shown), in->source));
    int r = map_ids(l, tree, &st, err);
    if (r == -EINVAL)
        return error_set(
            err, r,
            "input %s: its file system knows no id-mapped mounts (overlay and FUSE do not, so in a container "
            "doorward runs on one): use `copy` for it, or run doorward as the ordinary user who owns it",
            str_safe(shown, sizeof(shown), in->source));
    return r < 0 ? error_wrap(err, "input %s", str_safe(shown, sizeof(shown), in->source)) : TAKE_FD(tree);
}

static int copied(const struct launch *l, size_t i, int source, long owner, int *ret_show, struct error *err) {
    const struct plan_input *in = &l->plan.inputs[i];
    unsigned left = 0;
    _cleanup_fd_ int folder = space_folder(l->space, "copy", i, owner);
    if (folder < 0)
        return error_errno(err, folder, "cannot make room for the copy of %s", in->target);
    int r = copy_tree(in, source, folder, owner, &left, err);
    if (r < 0)
        return r;
    if (left)
        launch_note((struct launch *)l, "input %s: %u sockets or devices were not copied", in->target, left);
    int tree = mount_tree(folder, in->directory ? "" : "file", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (tree < 0)
        return error_errno(err, tree, "cannot mount the copy of %s", in->target);
    *ret_show = in->directory ? TAKE_FD(folder) : fd_open_beneath(folder, "file", O_PATH, 0);
    return tree;
}

/* An ordinary user's overlay notes in user.* attributes of its upper layer that a folder replaces the original's. Where the
 * file system has none (tmpfs before Linux 6.6) the kernel mounts it all the same, and then fails whoever removes a folder
 * and makes it again. */
static int keeps_notes(int upper) {
    char path[40];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", upper);
    return getxattr(path, "user.overlay.opaque", NULL, 0) >= 0 || errno == ENODATA ? 0 : -errno;
}

/* Layers of an overlay: what hides excluded names, then the original. Without patterns and without an upper layer the
 * first holds nothing: the kernel wants two. */
static int layered(const struct launch *l, size_t i, int source, long owner, int *ret_show, struct error *err) {
    const struct plan_input *in = &l->plan.inputs[i];
    int lowers[2];
    size_t n = 0;
    _cleanup_fd_ int tree = owner >= 0 ? original(l, in, source, owner, err) : fcntl(source, F_DUPFD_CLOEXEC, 3);
    _cleanup_fd_ int mask = -1, up = -1, work = -1;
    if (tree < 0)
        return owner >= 0 ? tree : error_errno(err, -errno, "input %s", in->target);
    int parked = owner >= 0 && !mount_knows_detached() ? mount_park(tree) : 0;
    if (parked < 0)
        return error_errno(err, parked, "input %s cannot be made a layer", in->target);
    if (in->exclude || in->only || in->kind == PLAN_READ) {
        mask = space_folder(l->space, "mask", i, owner);
        int r = mask < 0 ? error_errno(err, mask, "cannot hide names in %s", in->target)
                         : mask_tree(in, tree, mask, owner, err);
        if (r < 0)
            return r;
        lowers[n++] = mask;
    }
    lowers[n++] = tree;
    if (in->kind == PLAN_OVERLAY) {
        up = space_folder(l->space, "up", i, owner);
        work = space_folder(l->space, "wk", i, owner);
        int r = up < 0 ? up : work < 0 ? work : mask_like(tree, up, owner);
        if (r < 0)
            return error_errno(err, r, "cannot make the upper layer of %s", in->target);
        if (owner < 0 && (r = keeps_notes(up)) < 0)
            return error_errno(err, r, "door overlay at %s: memory-backed files here keep no user attributes",
                               in->target);
    }
    int fd = mount_overlay(lowers, n, up, work, owner >= 0, err);
    if (fd < 0)
        return error_wrap(err, "input %s", in->target);
    *ret_show = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return fd;
}

int input_mount(const struct launch *l, size_t i, int source, long owner, int *ret_show, struct error *err) {
    const struct plan_input *in = &l->plan.inputs[i];
    if (in->kind == PLAN_COPY)
        return copied(l, i, source, owner, ret_show, err);
    /* A folder is never bound itself: connect(2) to a socket in it needs no write, so a read-only bind would hand the
     * worker every daemon that listens below. An overlay's socket is not the one that the daemon bound. (Landlock
     * can refuse it from ABI 9 on.) */
    if (in->directory)
        return layered(l, i, source, owner, ret_show, err);
    return original(l, in, source, owner, err);
}
