/* root.c: the new root.
 *
 * A small tmpfs, read-only once it stands: /usr and what it links from the host (read-only), a closed list of /etc,
 * made-up identity files, a minimal /dev, the step's space at /tmp, /home/agent, /out and /dev/shm, and the inputs.
 * Every target is opened beneath the new root without following links and mounted by descriptor (CVE-2021-30465,
 * CVE-2025-31133).
 * runs in: launcher's set-up child (untrusted input: trees of inputs, where targets may lie; holds:
 * its user namespace) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/linux_compat.h"
#include "base/str.h"
#include "jail/mount.h"
#include "launch/launch.h"

#define RDONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* The closed list of what comes from the host, read-only. A name the host lacks is left out; a link on the host becomes
 * the same link inside. */
static const char *const host_parts[] = {
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "etc/alternatives",
    "etc/ssl/certs",
    "etc/ssl/openssl.cnf",
    "etc/ld.so.cache",
    "etc/localtime",
};

static const char *const device_parts[] = {"dev/null", "dev/zero", "dev/full", "dev/random", "dev/urandom", "dev/tty"};

static const struct {
    const char *path;
    mode_t mode;
} folders[] = {
    {"etc", 0755},  {"etc/ssl", 0755},    {"proc", 0555}, {"sys", 0555}, {"dev", 0755},          {"tmp", 01777},
    {"home", 0755}, {"home/agent", 0755}, {"out", 0755},  {"run", 0755}, {"run/doorward", 0755}, {"var", 0755},
};

static const struct {
    const char *path, *text;
} links[] = {
    {"var/tmp", "../tmp"},
    {"var/run", "../run"},
    {"dev/fd", "/proc/self/fd"},
    {"dev/stdin", "/proc/self/fd/0"},
    {"dev/stdout", "/proc/self/fd/1"},
    {"dev/stderr", "/proc/self/fd/2"},
    {"dev/ptmx", "pts/ptmx"},
    {"etc/mtab", "/proc/mounts"},
};

#define PASSWD_REST "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
static const struct {
    const char *path, *text;
} files[] = {
    {"etc/passwd", "root:x:0:0:root:/home/agent:/bin/sh\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n" PASSWD_REST},
    {"etc/group", "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n"},
    {"etc/hosts", "127.0.0.1 localhost doorward\n::1 localhost\n"},
    {"etc/resolv.conf", ""}, /* no network door in this step: a look-up fails at once instead of waiting */
    {"etc/nsswitch.conf",
     "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\nservices: files\nprotocols: files\n"},
};

static const struct {
    const char *folder, *target; /* folder in the space */
} writable[] = {{"tmp", "tmp"}, {"home", "home/agent"}, {"out", "out"}, {"shm", "dev/shm"}};

static struct root_part *add_part(struct root *r, const char *target) {
    if (r->n_parts == ROOT_PARTS_MAX)
        return NULL;
    struct root_part *p = &r->parts[r->n_parts++];
    p->tree = -1;
    p->link[0] = 0;
    snprintf(p->target, sizeof(p->target), "%s", target);
    return p;
}

/* One entry of the closed list: a link will be made again as a link, anything else is bound. What the host lacks or hides is
 * left out. */
static int open_part(struct root *r, const char *name, uint64_t attributes) {
    char path[80], text[sizeof(r->parts[0].link)];
    snprintf(path, sizeof(path), "/%s", name);
    ssize_t n = readlink(path, text, sizeof(text));
    if (n == (ssize_t)sizeof(text))
        return -ENAMETOOLONG;
    int tree = n > 0 ? -1 : mount_tree(AT_FDCWD, path, attributes);
    if (n <= 0 && tree < 0)
        return tree == -ENOENT || tree == -EACCES ? 0 : tree;
    struct root_part *p = add_part(r, name);
    if (!p) {
        fd_close(tree);
        return -E2BIG;
    }
    p->tree = tree;
    if (n > 0) {
        memcpy(p->link, text, (size_t)n);
        p->link[n] = 0;
    }
    return 0;
}

static int make_links(int dirfd, bool devices) {
    for (size_t i = 0; i < ELEMENTS(links); i++)
        if (devices == !strncmp(links[i].path, "dev/", 4) &&
            symlinkat(links[i].text, dirfd, links[i].path + (devices ? 4 : 0)) < 0)
            return -errno;
    return 0;
}

static int make_skeleton(const struct root *r) {
    for (size_t i = 0; i < ELEMENTS(folders); i++)
        if (mkdirat(r->fd, folders[i].path, folders[i].mode) < 0)
            return -errno;
    for (size_t i = 0; i < ELEMENTS(files); i++) {
        _cleanup_fd_ int fd = openat(r->fd, files[i].path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        int code = fd < 0 ? -errno : fd_write_all(fd, files[i].text, strlen(files[i].text));
        if (code < 0)
            return code;
    }
    return make_links(r->fd, false);
}

int root_furnish_devices(int devices) {
    int code = make_links(devices, true);
    return code < 0 ? code : mkdirat(devices, "pts", 0755) < 0 || mkdirat(devices, "shm", 01777) < 0 ? -errno : 0;
}

int root_open_parts(struct root *r, struct error *err) {
    for (size_t i = 0; i < ELEMENTS(host_parts); i++) {
        int code = open_part(r, host_parts[i], RDONLY);
        if (code < 0)
            return error_errno(err, code, "cannot take /%s into the sandbox", host_parts[i]);
    }
    return 0;
}

static int make_part_links(const struct root *r) {
    for (size_t i = 0; i < r->n_parts; i++)
        if (r->parts[i].tree < 0 && symlinkat(r->parts[i].link, r->fd, r->parts[i].target) < 0)
            return -errno;
    return 0;
}

/* Read-only as a whole: no setting of the kernel, no sysrq, whoever owns the file inside. In the host's pid namespace (lab)
 * no new one may be made, so it is the host's. */
static int make_proc(const struct launch *l, struct error *err) {
    bool own = wall_stands(l, PLAN_WALL_PIDS);
    int proc = own ? mount_new("proc", NULL, RDONLY | MOUNT_ATTR_NOEXEC, err)
                   : mount_tree(AT_FDCWD, "/proc", RDONLY | MOUNT_ATTR_NOEXEC);
    if (own && proc < 0)
        return error_wrap(err, "wall pids");
    return proc < 0 && !own ? error_errno(err, proc, "cannot mount /proc in the sandbox") : proc;
}

int root_make(const struct launch *l, struct root *r, struct error *err) {
    static const char *const options[] = {"mode=755", "size=256k", "nr_inodes=16384", NULL};
    static const char *const pts[] = {"newinstance", "ptmxmode=0666", "mode=0600", NULL};
    r->fd = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    if (r->fd < 0)
        return r->fd;
    int code = make_skeleton(r);
    if (code == 0)
        code = make_part_links(r);
    if (code < 0)
        return error_errno(err, code, "cannot make the sandbox's root");
    r->terminals = mount_new("devpts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
    if (r->terminals < 0)
        return r->terminals;
    r->proc = make_proc(l, err);
    return r->proc < 0 ? r->proc : 0;
}

int root_open_devices(struct root *r, struct error *err) {
    _cleanup_fd_ int dev = fd_open_beneath(r->fd, "dev", O_PATH | O_DIRECTORY, 0);
    int code = dev < 0 ? dev : root_furnish_devices(dev);
    for (size_t i = 0; code == 0 && i < ELEMENTS(device_parts); i++)
        code = open_part(r, device_parts[i], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    return code < 0 ? error_errno(err, code, "cannot make /dev in the sandbox") : 0;
}

/* The mount point beneath the root: made where it is missing, never through a link. An O_PATH descriptor or -errno. */
static int open_target(int root, const char *path, bool directory) {
    char above[PLAN_PATH_MAX + 1];
    path += strspn(path, "/");
    int fd = fd_open_beneath(root, path, O_PATH | (directory ? O_DIRECTORY : 0), 0);
    if (fd != -ENOENT)
        return fd;
    if (directory)
        return fd_mkdirs_beneath(root, path, 0755);
    snprintf(above, sizeof(above), "%s", path);
    char *slash = strrchr(above, '/');
    _cleanup_fd_ int parent = -1;
    if (slash) {
        *slash = 0;
        parent = fd_mkdirs_beneath(root, above, 0755);
        if (parent < 0)
            return parent;
    }
    int at = slash ? parent : root;
    const char *name = slash ? path + (slash + 1 - above) : path;
    _cleanup_fd_ int made = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return made < 0 ? -errno : fd_open_beneath(at, name, O_PATH, 0);
}

static int attach_at(int root, int tree, const char *path, bool directory) {
    _cleanup_fd_ int target = open_target(root, path, directory);
    return target < 0 ? target : mount_attach(tree, target);
}

/* On a folder or file of the skeleton, by its name: nothing but our own code has put anything there yet, so there is no link
 * to follow, and a descriptor for each would cost more than the mount. Inputs come after this. */
static int attach_skeleton(const struct root *r, int tree, const char *path) {
    if (dw_move_mount_at(tree, r->fd, path) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    struct stat st;
    return fstat(tree, &st) < 0 ? -errno
                                : attach_at(r->fd, tree, path, S_ISDIR(st.st_mode)); /* made where it is missing */
}

static bool is_directory(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static int attach_parts(struct root *r, struct error *err) {
    for (size_t i = 0; i < r->n_parts; i++) {
        struct root_part *p = &r->parts[i];
        if (p->tree < 0)
            continue;
        int code = attach_skeleton(r, p->tree, p->target);
        p->tree = fd_close(p->tree);
        if (code < 0)
            return error_errno(err, code, "cannot mount /%s in the sandbox", p->target);
    }
    return 0;
}

static int attach_devices(const struct launch *l, struct root *r, struct error *err) {
    int code = l->devices < 0 ? 0 : attach_skeleton(r, l->devices, "dev");
    if (code == 0)
        code = attach_skeleton(r, r->terminals, "dev/pts");
    r->terminals = fd_close(r->terminals);
    return code < 0 ? error_errno(err, code, "cannot make /dev in the sandbox") : 0;
}

static int attach_space(const struct launch *l, const struct root *r, struct error *err) {
    for (size_t i = 0; i < ELEMENTS(writable); i++) {
        _cleanup_fd_ int tree = mount_tree(l->space, writable[i].folder, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
        int code = tree < 0 ? tree : attach_skeleton(r, tree, writable[i].target);
        if (code < 0)
            return error_errno(err, code, "cannot mount the step's space at /%s", writable[i].target);
    }
    return 0;
}

static int refuse_target(const struct plan_input *in, int code, struct error *err) {
    const char *why = code == -ELOOP
                          ? " (a link lies on the way: a target is never reached through one; name the place itself)"
                      : code == -EROFS ? " (it lies in a read-only input that has no such name: choose another target)"
                      : code == -ENOTDIR ? " (what lies there is of another type: choose another target)"
                                         : "";
    char shown[256];
    return error_errno(err, code, "input cannot be placed at %s%s", str_safe(shown, sizeof(shown), in->target), why);
}

static int attach_inputs(struct launch *l, const struct root *r, struct error *err) {
    for (size_t i = 0; i < l->plan.n_inputs; i++) {
        const struct plan_input *in = &l->plan.inputs[i];
        int code = attach_at(r->fd, l->trees[i], in->target, in->directory);
        if (code < 0)
            return refuse_target(in, code, err);
        l->trees[i] = fd_close(l->trees[i]);
    }
    return 0;
}

int root_build(struct launch *l, struct root *r, struct error *err) {
    /* Any folder of the old root will do to hang the new one on; /usr is there wherever programs are. Everything of the
     * old root that is needed has been opened before this hides it. */
    _cleanup_fd_ int at = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int code = at < 0 ? -errno : mount_attach(r->fd, at);
    if (code < 0)
        return error_errno(err, code, "cannot attach the sandbox's root");
    if ((code = attach_parts(r, err)) < 0 || (code = attach_devices(l, r, err)) < 0 ||
        (code = attach_space(l, r, err)) < 0)
        return code;
    return attach_inputs(l, r, err);
}

/* What /proc shows of the whole host to everybody; a name this kernel lacks is no error. */
static const char *const masked[] = {"keys",       "key-users",   "kcore",         "latency_stats",
                                     "timer_list", "sched_debug", "sysrq-trigger", "interrupts",
                                     "acpi",       "asound",      "scsi"};

static int mask(const struct root *r, const char *name) {
    static const char *const options[] = {"mode=555", "size=4k", "nr_inodes=2", NULL};
    char path[48];
    snprintf(path, sizeof(path), "proc/%s", name);
    _cleanup_fd_ int target = fd_open_beneath(r->fd, path, O_PATH, 0);
    if (target < 0)
        return target == -ENOENT ? 0 : target;
    _cleanup_fd_ int cover = is_directory(target)
                                 ? mount_new("tmpfs", options, RDONLY, NULL)
                                 : mount_tree(r->fd, "dev/null", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID);
    return cover < 0 ? cover : mount_attach(cover, target);
}

int root_attach_proc(struct root *r, struct error *err) {
    int code = attach_skeleton(r, r->proc, "proc");
    r->proc = fd_close(r->proc);
    if (code < 0)
        return error_errno(err, code, "cannot mount /proc in the sandbox");
    for (size_t i = 0; i < ELEMENTS(masked); i++)
        if ((code = mask(r, masked[i])) < 0)
            return error_errno(err, code, "cannot mask /proc/%s", masked[i]);
    return 0;
}

int root_enter(const struct root *r, struct error *err) {
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    if (dw_mount_setattr(r->fd, AT_EMPTY_PATH, &attr) < 0)
        return error_errno(err, -errno, "cannot make the sandbox's root read-only");
    /* pivot_root(2), "pivot_root(".", ".")": the old root lies on top of the new one for a moment and is let go. */
    if (fchdir(r->fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
        syscall(SYS_umount2, ".", 2 /* MNT_DETACH */) < 0 || chdir("/") < 0)
        return error_errno(err, -errno, "cannot enter the sandbox's root");
    struct stat own, above;
    if (fstat(r->fd, &own) < 0 || stat("/..", &above) < 0 || own.st_dev != above.st_dev || own.st_ino != above.st_ino)
        return error_set(err, -EXDEV, "the host's root can still be reached from the sandbox's");
    return 0;
}
