/* prepare.c: what is done before anything is cloned.
 *
 * Should: open what the plan names, and as host root make those mounts that only host root can (id maps, trusted
 * overlays, device nodes). Must not: run anything, write outside the space, follow a link. Privileged, and safe because
 * each source is opened by its canonical path without following links and used by descriptor from then on. runs in:
 * launcher (untrusted input: trees of inputs; holds: doorward's own rights) */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/linux_compat.h"
#include "base/str.h"
#include "jail/mount.h"
#include "launch/launch.h"

/* doorward-init lies beside this program. */
static int open_program(struct error *err) {
    static const char name[] = "/doorward-init";
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(name));
    if (n < 0)
        return error_errno(err, -errno, "cannot find doorward-init: /proc/self/exe");
    path[n] = 0;
    memcpy(strrchr(path, '/'), name, sizeof(name));
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? error_errno(err, -errno, "%s, a part of doorward: install it again", path) : fd;
}

static const struct {
    const char *name;
    unsigned major, minor;
} nodes[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

/* A /dev of its own with six nodes, in one mount. Without `nodev`, which would make them useless; only these can be
 * there, since nothing inside can make a node. */
static int make_devices(void) {
    static const char *const options[] = {"mode=755", "size=64k", "nr_inodes=64", NULL};
    _cleanup_fd_ int fd = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, NULL);
    mode_t mask = umask(0);
    bool made = fd >= 0;
    for (size_t i = 0; made && i < ELEMENTS(nodes); i++)
        made = mknodat(fd, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) == 0;
    made = made && root_furnish_devices(fd) == 0;
    umask(mask);
    return made ? TAKE_FD(fd) : -1; /* a container without CAP_MKNOD: the set-up child binds the host's nodes instead */
}

static int prepare_inputs(struct launch *l, long owner, struct error *err) {
    for (size_t i = 0; i < l->plan.n_inputs; i++) {
        _cleanup_fd_ int source = input_open(&l->plan.inputs[i], err);
        if (source < 0)
            return source;
        l->trees[i] = input_mount(l, i, source, owner, &l->shows[i], err);
        if (l->trees[i] < 0)
            return l->trees[i];
    }
    return 0;
}

/* Octal escapes of /proc/PID/mountinfo (proc(5)), in place. */
static void unescape(char *s) {
    char *to = s;
    for (; *s; s++) {
        unsigned c;
        if (*s == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
            *to++ = (char)c;
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = 0;
}

/* A folder's own file system is shown, not what is mounted below it: say so, since an empty folder looks like nothing. */
static void note_mounts_below(struct launch *l) {
    char line[2 * PLAN_PATH_MAX], at[sizeof(line)], shown[256];
    bool folders = false;
    for (size_t i = 0; i < l->plan.n_inputs; i++)
        folders = folders || l->plan.inputs[i].directory;
    FILE *f = folders ? fopen("/proc/self/mountinfo", "re") : NULL;
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%*s %*s %*s %*s %8189s", at) != 1)
            continue;
        unescape(at);
        for (size_t i = 0; i < l->plan.n_inputs; i++) {
            const struct plan_input *in = &l->plan.inputs[i];
            size_t n = strlen(in->source);
            if (in->directory && in->kind != PLAN_COPY && !strncmp(at, in->source, n) && at[n] == '/')
                launch_note(l, "input %s: what is mounted at %s is not shown; make it an input of its own", in->target,
                            str_safe(shown, sizeof(shown), at));
        }
    }
    if (f)
        fclose(f);
}

/* The worker's pipes become its own: /dev/stdout is the pipe opened anew by name, which asks who owns it. The controller
 * makes them for this step; anything else (/dev/null) stays whose it is. */
static int own_streams(const struct launch *l, long owner, struct error *err) {
    for (size_t i = 0; i < ELEMENTS(l->std); i++) {
        struct stat st;
        if (fstat(l->std[i], &st) < 0 || (S_ISFIFO(st.st_mode) && fchown(l->std[i], (uid_t)owner, (gid_t)owner) < 0))
            return errno == EINVAL ? sandbox_lacks_ids(l, -EINVAL, err)
                                   : error_errno(err, -errno, "cannot hand the standard streams over to the worker");
    }
    return 0;
}

int launch_find_program(struct launch *l, struct error *err) {
    l->program = open_program(err);
    return l->program < 0 ? l->program : 0;
}

/* On kernels where what is to be cloned or layered must be attached somewhere: a mount namespace of the launcher's own, for as
 * long as it prepares; the host's shows nothing of it. *ret_home is the way back. */
static int enter_bench(struct launch *l, int *ret_home, struct error *err) {
    _cleanup_fd_ int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (home < 0 || unshare(CLONE_NEWNS) < 0 ||
        syscall(SYS_mount, NULL, "/", NULL, 0x44000 /* MS_REC | MS_PRIVATE */, NULL) < 0)
        return error_errno(err, -errno, "wall mounts: cannot make a mount namespace to prepare in");
    int r = mount_park(l->space);
    if (r == 0)
        r = l->space_inside = mount_tree(l->space, "", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (r < 0)
        return error_errno(err, r, "wall mounts: cannot attach the step's space");
    *ret_home = TAKE_FD(home);
    return 0;
}

static int leave_bench(int home, struct error *err) {
    return home >= 0 && setns(home, CLONE_NEWNS) < 0
               ? error_errno(err, -errno, "wall mounts: cannot go back to the host's mount namespace")
               : 0;
}

int launch_prepare(struct launch *l, struct error *err) {
    l->trees = malloc(sizeof(int) * (l->plan.n_inputs + 1));
    l->shows = malloc(sizeof(int) * (l->plan.n_inputs + 1));
    if (!l->trees || !l->shows)
        return error_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < l->plan.n_inputs; i++)
        l->trees[i] = l->shows[i] = -1;
    note_mounts_below(l);
    if (!l->root)
        return 0;
    long owner = wall_stands(l, PLAN_WALL_USERNS) ? (long)(l->uid_base + l->id) : 0;
    l->program_tree = mount_tree(l->program, "", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    l->devices = make_devices();
    int r = own_streams(l, owner, err);
    if (r == 0)
        r = space_make(&l->plan, owner, &l->space, err);
    _cleanup_fd_ int home = -1;
    if (r == 0 && !mount_knows_detached())
        r = enter_bench(l, &home, err);
    if (r == 0)
        r = prepare_inputs(l, owner, err);
    return r < 0 ? r : leave_bench(home, err);
}
