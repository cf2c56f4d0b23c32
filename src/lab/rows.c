/* rows.c: see rows.h. runs in: cli, probe */
#include "lab/rows.h"

#include <errno.h>
#include <string.h>

const char *const lab_kind_names[LAB_KIND_N] = {"wall", "usable", "setup"};
const char *const lab_result_names[LAB_RESULT_N] = {"held", "open", "broken", "absent"};

#define W(x) (1u << PLAN_WALL_##x)
#define NO   LAB_NO_LIMIT
#define REFUSED                                                                                                        \
    { EPERM, ENOSYS, EACCES }
#define UNKNOWN                                                                                                        \
    { ENOSYS, EPERM }
#define FAMILY                                                                                                         \
    { EAFNOSUPPORT, EPERM, EACCES, ENOSYS }

/* One row, at most two lines. */
/* clang-format off */
const struct lab_row lab_rows[] = {
    /* files */
    {"unmounted-paths", "walls", LAB_WALL, W(MOUNTS), NO, 0, 3000,
     "no folder of the host that no input names is there: /root /home /var /run /boot /etc/shadow ...", {0}},
    {"home", "walls", LAB_WALL, W(MOUNTS), NO, 0, 3000, "the home folder of the user who started it is not there", {0}},
    {"read-canary", "walls", LAB_WALL, W(MOUNTS), NO, 0, 3000, "a world-readable file of the host cannot be read", {0}},
    {"write-canary", "walls", LAB_WALL, W(MOUNTS), NO, LAB_FILES, 3000,
     "a world-writable file and folder of the host cannot be changed", {0}},
    {"chroot-escape", "walls", LAB_WALL, W(MOUNTS), NO, 0, 3000,
     "neither .. nor chroot with an open folder leads out of the root", {0}},
    {"own-binary", "B02", LAB_WALL, W(MOUNTS), NO, LAB_FILES, 3000,
     "no program of the runtime can be opened for writing, by path or as /proc/PID/exe", {0}},
    {"link-targets", "B03", LAB_SETUP, 0, NO, LAB_FILES | LAB_LINKS, 5000,
     "inputs whose targets lead through the workspace's links end nowhere outside the root", {0}},
    {"set-id", "walls", LAB_WALL, W(CAPS) | W(MOUNTS) | W(USERNS) | W(PIDS), NO, 0, 3000,
     "a set-id program of the system gains nothing", {0}},
    {"set-id-input", "walls", LAB_WALL, W(CAPS) | W(MOUNTS) | W(USERNS), NO, LAB_NEEDS_ROOT | LAB_STAGED, 3000,
     "a set-id program that an input brings gains nothing", {0}},
    {"file-capabilities", "walls", LAB_WALL, W(CAPS) | W(MOUNTS) | W(USERNS), NO, LAB_NEEDS_ROOT | LAB_STAGED, 3000,
     "a program with file capabilities gains nothing", {0}},
    {"device-nodes", "walls", LAB_WALL, W(MOUNTS), NO, 0, 3000, "/dev has the harmless devices only", {0}},
    {"make-device", "walls", LAB_WALL, W(CAPS) | W(USERNS) | W(MOUNTS), NO, LAB_NEEDS_ROOT, 3000,
     "no usable device node can be made", {0}},
    {"next-tenant", "B59", LAB_WALL, W(IPC), NO, LAB_TWICE, 6000,
     "what one step left in files, shared memory and queues is not there for the next", {0}},
    /* processes */
    {"proc-visible", "B13", LAB_WALL, W(PIDS), NO, 0, 3000, "no process of the host is listed in /proc", {0}},
    {"proc-environ", "B13", LAB_WALL, W(PIDS), NO, 0, 3000, "no environment of another process can be read", {0}},
    {"proc-mem", "B13", LAB_WALL, W(PIDS), NO, 0, 3000, "no memory of another process can be opened", {0}},
    {"proc-root", "B13", LAB_WALL, W(PIDS), NO, 0, 3000,
     "no other process's root or working folder can be entered", {0}},
    {"proc-fd", "B13", LAB_WALL, W(PIDS), NO, 0, 3000, "no other process's descriptors can be opened", {0}},
    {"ptrace-stranger", "B14", LAB_WALL, W(PIDS), NO, 0, 3000, "a process of the host cannot be traced", {0}},
    {"ptrace-init", "B14", LAB_WALL, W(PIDS), NO, 0, 3000, "process 1 and the parent cannot be traced", {0}},
    {"vm-readv", "B14", LAB_WALL, W(PIDS), NO, 0, 3000, "process_vm_readv of a stranger is refused", {0}},
    {"pidfd-getfd", "B14", LAB_WALL, W(PIDS), NO, 0, 3000, "no descriptor can be taken from a stranger", {0}},
    {"signal-stranger", "B14", LAB_WALL, W(PIDS), NO, 0, 3000, "a process of the host cannot be signalled", {0}},
    {"limit-stranger", "B14", LAB_WALL, W(PIDS), NO, 0, 3000,
     "prlimit, setpriority and sched_setaffinity reach no process of the host", {0}},
    {"attack-init", "B14", LAB_WALL, W(PIDS), NO, 0, 5000,
     "signals and limits aimed at process 1 leave the step's end true", {0}},
    {"ns-user", "B17", LAB_WALL, W(USERNS), NO, 0, 3000, "the user namespace is its own", {0}},
    {"ns-mnt", "walls", LAB_SETUP, 0, NO, 0, 3000, "the mount namespace is its own", {0}},
    {"ns-pid", "walls", LAB_WALL, W(PIDS), NO, 0, 3000, "the pid namespace is its own", {0}},
    {"ns-net", "walls", LAB_WALL, W(NET), NO, 0, 3000, "the network namespace is its own", {0}},
    {"ns-ipc", "walls", LAB_WALL, W(IPC), NO, 0, 3000, "the ipc namespace is its own", {0}},
    {"ns-cgroup", "walls", LAB_WALL, W(CGROUP), NO, 0, 3000, "the cgroup namespace is its own", {0}},
    {"ns-uts", "walls", LAB_WALL, W(IPC), NO, 0, 3000, "the uts namespace (host name) is its own", {0}},
    {"privileges", "walls", LAB_WALL, W(CAPS), NO, 0, 3000, "no capability in any set, no_new_privs is set", {0}},
    {"sysv-memory", "walls", LAB_WALL, W(IPC), NO, 0, 3000, "System V shared memory of the host is not there", {0}},
    {"posix-queue", "walls", LAB_WALL, W(IPC) | W(LANDLOCK), NO, 0, 3000,
     "POSIX message queues of the host are not there", {0}},
    {"posix-memory", "A11", LAB_WALL, W(MOUNTS), NO, 0, 3000, "the host's /dev/shm is not there", {0}},
    {"environment", "B12", LAB_WALL, W(ENV), NO, 0, 3000,
     "no environment variable of the controller is passed on", {0}},
    {"descriptors", "B01", LAB_WALL, W(FDS), NO, LAB_FDS, 3000,
     "no descriptor of the controller is inherited (a file on 9, a socket on 20, a folder on 1500)", {0}},
    /* kernel */
    {"kernel-knobs", "B20", LAB_WALL, W(MOUNTS), NO, 0, 3000,
     "/proc/sys is read-only; sysrq-trigger, uevent_helper, release_agent cannot be opened for writing", {0}},
    {"kernel-leaks", "B20", LAB_WALL, W(MOUNTS), NO, 0, 3000,
     "/proc and /sys paths that tell of the host are masked: keys, kcore, interrupts, firmware ...", {0}},
    {"core-dumps", "B20", LAB_SETUP, 0, NO, 0, 5000,
     "a crash leaves no core dump, and the limit cannot be raised", {0}},
    {"unshare-user", "B17", LAB_WALL, W(SECCOMP), NO, 0, 3000, "unshare makes no user namespace", {EPERM, ENOSYS}},
    {"clone-user", "B17", LAB_WALL, W(SECCOMP), NO, 0, 3000, "clone makes no user namespace", {EPERM, ENOSYS}},
    {"clone3-user", "B17", LAB_WALL, W(SECCOMP), NO, 0, 3000, "clone3 makes no user namespace", {ENOSYS, EPERM}},
    {"setns", "B17", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no namespace can be entered", REFUSED},
    {"mount", "B18", LAB_WALL, W(SECCOMP) | W(LANDLOCK), NO, 0, 3000, "nothing can be mounted", REFUSED},
    {"umount", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "nothing can be unmounted", REFUSED},
    {"fsopen", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no file system can be opened", REFUSED},
    {"fsconfig", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no file system can be configured", REFUSED},
    {"open-tree", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no mount can be picked up", REFUSED},
    {"move-mount", "B18", LAB_WALL, W(SECCOMP) | W(LANDLOCK), NO, 0, 3000, "no mount can be moved", REFUSED},
    {"mount-setattr", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no mount can be changed", REFUSED},
    {"pivot-root", "B18", LAB_WALL, W(SECCOMP) | W(LANDLOCK), NO, 0, 3000, "the root cannot be exchanged", REFUSED},
    {"keyring-add", "B19", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no key can be added", REFUSED},
    {"keyring-request", "B19", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no key can be asked for", REFUSED},
    {"keyring-control", "B19", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no keyring can be read or changed", REFUSED},
    {"io-uring", "B15", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no io_uring can be set up", REFUSED},
    {"bpf", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "bpf is refused", REFUSED},
    {"perf", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "perf_event_open is refused", REFUSED},
    {"userfaultfd", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "userfaultfd is refused", REFUSED},
    {"lsm-self-attr", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "a call newer than most lists is refused", UNKNOWN},
    {"i386-calls", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "32-bit calls (int 0x80) are refused", {ENOSYS, EPERM}},
    {"x32-calls", "B18", LAB_WALL, W(SECCOMP), NO, 0, 3000, "x32 calls are refused", {ENOSYS, EPERM}},
    {"future-call", "B18", LAB_USABLE, 0, NO, 0, 3000,
     "a call that no kernel has yet answers ENOSYS, so that programs fall back", {0}},
    /* network */
    {"loopback-tcp", "B46", LAB_WALL, W(NET) | W(LANDLOCK), NO, LAB_HEARD, 3000,
     "the host's 127.0.0.1 and ::1 are not reached by TCP", {0}},
    {"loopback-udp", "B46", LAB_WALL, W(NET) | W(LANDLOCK), NO, LAB_HEARD, 3000,
     "the host's 127.0.0.1 and ::1 are not reached by UDP", {0}},
    {"private-addresses", "B38", LAB_WALL, W(NET) | W(LANDLOCK), NO, LAB_HEARD, 6000,
     "the host's own, private and metadata addresses are not reached", {0}},
    {"abstract-socket", "B10", LAB_WALL, W(NET) | W(LANDLOCK), NO, LAB_HEARD, 3000,
     "an abstract socket of the host is not reached", {0}},
    {"landlock-scope", "B10", LAB_WALL, W(NET) | W(LANDLOCK), NO, LAB_HEARD | LAB_UNDER, 3000,
     "without the network wall too, Landlock refuses an abstract socket of the host", {0}},
    {"path-socket", "B11", LAB_WALL, W(MOUNTS), NO, LAB_HEARD, 3000,
     "a socket by path of the host is not reached", {0}},
    {"path-socket-input", "B11", LAB_WALL, W(MOUNTS), NO, LAB_HEARD | LAB_SOCKETS, 3000,
     "a socket in a read-only input is not reached", {0}},
    {"path-fifo-input", "B11", LAB_WALL, W(MOUNTS), NO, LAB_HEARD | LAB_SOCKETS, 3000,
     "a FIFO in a read-only input is not reached", {0}},
    {"raw-socket", "B46", LAB_WALL, W(CAPS) | W(SECCOMP), NO, LAB_NEEDS_ROOT, 3000, "no raw IP socket", REFUSED},
    {"family-vsock", "B46", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no AF_VSOCK: it reaches the hypervisor", FAMILY},
    {"family-packet", "B46", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no AF_PACKET", FAMILY},
    {"family-alg", "B46", LAB_WALL, W(SECCOMP), NO, 0, 3000, "no AF_ALG", FAMILY},
    {"family-netlink", "B46", LAB_WALL, W(SECCOMP), NO, 0, 3000,
     "no netlink but route: netfilter, audit, uevent, xfrm, generic", FAMILY},
    {"family-others", "B46", LAB_WALL, W(SECCOMP), NO, 0, 3000,
     "no other socket family that a kernel may have", FAMILY},
    /* terminal */
    {"terminal", "B04", LAB_WALL, W(SESSION), NO, LAB_TTY, 3000,
     "the terminal of whoever started it is out of reach", {0}},
    {"tiocsti", "B04", LAB_WALL, W(SECCOMP), NO, 0, 3000, "TIOCSTI is refused, also with high bits set", REFUSED},
    {"tioclinux", "B04", LAB_WALL, W(SECCOMP), NO, 0, 3000, "TIOCLINUX is refused, also with high bits set", REFUSED},
    {"tiocsti-interactive", "B04", LAB_WALL, W(SECCOMP), NO, LAB_INTERACTIVE, 3000,
     "TIOCSTI is refused where the step has a terminal of its own (-t)", REFUSED},
    /* limits and the end */
    {"processes", "B25", LAB_WALL, 0, PLAN_PROCESSES, LAB_TIGHT, 10000,
     "a fork bomb ends with EAGAIN at the limit", {0}},
    {"threads", "B25", LAB_WALL, 0, PLAN_PROCESSES, LAB_TIGHT, 10000, "threads count as processes", {0}},
    {"memory", "A27", LAB_WALL, 0, PLAN_MEMORY, LAB_TIGHT, 10000, "memory ends at the limit", {0}},
    {"disk", "B26", LAB_WALL, 0, PLAN_DISK, LAB_TIGHT, 10000,
     "everything writable together ends at the disk limit", {0}},
    {"inodes", "B26", LAB_WALL, 0, PLAN_FILES, LAB_TIGHT, 10000, "the number of files ends at the limit", {0}},
    {"open-files", "walls", LAB_WALL, 0, PLAN_OPEN_FILES, LAB_TIGHT, 5000, "descriptors end at the limit", {0}},
    {"output", "A29", LAB_WALL, 0, PLAN_OUTPUT, LAB_TIGHT, 5000, "an output flood ends the step", {0}},
    {"deadline", "A22", LAB_WALL, 0, PLAN_WALL, LAB_TIGHT, 5000, "the deadline ends the step", {0}},
    {"deadline-deaf-child", "A22", LAB_WALL, W(REAP) | W(PIDS) | W(CGROUP), PLAN_WALL, LAB_TIGHT | LAB_LINGER, 6000,
     "the deadline also ends a child that ignores every signal in a session of its own", {0}},
    {"outliving-child", "A23", LAB_WALL, W(REAP) | W(PIDS) | W(CGROUP), NO, LAB_LINGER, 6000,
     "a child in its own session does not outlive the step", {0}},
    {"deaf-child", "A22", LAB_WALL, W(REAP) | W(PIDS) | W(CGROUP), NO, LAB_LINGER, 6000,
     "a child that ignores every signal does not outlive the step", {0}},
    {"killed-controller", "A23", LAB_WALL, W(REAP) | W(PIDS) | W(CGROUP), NO, LAB_LINGER | LAB_KILLED, 6000,
     "when the controller is killed in the middle, nothing of the step lives on", {0}},
    {"held-output", "A21", LAB_USABLE, 0, NO, 0, 4000,
     "a child that keeps standard output does not hold the step open", {0}},
    /* what must go on working */
    {"temp-programs", "A10", LAB_USABLE, 0, NO, 0, 4000, "a program written to TMPDIR can be run", {0}},
    {"memory-programs", "walls", LAB_USABLE, 0, NO, 0, 4000, "a program in a memfd can be run", {0}},
    {"semaphores", "A11", LAB_USABLE, 0, NO, 0, 4000, "named semaphores and shared memory work", {0}},
    {"passwd-entry", "A15", LAB_USABLE, 0, NO, 0, 4000, "the own uid has a name and a home", {0}},
    {"writable-places", "A09", LAB_USABLE, 0, NO, 0, 4000, "HOME and TMPDIR can be written", {0}},
    {"rename-and-link", "A08", LAB_USABLE, 0, NO, 0, 4000, "rename and link between folders of one place work", {0}},
    {"socket-pair", "A18", LAB_USABLE, 0, NO, 0, 4000, "socket pairs and sockets by path of its own work", {0}},
    {"own-loopback", "A19", LAB_USABLE, 0, NO, 0, 4000, "a server on 127.0.0.1 and ::1 is reached from inside", {0}},
    {"threads-and-forks", "B17", LAB_USABLE, 0, NO, 0, 4000, "threads, fork and vfork work", {0}},
    {"own-process", "B13", LAB_USABLE, 0, NO, 0, 4000, "/proc/self and /dev/{null,zero,urandom} work", {0}},
    {"event-calls", "A18", LAB_USABLE, 0, NO, 0, 4000,
     "epoll, eventfd, signalfd, timerfd, inotify, pidfd of a child work", {0}},
    {"own-terminal", "A31", LAB_USABLE, 0, NO, 0, 4000, "a terminal of its own can be made", {0}},
};
/* clang-format on */
const size_t lab_n_rows = sizeof(lab_rows) / sizeof(lab_rows[0]);

const struct lab_row *lab_row_find(const char *name) {
    for (size_t i = 0; i < lab_n_rows; i++)
        if (!strcmp(lab_rows[i].name, name))
            return &lab_rows[i];
    return NULL;
}
