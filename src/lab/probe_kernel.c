/* probe_kernel.c: probes of the kernel's surface: paths of /proc and /sys, and system calls.
 *
 * Most call probes are rows of one table. A refusal by a filter must be told from a refusal by the kernel's own
 * permission checks, which would hide that no filter is there. So each row calls with arguments that an unfiltered
 * kernel answers in another way before it asks for permission (a bad pointer, a bad flag, a bad descriptor), and,
 * where there is one, performs the real action inside a fresh user namespace, which gives the capabilities it needs
 * unless that is refused as well.
 * runs in: probe, inside and outside */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "base/linux_compat.h"
#include "lab/probe.h"

#define BAD_POINTER          1L
#define BAD_FLAGS            0x40000000L
#define NR_LSM_SET_SELF_ATTR 460         /* include/uapi/asm-generic/unistd.h, kernel 6.8 */
#define NR_FUTURE            1999        /* no kernel has it yet */
#define NR_X32               0x40000000L /* __X32_SYSCALL_BIT */

/* A call with arguments that are wrong on purpose. */
struct reach {
    const char *name;
    long nr;
    long args[6];
    int (*action)(void); /* the real thing, in a fresh user namespace; 0 or errno; may be NULL */
    int reached[3];      /* errno of an unfiltered kernel; 0 = success. None listed (-1 first): only the action tells */
};

static int act_unshare(void) {
    return unshare(CLONE_NEWUSER) < 0 ? errno : 0;
}

static int reap_clone(long pid) {
    if (pid < 0)
        return errno;
    if (pid == 0)
        _exit(0);
    waitpid((pid_t)pid, NULL, 0);
    return 0;
}

static int act_clone(void) {
    return reap_clone(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0L, 0L, 0L, 0L));
}

static int act_clone3(void) {
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    return reap_clone(syscall(SYS_clone3, &args, sizeof(args)));
}

static int act_setns(void) {
    int err = enter_userns(CLONE_NEWUTS);
    _cleanup_fd_ int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    int r = (int)syscall(SYS_setns, fd, CLONE_NEWUTS) < 0 ? errno : 0;
    return err ? err : r;
}

/* A user namespace with a mount tree of its own, so that nothing done in it shows outside. */
static int own_mounts(void) {
    int err = enter_userns(CLONE_NEWNS);
    if (err == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return errno;
    return err;
}

static int act_mount(void) {
    int err = own_mounts();
    if (err == 0 && mount("lab", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") < 0)
        return errno;
    return err;
}

static int act_umount(void) {
    int err = act_mount();
    if (err == 0 && umount2("/tmp", MNT_DETACH) < 0)
        return errno;
    return err;
}

static int act_fsopen(void) {
    int err = enter_userns(CLONE_NEWNS);
    return err ? err : syscall(SYS_fsopen, "tmpfs", 1) < 0 ? errno : 0;
}

static int act_move_mount(void) {
    int err = own_mounts();
    int fs = (int)syscall(SYS_fsopen, "tmpfs", 1);
    if (err || fs < 0)
        return err ? err : errno;
    if (syscall(SYS_fsconfig, fs, 6 /* FSCONFIG_CMD_CREATE */, 0L, 0L, 0L) < 0)
        return errno;
    int m = (int)syscall(SYS_fsmount, fs, 1, 0);
    return m < 0 || syscall(SYS_move_mount, m, "", AT_FDCWD, "/tmp", 4L /* MOVE_MOUNT_F_EMPTY_PATH */) < 0 ? errno : 0;
}

static int act_pivot(void) {
    int err = act_mount();
    if (err == 0 && (chdir("/tmp") < 0 || mkdir("old", 0700) < 0 || syscall(SYS_pivot_root, ".", "old") < 0))
        return errno;
    return err;
}

static int act_add_key(void) {
    return syscall(SYS_add_key, "user", "doorward-lab", "x", 1L, -2L /* process keyring */) < 0 ? errno : 0;
}

static int act_io_uring(void) {
    struct io_uring_params p = {0};
    return syscall(SYS_io_uring_setup, 4L, &p) < 0 ? errno : 0;
}

static int act_userfaultfd(void) {
    return syscall(SYS_userfaultfd, O_CLOEXEC | 1L /* UFFD_USER_MODE_ONLY */) < 0 ? errno : 0;
}

static int act_perf(void) {
    struct perf_event_attr a = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof(a), .config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1};
    return syscall(SYS_perf_event_open, &a, 0L, -1L, -1L, 0L) < 0 ? errno : 0;
}

static int act_open_tree(void) {
    return syscall(SYS_open_tree, AT_FDCWD, "/", 0x80000L /* OPEN_TREE_CLOEXEC */) < 0 ? errno : 0;
}

static const struct reach reaches[] = {
    {"unshare-user", -1, {0}, act_unshare, {-1}},
    {"clone-user", -1, {0}, act_clone, {-1}},
    {"clone3-user", -1, {0}, act_clone3, {-1}},
    {"setns", SYS_setns, {-1, 0}, act_setns, {EBADF}},
    {"mount", SYS_mount, {BAD_POINTER, BAD_POINTER, BAD_POINTER, 0, 0}, act_mount, {EFAULT}},
    {"umount", SYS_umount2, {BAD_POINTER, BAD_FLAGS}, act_umount, {EINVAL}},
    {"fsopen", -1, {0}, act_fsopen, {-1}},
    {"fsconfig", SYS_fsconfig, {-1, 0, 0, 0, 0}, NULL, {EINVAL}},
    {"open-tree", SYS_open_tree, {AT_FDCWD, BAD_POINTER, 0}, act_open_tree, {EFAULT}},
    {"move-mount", -1, {0}, act_move_mount, {-1}},
    {"mount-setattr", SYS_mount_setattr, {-1, BAD_POINTER, BAD_FLAGS, 0, 32}, NULL, {EINVAL}},
    {"pivot-root", -1, {0}, act_pivot, {-1}},
    {"keyring-add", SYS_add_key, {BAD_POINTER, BAD_POINTER, 0, 0, -2}, act_add_key, {EFAULT}},
    {"keyring-request", SYS_request_key, {BAD_POINTER, BAD_POINTER, 0, 0}, NULL, {EFAULT}},
    {"keyring-control", SYS_keyctl, {9999, 0, 0, 0, 0}, NULL, {EOPNOTSUPP}},
    {"io-uring", SYS_io_uring_setup, {0, BAD_POINTER}, act_io_uring, {EFAULT, EINVAL}},
    {"bpf", SYS_bpf, {BPF_PROG_LOAD, 0, 1 << 20}, NULL, {E2BIG, EFAULT}},
    {"perf", SYS_perf_event_open, {0, 0, -1, -1, BAD_FLAGS}, act_perf, {EINVAL, EFAULT}},
    {"userfaultfd", SYS_userfaultfd, {1 | 4}, act_userfaultfd, {EINVAL}},
    {"lsm-self-attr", NR_LSM_SET_SELF_ATTR, {0, 0, 0, BAD_FLAGS}, NULL, {EINVAL, EOPNOTSUPP, EFAULT}},
};

static int do_reach(void *data) {
    const struct reach *r = data;
    const long *a = r->args;
    return syscall(r->nr, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? errno : 0;
}

static int do_action(void *data) {
    return ((const struct reach *)data)->action();
}

static bool is_reached(const struct reach *r, int err) {
    for (size_t i = 0; i < ELEMENTS(r->reached) && r->reached[i] != -1; i++)
        if (r->reached[i] == err)
            return true;
    return false;
}

static enum lab_result reach(struct call *c) {
    const struct reach *r = reaches;
    while (strcmp(r->name, c->row->name) != 0)
        r++;
    int done = r->action ? in_child(do_action, (void *)r) : -1;
    if (done == 0)
        return is_open(c, 0, "it works");
    int got = r->nr >= 0 ? in_child(do_reach, (void *)r) : done;
    if (r->nr >= 0 && is_reached(r, got))
        return is_open(c, got, "the kernel's own code answered (%s)", strerror(got));
    if (got >= 256)
        return held(c, 0, "killed by signal %d", got - 256);
    if (c->control && got == ENOSYS)
        return absent(c, got, "this kernel does not have the call");
    return refused(c, got) ? held(c, got, "refused: %s", strerror(got))
                           : is_open(c, got, "not a refusal: %s", strerror(got));
}

/* Reads the number of the own process by the 32-bit entry: getpid is 20 there. */
static int call_i386(void *data) {
#ifdef __x86_64__
    long ret;
    __asm__ volatile("int $0x80" : "=a"(ret) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return ret == getpid() ? 0 : ret < 0 ? (int)-ret : EINVAL;
#else
    return ENOSYS;
#endif
}

static int call_x32(void *data) {
    long ret = syscall(NR_X32 | SYS_getpid);
    return ret == getpid() ? 0 : errno;
}

static enum lab_result other_entry(struct call *c, int (*f)(void *)) {
    int r = in_child(f, NULL);
    if (r == 0)
        return is_open(c, 0, "the call was answered");
    if (c->control)
        return absent(c, r < 256 ? r : 0, "this kernel has no such entry");
    return r < 256 ? held(c, r, "refused: %s", strerror(r)) : held(c, 0, "killed by signal %d", r - 256);
}

static enum lab_result i386_calls(struct call *c) {
    return other_entry(c, call_i386);
}

static enum lab_result x32_calls(struct call *c) {
    return other_entry(c, call_x32);
}

static int call_future(void *data) {
    return syscall(NR_FUTURE) < 0 ? errno : 0;
}

static enum lab_result future_call(struct call *c) {
    int r = in_child(call_future, NULL);
    return r == ENOSYS ? held(c, r, "ENOSYS") : is_open(c, r < 256 ? r : 0, "answered %d, not ENOSYS", r);
}

/* /proc and /sys paths through which the whole host is steered. */
static enum lab_result kernel_knobs(struct call *c) {
    static const char *const knobs[] = {"/proc/sys/kernel/core_pattern",
                                        "/proc/sys/kernel/modprobe",
                                        "/proc/sys/vm/panic_on_oom",
                                        "/proc/sysrq-trigger",
                                        "/sys/kernel/uevent_helper",
                                        "/sys/fs/cgroup/release_agent",
                                        "/proc/sys/fs/binfmt_misc/register",
                                        "/proc/kcore",
                                        "/dev/mem",
                                        "/dev/kmsg"};
    int last = ENOENT;
    for (size_t i = 0; i < ELEMENTS(knobs); i++) {
        struct stat st;
        _cleanup_fd_ int fd = open(knobs[i], O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_rdev != makedev(1, 3)) /* a mask may be /dev/null */
            return is_open(c, 0, "%s can be opened for writing", knobs[i]);
        last = fd < 0 ? errno : last;
    }
    /* An ordinary id is refused by permission even where the mount would let it write: ask the mount. */
    struct statvfs v;
    struct stat st;
    if (statvfs("/proc/sys", &v) == 0 && !(v.f_flag & ST_RDONLY))
        return is_open(c, last, "/proc/sys is mounted writable");
    if (stat("/proc/sysrq-trigger", &st) == 0 && S_ISREG(st.st_mode) && statvfs("/proc/sysrq-trigger", &v) == 0 &&
        !(v.f_flag & ST_RDONLY))
        return is_open(c, last, "/proc/sysrq-trigger is neither masked nor read-only");
    return held(c, last, "none can be opened for writing");
}

static enum lab_result kernel_leaks(struct call *c) {
    static const char *const paths[] = {"/proc/keys",
                                        "/proc/kcore",
                                        "/proc/timer_list",
                                        "/proc/sched_debug",
                                        "/proc/latency_stats",
                                        "/proc/interrupts",
                                        "/sys/kernel/notes",
                                        "/sys/class/dmi/id/product_name",
                                        "/sys/firmware/dmi/tables/DMI",
                                        "/proc/key-users"};
    for (size_t i = 0; i < ELEMENTS(paths); i++) {
        char bytes[256];
        if (slurp(paths[i], bytes, sizeof(bytes)) > 0)
            return is_open(c, 0, "%s can be read", paths[i]);
    }
    return held(c, ENOENT, "all of them are masked or absent");
}

/* 0 = no dump is possible, 1 = one is. A limit of 1 stands for none: it also keeps the kernel from starting a host's
 * dump helper, which a limit of 0 does not (core(5), "Piping core dumps"). */
static int core_limit(void *data) {
    struct rlimit now, most = {RLIM_INFINITY, RLIM_INFINITY};
    if (getrlimit(RLIMIT_CORE, &now) < 0)
        return 2;
    return now.rlim_max > 1 || setrlimit(RLIMIT_CORE, &most) == 0;
}

static enum lab_result core_dumps(struct call *c) {
    return in_child(core_limit, NULL) == 0 ? held(c, EPERM, "the limit is none and cannot be raised")
                                           : is_open(c, 0, "core dumps can be written");
}

const struct probe probes_kernel[] = {{"kernel-knobs", kernel_knobs},
                                      {"kernel-leaks", kernel_leaks},
                                      {"core-dumps", core_dumps},
                                      {"unshare-user", reach},
                                      {"clone-user", reach},
                                      {"clone3-user", reach},
                                      {"setns", reach},
                                      {"mount", reach},
                                      {"umount", reach},
                                      {"fsopen", reach},
                                      {"fsconfig", reach},
                                      {"open-tree", reach},
                                      {"move-mount", reach},
                                      {"mount-setattr", reach},
                                      {"pivot-root", reach},
                                      {"keyring-add", reach},
                                      {"keyring-request", reach},
                                      {"keyring-control", reach},
                                      {"io-uring", reach},
                                      {"bpf", reach},
                                      {"perf", reach},
                                      {"userfaultfd", reach},
                                      {"lsm-self-attr", reach},
                                      {"i386-calls", i386_calls},
                                      {"x32-calls", x32_calls},
                                      {"future-call", future_call},
                                      {0}};
