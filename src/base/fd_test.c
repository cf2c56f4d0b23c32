/* fd_test.c: what fd.c does where the kernel has no openat2 or no close_range, in children under a filter that says so. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"

static char place[] = "/tmp/dw-fd-XXXXXX";

/* Ends a child with the number of the line that does not hold. */
#define NEED(x)                                                                                                        \
    do {                                                                                                               \
        if (!(x))                                                                                                      \
            _exit(__LINE__);                                                                                           \
    } while (0)

/* Takes the system calls `a` and `b` (-1: none) away from this process: ENOSYS. */
static int take_away(int a, int b) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)a, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)b, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ELEMENTS(code), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0;
}

/* The line of `run` that did not hold in a child without these calls, 0 when all did. A line past 255 would be cut. */
static int without(int a, int b, void (*run)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        NEED(take_away(a, b) == 0);
        run();
        _exit(0);
    }
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void paths_by_component(void) {
    struct stat st;
    int d = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;
    NEED(syscall(SYS_openat2, d, "in", NULL, 0) < 0 && errno == ENOSYS); /* it is really not there */
    NEED((fd = fd_open_beneath(d, "in/deep/file", O_RDONLY, 0)) >= 0);
    char text[8] = "";
    NEED(read(fd, text, 4) == 4 && !strcmp(text, "text") && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
    NEED(fd_open_beneath(d, "//in//deep/./file", O_RDONLY, 0) >= 0);
    NEED((fd = fd_open_beneath(d, "", O_PATH | O_DIRECTORY, 0)) >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode));
    NEED(fd_open_beneath(d, ".", O_PATH, 0) >= 0 && fd_open_beneath(d, "/", O_PATH, 0) >= 0);
    NEED(fd_open_beneath(d, "../etc", O_PATH, 0) == -EXDEV);
    NEED(fd_open_beneath(d, "in/../../etc/passwd", O_RDONLY, 0) == -EXDEV);
    NEED(fd_open_beneath(d, "in/deep/..", O_PATH, 0) == -EXDEV); /* stricter than openat2: no harm */
    NEED(fd_open_beneath(d, "out/passwd", O_RDONLY, 0) == -ELOOP);
    NEED(fd_open_beneath(d, "out", O_PATH, 0) == -ELOOP && fd_open_beneath(d, "out", O_RDONLY, 0) == -ELOOP);
    NEED(fd_open_beneath(d, "loop", O_RDONLY, 0) == -ELOOP && fd_open_beneath(d, "loop/x", O_RDONLY, 0) == -ELOOP);
    NEED((fd = fd_open_beneath(d, "out", O_PATH | O_NOFOLLOW, 0)) >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode));
    NEED(fd_open_beneath(d, "in/deep/file/x", O_RDONLY, 0) == -ENOTDIR);
    NEED(fd_open_beneath(d, "none/x", O_RDONLY, 0) == -ENOENT && fd_open_beneath(d, "none", O_RDONLY, 0) == -ENOENT);
    NEED(fd_open_beneath(d, "in/new", O_WRONLY | O_CREAT | O_EXCL, 0640) >= 0);
    NEED(fstatat(d, "in/new", &st, 0) == 0 && (st.st_mode & 0777) == 0640 && unlinkat(d, "in/new", 0) == 0);
    char name[400];
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = 0;
    NEED(fd_open_beneath(d, name, O_RDONLY, 0) == -ENAMETOOLONG);
    NEED(fd_mkdirs_beneath(d, "out/x", 0755) == -ELOOP && fd_mkdirs_beneath(d, "in/made/new", 0755) >= 0);
    NEED(unlinkat(d, "in/made/new", AT_REMOVEDIR) == 0 && unlinkat(d, "in/made", AT_REMOVEDIR) == 0);
}

/* Opens 9, 20 and, where the limit allows, 900. */
static int open_some(void) {
    static const int numbers[] = {9, 20, 900};
    for (size_t i = 0; i < ELEMENTS(numbers); i++)
        if (dup2(0, numbers[i]) < 0 && numbers[i] < 100)
            return -1;
    return 0;
}

static int is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

static void sweep_by_list(void) {
    static const int keep[] = {9};
    NEED(syscall(SYS_close_range, 2000, 2001, 0) < 0 && errno == ENOSYS);
    NEED(open_some() == 0 && is_open(9) && is_open(20));
    NEED(fd_close_from(3, keep, 1) == 0);
    NEED(is_open(0) && is_open(1) && is_open(2) && is_open(9) && !is_open(20) && !is_open(900));
    NEED(fd_close_from(3, NULL, 0) == 0 && !is_open(9));
    NEED(open_some() == 0);
    NEED(fd_close_listed(open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 10, NULL, 0) == 0);
    NEED(is_open(9) && !is_open(20));
    NEED(fd_close_listed(-1, 3, NULL, 0) == -ENOSYS && is_open(9));
}

static void sweep_without_list(void) {
    NEED(open_some() == 0);
    NEED(fd_close_from(3, NULL, 0) == -ENOSYS); /* what cannot be complete is said to be so */
}

static int make_place(void) {
    int d = mkdtemp(place) ? open(place, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (d < 0 || mkdirat(d, "in", 0700) || mkdirat(d, "in/deep", 0700) || symlinkat("/etc", d, "out") ||
        symlinkat("loop", d, "loop"))
        return -1;
    _cleanup_fd_ int fd = openat(d, "in/deep/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(d);
    return write(fd, "text", 4) == 4 ? 0 : -1;
}

TEST(paths_without_openat2) {
    CHECK(make_place() == 0);
    CHECK_EQ(without(SYS_openat2, -1, paths_by_component), 0);
    char command[64];
    snprintf(command, sizeof(command), "rm -r %s", place);
    CHECK(system(command) == 0);
}

TEST(descriptors_without_close_range) {
    CHECK_EQ(without(SYS_close_range, -1, sweep_by_list), 0);
}

TEST(descriptors_without_any_list) {
    CHECK_EQ(without(SYS_close_range, SYS_getdents64, sweep_without_list), 0);
    CHECK_EQ(without(SYS_close_range, SYS_openat, sweep_without_list), 0);
}

TEST_MAIN()
