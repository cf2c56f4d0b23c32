/* mount.c: see mount.h. runs in: launcher (its set-up child) */
#include "jail/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/fd.h"
#include "base/linux_compat.h"

enum { LOWERS_MAX = 8 }; /* more than an input has */

bool mount_knows_detached(void) {
    struct utsname u;
    unsigned major, minor;
    return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 15));
}

int mount_park(int fd) {
    static const char *const places[] = {"/proc/tty", "/proc/fs", "/proc/irq"};
    int r = -ENOENT;
    for (size_t i = 0; r < 0 && i < ELEMENTS(places); i++) {
        _cleanup_fd_ int at = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        r = at < 0 ? -errno : mount_attach(fd, at);
    }
    return r;
}

/* What the kernel wrote about a failure into the file system context ("e overlay: ..."), for the message. */
static void kernel_words(int fs, char *to, size_t room) {
    ssize_t n = read(fs, to, room - 1);
    to[n > 0 ? n : 0] = 0;
    to[strcspn(to, "\n")] = 0;
}

static int finish(int fs, const char *type, uint64_t attributes, struct error *err) {
    char words[200];
    if (dw_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
        int code = -errno;
        kernel_words(fs, words, sizeof(words));
        return error_errno(err, code, "cannot make a %s file system%s%s", type, *words ? ": " : "", words);
    }
    int fd = dw_fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attributes);
    return fd < 0 ? error_errno(err, -errno, "cannot mount a %s file system", type) : fd;
}

static int set_option(int fs, const char *option) {
    char name[64];
    const char *equals = strchr(option, '=');
    if (!equals)
        return dw_fsconfig(fs, FSCONFIG_SET_FLAG, option, NULL, 0);
    snprintf(name, sizeof(name), "%.*s", (int)(equals - option), option);
    return dw_fsconfig(fs, FSCONFIG_SET_STRING, name, equals + 1, 0);
}

int mount_new(const char *type, const char *const *options, uint64_t attributes, struct error *err) {
    _cleanup_fd_ int fs = dw_fsopen(type, FSOPEN_CLOEXEC);
    if (fs < 0)
        return error_errno(err, -errno, "cannot open file system type %s", type);
    for (size_t i = 0; options && options[i]; i++)
        if (set_option(fs, options[i]) < 0)
            return error_errno(err, -errno, "%s option %s", type, options[i]);
    return finish(fs, type, attributes, err);
}

int mount_tmpfs(uint64_t bytes, uint64_t inodes, mode_t mode, struct error *err) {
    char size[48], nr[48], m[16];
    snprintf(size, sizeof(size), "size=%llu", (unsigned long long)bytes);
    snprintf(nr, sizeof(nr), "nr_inodes=%llu", (unsigned long long)inodes);
    snprintf(m, sizeof(m), "mode=%o", (unsigned)mode);
    const char *options[] = {m, bytes ? size : NULL, inodes ? nr : NULL, NULL};
    if (!bytes && inodes)
        options[1] = nr;
    return mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

int mount_tree(int dirfd, const char *path, uint64_t attributes) {
    _cleanup_fd_ int fd = dw_open_tree(
        dirfd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
    if (fd < 0)
        return -errno;
    struct mount_attr attr = {.attr_set = attributes,
                              .propagation = 1 << 18 /* MS_PRIVATE; its header and linux/mount.h exclude each other */};
    if (dw_mount_setattr(fd, AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
        return -errno;
    return TAKE_FD(fd);
}

int mount_idmap(int fd, int userns_fd) {
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd};
    return dw_mount_setattr(fd, AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0 ? -errno : 0;
}

int mount_attach(int fd, int target_fd) {
    return dw_move_mount(fd, target_fd) < 0 ? -errno : 0;
}

/* A layer by descriptor; kernels before 6.13 take only a path, for which /proc/self/fd serves. */
static int set_layer(int fs, const char *key, int fd) {
    char path[40];
    if (dw_fsconfig(fs, FSCONFIG_SET_FD, key, NULL, fd) == 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return dw_fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0) < 0 ? -errno : 0;
}

/* Lower layers one by one, or, for kernels before 6.8, which know only that, all in one text. */
static int set_lowers(int fs, const int *lowers, size_t n) {
    char text[LOWERS_MAX * 40] = "";
    size_t at = 0;
    if (mount_knows_detached() && n > 1) {
        int r = 0;
        for (size_t i = 0; r == 0 && i < n; i++)
            r = set_layer(fs, "lowerdir+", lowers[i]);
        return r;
    }
    if (n > LOWERS_MAX)
        return -E2BIG;
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s/proc/self/fd/%d", i ? ":" : "", lowers[i]);
    return dw_fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", text, 0) < 0 ? -errno : 0;
}

int mount_overlay(const int *lowers, size_t n_lowers, int upper, int work, bool trusted, struct error *err) {
    static const char *const trusted_options[] = {"redirect_dir=on", "index=on"};
    static const char *const user_options[] = {"userxattr"};
    _cleanup_fd_ int fs = dw_fsopen("overlay", FSOPEN_CLOEXEC);
    if (fs < 0)
        return error_errno(err, -errno, "cannot open file system type overlay");
    int r = set_lowers(fs, lowers, n_lowers);
    if (r < 0)
        return error_errno(err, r, "overlay lower layer");
    if (upper >= 0 && (set_layer(fs, "upperdir", upper) < 0 || set_layer(fs, "workdir", work) < 0))
        return error_errno(err, -errno, "overlay upper layer");
    const char *const *options = trusted ? trusted_options : user_options;
    size_t n_options = trusted ? (upper >= 0 ? ELEMENTS(trusted_options) : 0) : ELEMENTS(user_options);
    for (size_t i = 0; i < n_options; i++)
        if (set_option(fs, options[i]) < 0)
            return error_errno(err, -errno, "overlay option %s", options[i]);
    uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (upper < 0 ? MOUNT_ATTR_RDONLY : 0);
    return finish(fs, "overlay", attributes, err);
}
