/* mask.c: a layer of whiteouts for what a policy hides in an input.
 *
 * The layer lies between the worker's changes and the original, so a hidden name is not there, cannot come back by
 * removing something, and may be made anew by the worker. A whiteout is a character device 0,0 (overlayfs.rst), which
 * an ordinary user may make. Folders on the way to one carry the original's mode and time, because an overlay shows the
 * attributes of the topmost layer.
 * runs in: launcher, and its set-up child (untrusted input: file names of the input) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "launch/launch.h"

struct mask {
    const struct plan_input *in;
    int to;
    long owner;
    struct error *err;
};

static int fail(struct mask *m, int code, const char *path) {
    char shown[256];
    return error_errno(m->err, code, "hiding names in %s: %s%s", m->in->target, str_safe(shown, sizeof(shown), path),
                       code == -ENOSPC ? " (raise limits.files, or hide whole folders)" : "");
}

/* Folder `path` ("." for the top) of the layer, as it is in the original. */
static int like(int from, int to, const char *path, long owner) {
    struct stat st;
    if (fstatat(from, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    if ((owner >= 0 && fchownat(to, path, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0) ||
        fchmodat(to, path, st.st_mode & 01777, 0) < 0 || utimensat(to, path, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

int mask_like(int from, int to, long owner) {
    return like(from, to, ".", owner);
}

/* The whiteout for `path`, with the folders above it. */
static int hide(struct mask *m, int from_root, const char *path) {
    char above[PLAN_PATH_MAX + 1];
    snprintf(above, sizeof(above), "%s", path);
    char *slash = strrchr(above, '/');
    if (slash) { /* else it lies at the top, which mask_tree makes like the original at the end */
        *slash = 0;
        int fd = fd_mkdirs_beneath(m->to, above, 0700);
        if (fd < 0)
            return fd;
        fd_close(fd);
    }
    if (mknodat(m->to, path, S_IFCHR, makedev(0, 0)) < 0)
        return -errno;
    while (slash) { /* after the whiteout, which changed the folder's time */
        int r = like(from_root, m->to, above, m->owner);
        if (r < 0)
            return r;
        slash = strrchr(above, '/');
        if (slash)
            *slash = 0;
    }
    return 0;
}

static int walk(struct mask *m, int from_root, const char *path, int depth, bool within) {
    if (depth > SIGHT_DEPTH_MAX)
        return fail(m, -ELOOP, path);
    int fd = fd_open_beneath(from_root, path, O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int code = fd < 0 ? fd : -errno;
        fd_close(fd);
        if (code == -EACCES && *path) /* what lies in it could be reached by name: there is no telling what is hidden */
            code = hide(m, from_root, path);
        return code < 0 ? fail(m, code, path) : 0;
    }
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        char below[PLAN_PATH_MAX + 1];
        bool in_only = within, folder = sight_is_folder(fd, e);
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "", e->d_name) >= (int)sizeof(below)) {
            r = fail(m, -ENAMETOOLONG, path);
            break;
        }
        int shown = sight_decide(m->in, fd, e->d_name, below, folder, &in_only);
        if (shown < 0)
            r = fail(m, shown, below);
        else if (!shown && (r = hide(m, from_root, below)) < 0)
            r = fail(m, r, below);
        else if (shown && folder)
            r = walk(m, from_root, below, depth + 1, in_only);
    }
    closedir(dir);
    return r;
}

int mask_tree(const struct plan_input *in, int from, int to, long owner, struct error *err) {
    struct mask m = {in, to, owner, err};
    int r = in->exclude || in->only ? walk(&m, from, "", 0, false) : 0;
    if (r == 0 && (r = mask_like(from, to, owner)) < 0)
        fail(&m, r, "");
    return r;
}
