/* blob.c: see blob.h. runs in: controller (untrusted input: bytes that are never interpreted) */
#include "export/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

#define INCOMING "blobs/incoming"

const char *blob_path(const char digest[DIGEST_HEX], unsigned mode, char to[BLOB_PATH_MAX]) {
    int n = snprintf(to, BLOB_PATH_MAX, "blobs/sha256/%.2s/%.62s", digest, digest + 2);
    if (mode != BLOB_MODE_PLAIN)
        snprintf(to + n, BLOB_PATH_MAX - (size_t)n, ".%03o", mode & 0777);
    return to;
}

static int make_folder(int dirfd, const char *path) {
    int fd = fd_mkdirs_beneath(dirfd, path, 0700);
    if (fd < 0)
        return fd;
    fd_close(fd);
    return 0;
}

static int sync_folder(int dirfd, const char *path) {
    _cleanup_fd_ int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* The folder of a blob. One that is new must reach the disk too: its entry, and that of the one above. */
static int make_target_folder(int state_fd, const char *path) {
    char folder[BLOB_PATH_MAX];
    struct stat st;
    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = 0;
    if (fstatat(state_fd, folder, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    int r = make_folder(state_fd, folder);
    if (r == 0)
        r = sync_folder(state_fd, "blobs/sha256");
    return r;
}

static bool is_there(int state_fd, const char *path, uint64_t size) {
    struct stat st;
    return fstatat(state_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size == size;
}

/* Gives the complete file its name. */
static int publish(int state_fd, int fd, const char *from, const struct blob *b) {
    char to[BLOB_PATH_MAX];
    blob_path(b->digest, b->mode, to);
    if (is_there(state_fd, to, b->size)) {
        unlinkat(state_fd, from, 0);
        return 0;
    }
    int r = make_target_folder(state_fd, to);
    if (r < 0)
        return r;
    if (fchmod(fd, b->mode) < 0 || fsync(fd) < 0 || renameat(state_fd, from, state_fd, to) < 0)
        return -errno;
    *strrchr(to, '/') = 0;
    return sync_folder(state_fd, to);
}

/* Opens the file that will become the blob; `name` is free, since runs have different names and store one at a time. */
static int open_incoming(int state_fd, const char *name) {
    int flags = O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, fd = openat(state_fd, name, flags, 0600);
    if (fd < 0 && errno == ENOENT) {
        int r = make_folder(state_fd, INCOMING);
        if (r < 0)
            return r;
        fd = openat(state_fd, name, flags, 0600);
    }
    return fd < 0 ? -errno : fd;
}

bool blob_have(int state_fd, int fd, uint64_t max, unsigned mode, struct blob *ret) {
    char path[BLOB_PATH_MAX];
    struct blob b = {.mode = mode & 0777};
    int r = digest_copy(fd, -1, max, b.digest, &b.size);
    lseek(fd, 0, SEEK_SET);
    if (r < 0 || !is_there(state_fd, blob_path(b.digest, b.mode, path), b.size))
        return false;
    *ret = b;
    return true;
}

int blob_store(int state_fd, const char run[ULID_TEXT], int fd, uint64_t max, unsigned mode, struct blob *ret,
               struct error *err) {
    char name[64];
    struct blob b = {.mode = mode & 0777};
    snprintf(name, sizeof(name), INCOMING "/%s", run);
    _cleanup_fd_ int to = open_incoming(state_fd, name);
    if (to < 0)
        return error_errno(err, to, "cannot make a file in " INCOMING " of the state folder");
    int r = digest_copy(fd, to, max, b.digest, &b.size);
    if (r == 0)
        r = publish(state_fd, to, name, &b);
    if (r < 0) {
        unlinkat(state_fd, name, 0);
        return r == -EFBIG ? error_set(err, r, "more than %llu bytes", (unsigned long long)max)
                           : error_errno(err, r, "cannot store in the state folder");
    }
    *ret = b;
    return 0;
}

void blob_sweep(int state_fd, const char run[ULID_TEXT]) {
    char name[64];
    snprintf(name, sizeof(name), INCOMING "/%s", run);
    unlinkat(state_fd, name, 0);
}
