/* space.c: the one space that everything writable lives in.
 *
 * A tmpfs limited in bytes and inodes: upper layers, copies, /tmp, /home/agent, /out and /dev/shm are folders of it, so
 * one budget covers them all. It is held by descriptor outside: what it holds can be collected after every process of
 * the step is gone, and is freed when the last descriptor closes.
 * runs in: launcher */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/mount.h"
#include "launch/launch.h"

/* The first four stand in every space; the others where an input needs them. */
static const struct {
    const char *name;
    mode_t mode;
    bool always;
} folders[] = {
    {"tmp", 01777, true}, {"home", 0755, true}, {"out", 0755, true},   {"shm", 01777, true},
    {"up", 0755, false},  {"wk", 0755, false},  {"mask", 0755, false}, {"copy", 0755, false},
};

/* Inodes that are ours: the folders and the root, six for each input (layers and overlay's own work folders). */
static uint64_t own_inodes(const struct plan *p) {
    return ELEMENTS(folders) + 1 + 6 * p->n_inputs;
}

/* As the owner, so that nothing has to be handed over afterwards: setfsuid(2) concerns file access alone. */
static int make_folders(int fd, const struct plan *p, long owner) {
    mode_t mask = umask(0);
    int code = 0;
    if (owner >= 0) {
        if (fchownat(fd, "", (uid_t)owner, (gid_t)owner, AT_EMPTY_PATH) < 0)
            code = -errno;
        setfsgid((gid_t)owner);
        setfsuid((uid_t)owner);
    }
    for (size_t i = 0; i < ELEMENTS(folders) && code == 0; i++)
        if ((folders[i].always || p->n_inputs) && mkdirat(fd, folders[i].name, folders[i].mode) < 0)
            code = -errno;
    if (owner >= 0) {
        setfsuid(geteuid());
        setfsgid(getegid());
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) /* a change of ids undid it */
            code = -errno;
    }
    umask(mask);
    return code;
}

int space_make(const struct plan *p, long owner, int *ret, struct error *err) {
    uint64_t disk = p->lab_limit_off[PLAN_DISK] ? 0 : p->limits[PLAN_DISK];
    uint64_t files = p->lab_limit_off[PLAN_FILES] ? 0 : p->limits[PLAN_FILES] + own_inodes(p);
    _cleanup_fd_ int fd = mount_tmpfs(disk, files, 0755, err);
    if (fd < 0)
        return error_wrap(err, "wall mounts: space for what the step writes");
    int r = make_folders(fd, p, owner);
    if (r < 0)
        return error_errno(err, r, "cannot make the folders of the step's space (limits.files %llu)",
                           (unsigned long long)p->limits[PLAN_FILES]);
    *ret = TAKE_FD(fd);
    return 0;
}

static int make_folder(int dirfd, const char *name, mode_t mode, long owner) {
    if (mkdirat(dirfd, name, 0700) < 0)
        return -errno;
    if (owner >= 0 && fchownat(dirfd, name, (uid_t)owner, (gid_t)owner, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return fchmodat(dirfd, name, mode, 0) < 0 ? -errno : 0;
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
