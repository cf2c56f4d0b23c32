/* seccomp_test.c: what the worker's filter lets through, asked of the kernel in forked children. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "jail/confine.h"
#include "jail/seccomp.h"

/* Runs one system call under the filter in a child: its errno, 0 when it succeeded. Without a listener a reported call
 * answers ENOSYS: closed. */
static int errno_of(const struct seccomp_filter *filter, long nr, long a, long b, long c) {
    pid_t pid = fork();
    if (pid == 0) {
        if (confine_no_new_privileges() < 0 || (filter && seccomp_install(filter, NULL) < 0))
            _exit(255);
        long r = syscall(nr, a, b, c, 0L, 0L, 0L);
        syscall(SYS_exit_group, r < 0 ? errno : 0);
    }
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define INSIDE(...)  errno_of(&seccomp_worker, __VA_ARGS__)
#define OUTSIDE(...) errno_of(NULL, __VA_ARGS__)

TEST(ordinary_calls_pass) {
    CHECK_EQ(INSIDE(SYS_getpid, 0, 0, 0), 0);
    CHECK_EQ(INSIDE(SYS_socket, AF_UNIX, SOCK_STREAM, 0), 0);
    CHECK_EQ(INSIDE(SYS_personality, 0xffffffff, 0, 0), 0);
    CHECK_EQ(INSIDE(SYS_unshare, CLONE_FILES, 0, 0), 0);
    CHECK_EQ(INSIDE(SYS_memfd_create, (long)"x", 0, 0), 0);
}

TEST(sockets_of_the_network_go_by_the_supervisor) {
    static const struct {
        int family, protocol;
        bool allowed;
    } rows[] = {{AF_INET, 0, true},
                {AF_INET6, 17, true},
                {AF_NETLINK, NETLINK_ROUTE, true},
                {AF_NETLINK, NETLINK_NETFILTER, false},
                {AF_NETLINK, AF_INET, false},
                {AF_PACKET, 0, false},
                {AF_VSOCK, 0, false},
                {AF_ALG, 0, false}};
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        CHECK_EQ(INSIDE(SYS_socket, rows[i].family, SOCK_DGRAM, rows[i].protocol), ENOSYS); /* nobody listens here */
        CHECK_EQ(seccomp_socket_allowed((uint64_t)rows[i].family, (uint64_t)rows[i].protocol), rows[i].allowed);
    }
    CHECK(!seccomp_socket_allowed(0x200000000ULL | AF_PACKET, 0));
}

TEST(other_socket_families_do_not) {
    static const int families[] = {AF_PACKET, AF_ALG,     AF_VSOCK, AF_BLUETOOTH, AF_CAN, AF_TIPC, AF_KEY,
                                   AF_XDP,    AF_QIPCRTR, 0,        255};
    for (size_t i = 0; i < ELEMENTS(families); i++)
        CHECK_EQ(INSIDE(SYS_socket, families[i], SOCK_DGRAM, 0), ENOSYS);
    /* Netlink protocols whose number is that of an allowed family. */
    CHECK_EQ(INSIDE(SYS_socket, AF_NETLINK, SOCK_RAW, AF_INET), ENOSYS);
    CHECK_EQ(INSIDE(SYS_socket, AF_NETLINK, SOCK_RAW, AF_INET6), ENOSYS);
    CHECK_EQ(INSIDE(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER), ENOSYS);
    CHECK_EQ(INSIDE(SYS_socket, AF_INET, SOCK_STREAM, 132 /* SCTP */), EPROTONOSUPPORT);
    CHECK_EQ(INSIDE(SYS_socket, (long)0x1234567800000000 | AF_PACKET, SOCK_DGRAM, 0), ENOSYS);
    CHECK_EQ(INSIDE(SYS_socketpair, AF_INET, SOCK_STREAM, 0), ENOSYS);
}

TEST(new_namespaces_do_not) {
    static const long flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,    CLONE_NEWNET,
                                 CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80};
    for (size_t i = 0; i < ELEMENTS(flags); i++)
        CHECK_EQ(INSIDE(SYS_unshare, flags[i], 0, 0), ENOSYS);
    CHECK_EQ(INSIDE(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0), ENOSYS);
    CHECK_EQ(INSIDE(SYS_clone3, 0, 0, 0), ENOSYS);
    CHECK(OUTSIDE(SYS_clone3, 0, 0, 0) != ENOSYS); /* the kernel has it: the filter made the difference */
}

TEST(nothing_types_into_a_terminal) {
    CHECK_EQ(INSIDE(SYS_ioctl, 0, TIOCSTI, 0), ENOSYS);
    CHECK_EQ(INSIDE(SYS_ioctl, 0, TIOCLINUX, 0), ENOSYS);
    CHECK_EQ(INSIDE(SYS_ioctl, 0, (long)(0xabcd00000000UL | TIOCSTI), 0), ENOSYS);
    CHECK(INSIDE(SYS_ioctl, -1, TIOCGWINSZ, 0) == EBADF);
}

TEST(process_one_cannot_be_named) {
    CHECK_EQ(INSIDE(SYS_prlimit64, 1, RLIMIT_CPU, 0), ENOSYS);
    CHECK_EQ(INSIDE(SYS_prlimit64, 0, RLIMIT_CPU, 0), 0);
    CHECK_EQ(INSIDE(SYS_sched_setaffinity, 1, 0, 0), ENOSYS);
    CHECK_EQ(INSIDE(SYS_setpriority, PRIO_PROCESS, 1, 0), ENOSYS);
}

TEST(known_danger_and_the_future) {
    static const long refused[] = {
        SYS_mount,      SYS_umount2,          SYS_pivot_root, SYS_chroot,          SYS_setns,
        SYS_bpf,        SYS_keyctl,           SYS_add_key,    SYS_perf_event_open, SYS_io_uring_setup,
        SYS_open_tree,  SYS_move_mount,       SYS_fsopen,     SYS_mount_setattr,   SYS_init_module,
        SYS_kexec_load, SYS_open_by_handle_at};
    for (size_t i = 0; i < ELEMENTS(refused); i++)
        CHECK_EQ(INSIDE(refused[i], 0, 0, 0), ENOSYS);
    CHECK_EQ(INSIDE(SYS_userfaultfd, 0, 0, 0), EPERM);
    CHECK_EQ(INSIDE(999, 0, 0, 0), ENOSYS);
    CHECK_EQ(INSIDE(100000, 0, 0, 0), ENOSYS);
#ifdef __x86_64__
    CHECK_EQ(INSIDE(0x40000000 | SYS_getpid, 0, 0, 0), ENOSYS);
#endif
    CHECK_EQ(INSIDE(SYS_personality, 0x0400000 /* READ_IMPLIES_EXEC */, 0, 0), EPERM);
}

TEST(init_may_wait_and_little_else) {
    CHECK_EQ(errno_of(&seccomp_init, SYS_getpid, 0, 0, 0), 0);
    CHECK_EQ(errno_of(&seccomp_init, SYS_openat, AT_FDCWD, (long)"/", O_RDONLY), ENOSYS);
    CHECK_EQ(errno_of(&seccomp_init, SYS_socket, AF_UNIX, SOCK_STREAM, 0), ENOSYS);
    CHECK_EQ(errno_of(&seccomp_init, SYS_clone, SIGCHLD, 0, 0), ENOSYS);
    CHECK_EQ(errno_of(&seccomp_init, SYS_ptrace, 0, 0, 0), ENOSYS);
}

TEST(reported_calls_have_an_answer) {
    CHECK(seccomp_reported(SYS_mount) && seccomp_reported(SYS_mount)->code == EPERM);
    CHECK(seccomp_reported(SYS_socket) && seccomp_reported(SYS_socket)->code == EAFNOSUPPORT);
    CHECK(seccomp_reported(SYS_io_uring_setup) && seccomp_reported(SYS_io_uring_setup)->code == ENOSYS);
    CHECK(seccomp_reported(SYS_getpid) == NULL);
}

TEST_MAIN()
