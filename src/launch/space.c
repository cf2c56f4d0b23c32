/* space.c: the one space that everything writable lives in.
 *
 * A tmpfs limited in bytes and inodes: upper layers, copies, /tmp, /home/agent, /out and /dev/shm are folders of it, so
 * one budget covers them all. It is held by descriptor outside: what it holds can be collected after every process of
 * the step is gone, and is freed when the last descriptor closes.
 * runs in: launcher */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/mount.h"
#include "launch/launch.h"

static const struct {
    const char *name;
    mode_t mode;
} folders[] = {{"tmp", 01777}, {"home", 0755}, {"out", 0755},  {"shm", 01777},
               {"up", 0755},   {"wk", 0755},   {"mask", 0755}, {"copy", 0755}};

/* Inodes that are ours: the folders and the root, four for each input (layers and overlay's own work folders). */
static uint64_t own_inodes(const struct plan *p) {
    return ELEMENTS(folders) + 1 + 6 * p->n_inputs;
}

static int make_folder(int dirfd, const char *name, mode_t mode, long owner) {
    if (mkdirat(dirfd, name, 0700) < 0)
        return -errno;
    if (owner >= 0 && fchownat(dirfd, name, (uid_t)owner, (gid_t)owner, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return fchmodat(dirfd, name, mode, 0) < 0 ? -errno : 0;
}

int space_make(const struct plan *p, long owner, int *ret, struct error *err) {
    uint64_t disk = p->lab_limit_off[PLAN_DISK] ? 0 : p->limits[PLAN_DISK];
    uint64_t files = p->lab_limit_off[PLAN_FILES] ? 0 : p->limits[PLAN_FILES] + own_inodes(p);
    _cleanup_fd_ int fd = mount_tmpfs(disk, files, 0755, err);
    if (fd < 0)
        return error_wrap(err, "space for what the step writes");
    for (size_t i = 0; i < ELEMENTS(folders); i++) {
        int r = make_folder(fd, folders[i].name, folders[i].mode, owner);
        if (r < 0)
            return error_errno(err, r, "cannot make /%s in the step's space (limits.files %llu)", folders[i].name,
                               (unsigned long long)p->limits[PLAN_FILES]);
    }
    *ret = TAKE_FD(fd);
    return 0;
}

int space_folder(int space, const char *kind, size_t input, long owner) {
    char path[48];
    snprintf(path, sizeof(path), "%s/%zu", kind, input);
    int r = make_folder(space, path, 0755, owner);
    return r < 0 ? r : fd_open_beneath(space, path, O_PATH | O_DIRECTORY, 0);
}

void space_figures(int space, struct launch_end *end) {
    struct statfs s;
    if (space < 0 || fstatfs(space, &s) < 0)
        return;
    uint64_t block = (uint64_t)s.f_bsize, used = (s.f_blocks - s.f_bfree) * block, inodes = s.f_files - s.f_ffree;
    if (used > end->disk_peak)
        end->disk_peak = used;
    if (inodes > end->files_peak)
        end->files_peak = inodes;
    if (s.f_blocks && s.f_bfree == 0)
        end->disk_full |= 1;
    if (s.f_files && s.f_ffree == 0)
        end->disk_full |= 2;
}
