/* probe_files.c: probes of what the worker can see and change in the file system.
 * A path is the host's when device and inode are: names may be made up inside, identities not.
 * runs in: probe, inside and outside */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#include "lab/probe.h"

/* `spec` is PATH:DEVICE:INODE as the stage saw it. True when that path here is the same object. */
static bool same_object(const char *spec, char *path, size_t room) {
    char copy[4096];
    snprintf(copy, sizeof(copy), "%s", spec);
    char *ino = strrchr(copy, ':');
    if (!ino)
        return false;
    *ino++ = '\0';
    char *dev = strrchr(copy, ':');
    if (!dev)
        return false;
    *dev++ = '\0';
    snprintf(path, room, "%.200s", copy);
    struct stat st;
    return stat(copy, &st) == 0 && st.st_dev == strtoull(dev, NULL, 10) && st.st_ino == strtoull(ino, NULL, 10);
}

static enum lab_result look(struct call *c, const char *key) {
    char path[256] = "";
    int n = 0;
    size_t at = 0;
    for (const char *v; (v = fact_next(c, key, &at)); n++)
        if (same_object(v, path, sizeof(path)))
            return is_open(c, 0, "%s is the host's", path);
    if (n == 0)
        return broken(c, 0, "no path was given to look at");
    return held(c, ENOENT, "none of %d paths of the host is there", n);
}

static enum lab_result unmounted_paths(struct call *c) {
    return look(c, "look");
}

static enum lab_result home(struct call *c) {
    return look(c, "home");
}

static enum lab_result read_file_canary(struct call *c, const char *path) {
    char bytes[256];
    ssize_t n = slurp(path, bytes, sizeof(bytes));
    if (n > 0 && has_secret(c, bytes, (size_t)n))
        return is_open(c, 0, "the canary's bytes were read");
    return held(c, n < 0 ? (int)-n : 0, "the canary was not read");
}

static enum lab_result read_canary(struct call *c) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/victim/secret", fact(c, "dir"));
    return read_file_canary(c, path);
}

static enum lab_result write_canary(struct call *c) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/victim/write", fact(c, "dir"));
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd >= 0 && fd_write_all(fd, "x", 1) == 0)
        return is_open(c, 0, "wrote to a file of the host");
    int err = errno;
    snprintf(path, sizeof(path), "%s/victim/made", fact(c, "dir"));
    _cleanup_fd_ int made = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (made >= 0)
        return is_open(c, 0, "made a file in a folder of the host");
    return held(c, err, "neither written nor made");
}

/* Child: chroot below a folder while holding one above it, then climb. 0 = the canary was read, else errno. */
static int escape(void *data) {
    struct call *c = data;
    char path[4096], rel[4200];
    const char *dir = scratch(c);
    if (c->control && geteuid() != 0)
        enter_userns(0);
    snprintf(path, sizeof(path), "%s/cell-%d", dir, (int)getpid());
    mkdir(path, 0755);
    _cleanup_fd_ int above = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int caged = chroot(path) == 0, err = caged ? 0 : errno;
    if (caged && fchdir(above) < 0)
        return errno;
    for (int i = 0; i < 64; i++)
        if (chdir("..") < 0)
            break;
    snprintf(rel, sizeof(rel), ".%s/victim/secret", fact(c, "dir"));
    enum lab_result r = read_file_canary(c, rel);
    if (r != LAB_OPEN && !caged) { /* without chroot: the classic dead ends of a jail that only hides */
        snprintf(rel, sizeof(rel), "/proc/self/root/../../../..%s/victim/secret", fact(c, "dir"));
        r = read_file_canary(c, rel);
    }
    return r == LAB_OPEN ? 0 : err ? err : ENOENT;
}

static enum lab_result chroot_escape(struct call *c) {
    int r = in_child(escape, c);
    if (r == 0)
        return is_open(c, 0, "the canary was read from beyond the root");
    return held(c, r < 256 ? r : 0, r < 256 ? "no way up" : "killed by signal %d", r - 256);
}

/* Runs a script whose interpreter is /proc/self/exe (CVE-2019-5736): a runtime that takes part in the exec would run
 * its own program again, in the worker's hands. The end of it is of no interest, the digest is. */
static void run_script(const struct call *c) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/script-%d", scratch(c), (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    if (fd < 0 || fd_write_all(fd, "#!/proc/self/exe\n", 17) < 0)
        return;
    fd_close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, 1);
        dup2(null, 2);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
    unlink(path);
}

/* Opens a program for writing and changes a byte; errno, or 0 when that worked. */
static int spoil(const char *path) {
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return errno;
    return -fd_write_all(fd, "\n", 1);
}

static enum lab_result own_binary(struct call *c) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/victim/program", fact(c, "dir"));
    int err = spoil(path);
    if (err == 0)
        return is_open(c, 0, "changed a program of the runtime");
    if (c->control)
        return held(c, err, "the program could not be changed");
    run_script(c);
    /* Whatever runs here. ETXTBSY is told before the mount is asked, so then the mount is asked. */
    for (int pid = 1; pid < 64; pid++) {
        snprintf(path, sizeof(path), "/proc/%d/exe", pid);
        _cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0 || (errno == ETXTBSY && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0))
            return is_open(c, errno, "%s can be opened for writing", path);
    }
    return held(c, err, "neither the program nor any /proc/PID/exe");
}

/* Effective uid of a child once it is called `name` (its exec is done), else -1. Where /proc hides what is not ours
 * (hidepid, proc(5)), a child that has become somebody else is not there: that is told as uid 0. */
static long effective_uid(pid_t pid, const char *name) {
    char path[64], status[4096], is[64];
    long real, effective;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    ssize_t n = slurp(path, status, sizeof(status));
    if (n == -ENOENT)
        return 0;
    if (n <= 0 || sscanf(status, "Name: %63s", is) != 1 || strcmp(is, name) != 0)
        return -1;
    char *uid = strstr(status, "\nUid:");
    return uid && sscanf(uid, "\nUid: %ld %ld", &real, &effective) == 2 ? effective : -1;
}

/* A pipe that takes no more: who writes to it stays. */
static int full_pipe(int ends[2]) {
    static char block[4096];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    while (write(ends[1], block, sizeof(block)) > 0)
        ;
    fcntl(ends[1], F_SETFL, 0);
    return 0;
}

/* Gives up uid 0, so that a gain can be seen. */
static void become_nobody(void) {
    if (geteuid() == 0 && (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
        _exit(127);
}

/* Runs a set-id program that only prints its help into a full pipe, so that it stays to be looked at. */
static enum lab_result look_at_set_id(struct call *c, const char *program) {
    int ends[2];
    if (full_pipe(ends) < 0)
        return broken(c, errno, "no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        become_nobody();
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execl(program, program, "--help", (char *)NULL);
        _exit(127);
    }
    long plain = geteuid() ? (long)geteuid() : 65534, seen = -1;
    for (int i = 0; i < 100 && seen < 0 && waitpid(pid, NULL, WNOHANG) == 0; i++) {
        seen = effective_uid(pid, strrchr(program, '/') + 1);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    fd_close(ends[0]);
    fd_close(ends[1]);
    if (seen >= 0 && seen != plain)
        return is_open(c, 0, "%s runs as uid %ld", program, seen);
    return held(c, 0, seen < 0 ? "%s does not run" : "%s runs and gains nothing", program);
}

static enum lab_result set_id(struct call *c) {
    static const char *const programs[] = {"/usr/bin/su", "/usr/bin/mount", "/usr/bin/passwd", "/usr/bin/chsh"};
    for (size_t i = 0; i < ELEMENTS(programs); i++) {
        struct stat st;
        if (stat(programs[i], &st) == 0 && (st.st_mode & S_ISUID) && (st.st_uid == 0 || !c->control))
            return look_at_set_id(c, programs[i]);
    }
    return absent(c, ENOENT, "no set-id program of root in /usr/bin");
}

/* Runs `program powers` as a user without rights; the answer bits of powers_main, or -1. */
static int powers_of(const struct call *c, const char *program) {
    pid_t pid = fork();
    if (pid == 0) {
        char uid[16];
        become_nobody();
        snprintf(uid, sizeof(uid), "%u", geteuid());
        execl(program, program, "powers", uid, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) < 4 ? WEXITSTATUS(status) : -1;
}

static enum lab_result powers(struct call *c, const char *name) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/staged/%s", fact(c, "dir"), name);
    int got = powers_of(c, path), own = powers_of(c, own_path());
    if (got < 0 && c->control)
        return held(c, 0, "it did not run");
    if (got > 0 && got != own)
        return is_open(c, 0, "it gained %s", got & 1 ? "another uid" : "a capability");
    return held(c, 0, got < 0 ? "it does not run at all" : "it runs and gains nothing");
}

static enum lab_result set_id_input(struct call *c) {
    return powers(c, "set-id");
}

static enum lab_result file_capabilities(struct call *c) {
    return powers(c, "capable");
}

/* What a private /dev may have: null zero full random urandom (1:3 5 7 8 9), tty ptmx (5:0 2), terminals (136..143). */
static bool harmless(dev_t d) {
    unsigned ma = major(d), mi = minor(d);
    return (ma == 1 && (mi == 3 || mi == 5 || mi == 7 || mi == 8 || mi == 9)) || (ma == 5 && (mi == 0 || mi == 2)) ||
           (ma >= 136 && ma <= 143);
}

static enum lab_result device_nodes(struct call *c) {
    DIR *d = opendir("/dev");
    if (!d)
        return held(c, errno, "there is no /dev");
    char found[128] = "";
    int n = 0;
    for (struct dirent *e; (e = readdir(d)); n++) {
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        bool device = S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode);
        if (device && (S_ISBLK(st.st_mode) || !harmless(st.st_rdev)))
            snprintf(found, sizeof(found), "%.100s", e->d_name);
    }
    closedir(d);
    return found[0] ? is_open(c, 0, "/dev/%s is there", found) : held(c, 0, "%d names, all harmless", n);
}

static enum lab_result make_device(struct call *c) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/device-%d", scratch(c), (int)getpid());
    if (mknod(path, S_IFCHR | 0666, makedev(1, 7)) < 0) /* /dev/full: harmless, and tells itself by ENOSPC */
        return held(c, errno, "mknod is refused");
    int fd = open(path, O_RDWR | O_CLOEXEC), err = errno;
    bool works = fd >= 0 && write(fd, "x", 1) < 0 && errno == ENOSPC;
    fd_close(fd);
    unlink(path);
    return works ? is_open(c, 0, "a device was made and opened") : held(c, err, "made, but cannot be opened");
}

const struct probe probes_files[] = {{"unmounted-paths", unmounted_paths},
                                     {"home", home},
                                     {"read-canary", read_canary},
                                     {"write-canary", write_canary},
                                     {"chroot-escape", chroot_escape},
                                     {"own-binary", own_binary},
                                     {"set-id", set_id},
                                     {"set-id-input", set_id_input},
                                     {"file-capabilities", file_capabilities},
                                     {"device-nodes", device_nodes},
                                     {"make-device", make_device},
                                     {0}};
