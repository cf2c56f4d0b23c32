/* copy.c: see launch.h. runs in: launcher, and its set-up child (untrusted input: the tree of the input) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "launch/launch.h"

struct copy {
    const struct plan_input *in;
    long owner;
    unsigned left;
    struct error *err;
};

static int fail(struct copy *c, int code, const char *path) {
    char shown[256];
    const char *remedy = code == -ENOSPC
                             ? " (the step's space is full: raise limits.disk or limits.files, or use overlay)"
                         : code == -EACCES ? " (doorward's user may not read it: exclude it)"
                                           : "";
    return error_errno(c->err, code, "copy of %s: %s%s", c->in->target, str_safe(shown, sizeof(shown), path), remedy);
}

static int set_times(int dirfd, const char *name, const struct stat *st) {
    struct timespec times[2] = {st->st_atim, st->st_mtim};
    return utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int own(const struct copy *c, int dirfd, const char *name) {
    return c->owner >= 0 && fchownat(dirfd, name, (uid_t)c->owner, (gid_t)c->owner, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
                                                                                                             : 0;
}

/* Data only, so that a file with holes stays small. lseek(2), SEEK_DATA. */
static int copy_data(int from, int to, off_t size) {
    char chunk[65536];
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0)
            return errno == ENXIO ? 0 : -errno;
        off_t hole = lseek(from, data, SEEK_HOLE);
        if (hole < 0)
            return -errno;
        for (at = data; at < hole;) {
            size_t want = (size_t)(hole - at) < sizeof(chunk) ? (size_t)(hole - at) : sizeof(chunk);
            ssize_t n = pread(from, chunk, want, at);
            if (n < 0)
                return -errno;
            if (n == 0)
                return 0; /* it became shorter while we read */
            if (pwrite(to, chunk, (size_t)n, at) != n)
                return errno == 0 ? -EIO : -errno;
            at += n;
        }
    }
    return 0;
}

static int copy_file(struct copy *c, int from, int to_dir, const char *name, const struct stat *st) {
    _cleanup_fd_ int to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return -errno;
    int r = ftruncate(to, st->st_size) < 0 ? -errno : copy_data(from, to, st->st_size);
    if (r == 0)
        r = own(c, to_dir, name);
    if (r == 0 && fchmod(to, st->st_mode & 0777) < 0)
        r = -errno;
    return r < 0 ? r : set_times(to_dir, name, st);
}

static int copy_link(const struct copy *c, int from_dir, int to_dir, const char *name, const struct stat *st) {
    char text[PLAN_PATH_MAX + 1];
    ssize_t n = readlinkat(from_dir, name, text, sizeof(text) - 1);
    if (n < 0)
        return -errno;
    text[n] = 0;
    int r = symlinkat(text, to_dir, name) < 0 ? -errno : own(c, to_dir, name);
    return r < 0 ? r : set_times(to_dir, name, st);
}

static int copy_folder(struct copy *c, int from, int to, const char *path, int depth, bool within);

static int copy_below(struct copy *c, int from_dir, int to_dir, const char *name, const struct stat *st,
                      const char *path, int depth, bool within) {
    _cleanup_fd_ int from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 || mkdirat(to_dir, name, 0700) < 0)
        return fail(c, -errno, path);
    _cleanup_fd_ int to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = to < 0 ? fail(c, -errno, path) : copy_folder(c, from, to, path, depth, within);
    if (r < 0)
        return r;
    if ((r = own(c, to_dir, name)) < 0 || fchmod(to, st->st_mode & 01777) < 0 || (r = set_times(to_dir, name, st)) < 0)
        return fail(c, r < 0 ? r : -errno, path);
    return 0;
}

static int copy_entry(struct copy *c, int from_dir, int to_dir, const char *name, const char *path, int depth,
                      bool within) {
    struct stat st;
    if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fail(c, -errno, path);
    int shown = sight_decide(c->in, from_dir, name, path, S_ISDIR(st.st_mode), &within);
    if (shown <= 0)
        return shown < 0 ? fail(c, shown, path) : 0;
    if (S_ISDIR(st.st_mode))
        return copy_below(c, from_dir, to_dir, name, &st, path, depth, within);
    int r = 0;
    if (S_ISREG(st.st_mode)) {
        _cleanup_fd_ int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        r = from < 0 ? -errno : copy_file(c, from, to_dir, name, &st);
    } else if (S_ISLNK(st.st_mode)) {
        r = copy_link(c, from_dir, to_dir, name, &st);
    } else if (S_ISFIFO(st.st_mode)) {
        r = mkfifoat(to_dir, name, st.st_mode & 0777) < 0 ? -errno : own(c, to_dir, name);
    } else {
        c->left++;
    }
    return r < 0 ? fail(c, r, path) : 0;
}

static int copy_folder(struct copy *c, int from, int to, const char *path, int depth, bool within) {
    if (depth > SIGHT_DEPTH_MAX)
        return fail(c, -ELOOP, path);
    _cleanup_fd_ int again = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    if (!dir)
        return fail(c, -errno, path);
    again = -1;
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        char below[PLAN_PATH_MAX + 1];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "", e->d_name) >= (int)sizeof(below))
            r = fail(c, -ENAMETOOLONG, path);
        else
            r = copy_entry(c, dirfd(dir), to, e->d_name, below, depth + 1, within);
    }
    closedir(dir);
    return r;
}

int copy_tree(const struct plan_input *in, int from, int to, long owner, unsigned *ret_left, struct error *err) {
    struct copy c = {in, owner, 0, err};
    struct stat st;
    int r;
    if (fstat(from, &st) < 0)
        return fail(&c, -errno, "");
    if (S_ISDIR(st.st_mode)) {
        r = copy_folder(&c, from, to, "", 0, false);
        if (r == 0 && (fchmodat(to, ".", st.st_mode & 01777, 0) < 0 || set_times(to, ".", &st) < 0))
            r = fail(&c, -errno, "");
    } else {
        char self[40];
        snprintf(self, sizeof(self), "/proc/self/fd/%d", from); /* an O_PATH descriptor is opened for reading again */
        _cleanup_fd_ int file = open(self, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        r = file < 0 ? -errno : copy_file(&c, file, to, "file", &st);
        if (r < 0)
            r = fail(&c, r, "");
    }
    *ret_left = c.left;
    return r;
}
