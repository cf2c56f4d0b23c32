/* fd.c: see fd.h. runs in: all */
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/linux_compat.h"

int fd_close(int fd) {
    if (fd >= 0) {
        int saved = errno;
        close(fd);
        errno = saved;
    }
    return -1;
}

int fd_write_all(int fd, const void *bytes, size_t n) {
    const char *p = bytes;
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

ssize_t fd_read_all(int fd, void *bytes, size_t n) {
    char *p = bytes;
    size_t got = 0;
    while (got < n) {
        ssize_t r = read(fd, p + got, n - got);
        if (r < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        if (r == 0)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

int fd_read_file(int fd, size_t max, char **ret_bytes, size_t *ret_n, struct error *err) {
    size_t room = 4096, n = 0;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((uint64_t)st.st_size > max)
            return error_set(err, -EFBIG, "file has %lld bytes, at most %zu are read", (long long)st.st_size, max);
        room = (size_t)st.st_size + 1;
    }
    _cleanup_free_ char *bytes = malloc(room + 1);
    while (bytes) {
        ssize_t r = fd_read_all(fd, bytes + n, room - n);
        if (r < 0)
            return error_errno(err, (int)r, "cannot read");
        n += (size_t)r;
        if (n > max)
            return error_set(err, -EFBIG, "file is larger than %zu bytes", max);
        if (n < room)
            break;
        room *= 2;
        char *more = realloc(bytes, room + 1);
        if (!more)
            return error_set(err, -ENOMEM, "out of memory");
        bytes = more;
    }
    if (!bytes)
        return error_set(err, -ENOMEM, "out of memory");
    bytes[n] = 0;
    *ret_bytes = TAKE_PTR(bytes);
    if (ret_n)
        *ret_n = n;
    return 0;
}

/* A link where a folder was asked for is ELOOP, as openat2 says it. */
static int refused(int dirfd, const char *name, int code) {
    struct stat st;
    bool link = code == -ENOTDIR && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
    return link ? -ELOOP : code;
}

/* Where openat2 is missing: each component opened on its own, ".." and links refused. */
static int open_beneath_slowly(int dirfd, const char *path, int flags, mode_t mode) {
    _cleanup_fd_ int at = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
    if (at < 0)
        return -errno;
    char name[NAME_MAX + 1];
    for (;;) {
        path += strspn(path, "/");
        size_t n = strcspn(path, "/");
        if (n > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, n ? path : ".", n ? n : 1);
        name[n ? n : 1] = 0;
        if (!strcmp(name, ".."))
            return -EXDEV;
        path += n;
        bool last = path[strspn(path, "/")] == 0;
        int next =
            openat(at, name, last ? flags | O_NOFOLLOW | O_CLOEXEC : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                   last ? mode : 0);
        if (next < 0)
            return refused(at, name, -errno);
        fd_close(at);
        at = next;
        if (last)
            break;
    }
    struct stat st; /* O_PATH|O_NOFOLLOW opens the link itself, which openat2 would have refused */
    if ((flags & O_PATH) && fstat(at, &st) == 0 && S_ISLNK(st.st_mode) && !(flags & O_NOFOLLOW))
        return -ELOOP;
    return TAKE_FD(at);
}

int fd_open_beneath(int dirfd, const char *path, int flags, mode_t mode) {
    path += strspn(path, "/");
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC),
        .mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int fd = dw_openat2(dirfd, *path ? path : ".", &how);
    if (fd >= 0)
        return fd;
    return errno == ENOSYS ? open_beneath_slowly(dirfd, path, flags, mode) : -errno;
}

int fd_mkdirs_beneath(int dirfd, const char *path, mode_t mode) {
    _cleanup_fd_ int at = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
    if (at < 0)
        return -errno;
    char name[NAME_MAX + 1];
    for (;;) {
        path += strspn(path, "/");
        size_t n = strcspn(path, "/");
        if (n == 0)
            return TAKE_FD(at);
        if (n > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, path, n);
        name[n] = 0;
        path += n;
        if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
            return -errno;
        int next = fd_open_beneath(at, name, O_PATH | O_DIRECTORY, 0);
        if (next < 0)
            return next;
        fd_close(at);
        at = next;
    }
}

int fd_sealed(const char *name, const void *bytes, size_t n) {
    _cleanup_fd_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    int r = fd_write_all(fd, bytes, n);
    if (r < 0)
        return r;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return -errno;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static bool listed(int fd, const int *keep, size_t n_keep) {
    for (size_t i = 0; i < n_keep; i++)
        if (keep[i] == fd)
            return true;
    return false;
}

int fd_close_listed(int folder, int from, const int *keep, size_t n_keep) {
    DIR *dir = folder < 0 ? NULL : fdopendir(folder);
    if (!dir) {
        fd_close(folder);
        return -ENOSYS;
    }
    errno = 0;
    for (struct dirent *e; (e = readdir(dir)); errno = 0) {
        char *end;
        long fd = strtol(e->d_name, &end, 10);
        if (*end || end == e->d_name || fd < from || fd == dirfd(dir) || listed((int)fd, keep, n_keep))
            continue;
        close((int)fd);
    }
    bool cut_short = errno != 0; /* a list with an end that is not its end */
    closedir(dir);
    return cut_short ? -ENOSYS : 0;
}

static int close_from_proc(int from, const int *keep, size_t n_keep) {
    return fd_close_listed(open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), from, keep, n_keep);
}

int fd_close_from(int from, const int *keep, size_t n_keep) {
    unsigned first = (unsigned)from;
    for (size_t i = 0; i <= n_keep; i++) {
        unsigned last = i < n_keep ? (unsigned)keep[i] - 1 : UINT_MAX;
        if (i < n_keep && keep[i] < from)
            continue;
        if ((i == n_keep || keep[i] > (int)first) && dw_close_range(first, last, 0) < 0)
            return errno == ENOSYS ? close_from_proc(from, keep, n_keep) : -errno;
        if (i < n_keep)
            first = (unsigned)keep[i] + 1;
    }
    return 0;
}
