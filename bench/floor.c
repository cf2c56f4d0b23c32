/* floor.c: what the kernel itself takes for walls like ours, and nothing else.
 *
 * usage: floor PROGRAM [ARG...]
 * Seven new namespaces with a single id mapped, a tmpfs root with /usr bound read-only, /proc, a few device nodes,
 * pivot_root, the old root detached, Landlock over eight folders, no_new_privs, a system-call filter shaped as a tree,
 * exec. No option, no journal, no cgroup, no process 1: everything that doorward does beyond this costs extra, which is
 * why it is the floor. One clone that shares the parent's memory, one exec. runs in: bench */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filter.h"

static _Noreturn void die(const char *what) {
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    _exit(125);
}

static void must(int r, const char *what) {
    if (r < 0)
        die(what);
}

static void write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        die(path);
    close(fd);
}

static void map_ids(unsigned uid, unsigned gid) {
    char line[64];
    write_text("/proc/self/setgroups", "deny");
    snprintf(line, sizeof(line), "1000 %u 1", uid);
    write_text("/proc/self/uid_map", line);
    snprintf(line, sizeof(line), "1000 %u 1", gid);
    write_text("/proc/self/gid_map", line);
}

static void bind(const char *from, const char *to, unsigned long flags) {
    must(mount(from, to, NULL, MS_BIND | MS_REC, NULL), to);
    if (flags)
        must(mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | flags, NULL), to);
}

static void bind_device(const char *name) {
    char from[64], to[64];
    snprintf(from, sizeof(from), "/dev/%s", name);
    snprintf(to, sizeof(to), "dev/%s", name);
    int fd = open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    must(fd, to);
    close(fd);
    bind(from, to, 0);
}

static void build_root(void) {
    static const char *const folders[] = {"usr", "proc", "dev", "tmp", "home", "etc", "work"};
    static const char *const links[][2] = {
        {"usr/bin", "bin"}, {"usr/sbin", "sbin"}, {"usr/lib", "lib"}, {"usr/lib64", "lib64"}};
    static const char *const devices[] = {"null", "zero", "full", "random", "urandom"};
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private root");
    must(mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,nr_inodes=10000,mode=755"), "tmpfs");
    must(chdir("/tmp"), "new root");
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        must(mkdir(folders[i], 0755), folders[i]);
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        must(symlink(links[i][0], links[i][1]), links[i][1]);
    bind("/usr", "usr", MS_RDONLY | MS_NOSUID | MS_NODEV);
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
        bind_device(devices[i]);
    must(mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL), "proc");
    must((int)syscall(SYS_pivot_root, ".", "."), "pivot_root");
    must(umount2(".", MNT_DETACH), "old root");
    must(chdir("/"), "/");
}

static void allow_beneath(int ruleset, const char *path, uint64_t access) {
    struct landlock_path_beneath_attr rule = {.allowed_access = access};
    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    must(rule.parent_fd, path);
    must((int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0), path);
    close(rule.parent_fd);
}

static void landlock(void) {
    uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
    uint64_t look = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    struct landlock_ruleset_attr attr = {.handled_access_fs = all};
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (ruleset < 0)
        die("landlock");
    static const char *const readable[] = {"/usr", "/etc", "/proc", "/dev"}, *const writable[] = {"/tmp", "/home",
                                                                                                  "/work"};
    for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++)
        allow_beneath(ruleset, readable[i], look);
    for (size_t i = 0; i < sizeof(writable) / sizeof(writable[0]); i++)
        allow_beneath(ruleset, writable[i], all);
    must((int)syscall(SYS_landlock_restrict_self, ruleset, 0), "landlock_restrict_self");
    close(ruleset);
}

static void seccomp(void) {
    build_filter();
    struct sock_fprog program = {.len = (unsigned short)filter_length, .filter = filter};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    must((int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "seccomp");
}

struct ids {
    unsigned uid, gid;
    char **argv;
};

static int child(void *data) {
    const struct ids *ids = data;
    map_ids(ids->uid, ids->gid);
    build_root();
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    landlock();
    seccomp();
    execve(ids->argv[0], ids->argv, environ);
    die(ids->argv[0]);
}

int main(int argc, char **argv) {
    static char stack[64 * 1024] __attribute__((aligned(16)));
    if (argc < 2) {
        fprintf(stderr, "usage: floor PROGRAM [ARG...]\n");
        return 125;
    }
    struct ids ids = {geteuid(), getegid(), argv + 1};
    int namespaces =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    int pid = clone(child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD | namespaces, &ids), status;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        die("clone");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
