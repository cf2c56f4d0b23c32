/* launch_test.c: copies, masks, id maps, limits read back, the space's figures. What needs mounts or whiteouts runs in a child
 * with namespaces of its own, the same for root and for an ordinary user. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fd.h"
#include "jail/confine.h"
#include "jail/mount.h"
#include "jail/ns.h"
#include "launch/launch.h"

/* Ends a child with the number of the line that does not hold. */
#define NEED(x)                                                                                                        \
    do {                                                                                                               \
        if (!(x))                                                                                                      \
            _exit(__LINE__ > 255 ? 255 : __LINE__);                                                                    \
    } while (0)

static struct error why;

/* The line of `run` that did not hold in a child with a user and a mount namespace of its own; 0 when all did. */
static int inside(void (*run)(void)) {
    int go[2], pidfd = -1, status;
    if (pipe2(go, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = ns_clone(CLONE_NEWUSER | CLONE_NEWNS, -1, &pidfd);
    if (pid == 0) {
        char byte;
        NEED(read(go[0], &byte, 1) == 1);
        run();
        _exit(0);
    }
    struct ns_maps maps = {.uid = {{1000, geteuid(), 1}}, .gid = {{1000, getegid(), 1}}, .n_uid = 1, .n_gid = 1};
    int r = pid < 0 ? pid : ns_write_maps(pid, &maps, 1, &why);
    if (r < 0 || write(go[1], "", 1) != 1)
        return -1;
    r = waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    close(pidfd);
    close(go[0]);
    close(go[1]);
    return r;
}

static int put(int dirfd, const char *name, const char *text) {
    _cleanup_fd_ int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static bool holds(int dirfd, const char *name, const char *text) {
    char got[32] = "";
    _cleanup_fd_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && fd_read_all(fd, got, sizeof(got) - 1) >= 0 && !strcmp(got, text);
}

static bool there(int dirfd, const char *name) {
    struct stat st;
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int folder(int dirfd, const char *name) {
    return mkdirat(dirfd, name, 0755) < 0 ? -errno : openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A tree with something of everything. */
static int make_tree(int d) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timespec times[2] = {{1000000000, 0}, {1000000000, 5}};
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", d);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int hole = openat(d, "hole", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (mkdirat(d, "sub", 0755) || mkdirat(d, "sub/empty", 0750) || mkdirat(d, "build", 0755) || put(d, "a", "one") ||
        put(d, "sub/b.o", "two") || put(d, "sub/c", "three") || put(d, "build/x", "x") || put(d, "none", "") ||
        symlinkat("/nowhere", d, "dangling") || symlinkat("sub", d, "to-sub") || mkfifoat(d, "fifo", 0640) ||
        bind(s, (struct sockaddr *)&address, sizeof(address)) || pwrite(hole, "end", 3, 8 << 20) != 3 ||
        fchmodat(d, "a", 06755, 0) || fchmodat(d, "sub/c", 0444, 0) || utimensat(d, "sub/c", times, 0) ||
        utimensat(d, "to-sub", times, AT_SYMLINK_NOFOLLOW) || utimensat(d, "sub", times, 0))
        return -1;
    close(s);
    close(hole);
    return 0;
}

static void copies(void) {
    struct stat st;
    char text[64] = "";
    unsigned left = 0;
    char *no_objects[] = {(char *)"*.o", (char *)"/build", NULL}, *only_sub[] = {(char *)"/sub/", NULL};
    struct plan_input in = {.kind = PLAN_COPY, .target = (char *)"/in", .directory = true};
    int top = mount_tmpfs(16 << 20, 200, 0755, &why);
    NEED(top >= 0);
    int from = folder(top, "from"), to = folder(top, "to"), some = folder(top, "some"), few = folder(top, "few");
    NEED(from >= 0 && to >= 0 && some >= 0 && few >= 0 && make_tree(from) == 0);
    NEED(copy_tree(&in, from, to, -1, &left, &why) == 0 && left == 1); /* the socket */
    NEED(holds(to, "a", "one") && holds(to, "sub/c", "three") && holds(to, "none", "") && there(to, "sub/empty"));
    NEED(fstatat(to, "a", &st, 0) == 0 && (st.st_mode & 07777) == 0755); /* set-id stays behind */
    NEED(fstatat(to, "sub/c", &st, 0) == 0 && (st.st_mode & 07777) == 0444 && st.st_mtim.tv_sec == 1000000000 &&
         st.st_mtim.tv_nsec == 5);
    NEED(fstatat(to, "sub", &st, 0) == 0 && st.st_mtim.tv_sec == 1000000000);
    NEED(fstatat(to, "sub/empty", &st, 0) == 0 && (st.st_mode & 0777) == 0750);
    NEED(readlinkat(to, "dangling", text, sizeof(text)) == 8 && !memcmp(text, "/nowhere", 8));
    NEED(fstatat(to, "to-sub", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
         st.st_mtim.tv_sec == 1000000000);
    NEED(fstatat(to, "fifo", &st, 0) == 0 && S_ISFIFO(st.st_mode) && !there(to, "socket"));
    NEED(fstatat(to, "hole", &st, 0) == 0 && st.st_size == (8 << 20) + 3 && st.st_blocks * 512 < 1 << 20);
    in.exclude = no_objects;
    NEED(copy_tree(&in, from, some, -1, &left, &why) == 0);
    NEED(there(some, "a") && there(some, "sub/c") && !there(some, "sub/b.o") && !there(some, "build"));
    in.only = only_sub;
    NEED(copy_tree(&in, from, few, -1, &left, &why) == 0);
    NEED(there(few, "sub/c") && there(few, "sub/empty") && !there(few, "sub/b.o") && !there(few, "a"));
    /* No room: it says so, and what to raise. */
    in.exclude = in.only = NULL;
    int tight = mount_tmpfs(1 << 20, 8, 0755, &why);
    NEED(tight >= 0 && copy_tree(&in, from, tight, -1, &left, &why) == -ENOSPC && strstr(why.message, "limits.files"));
}

static void masks(void) {
    struct stat st;
    char *hidden[] = {(char *)"*.o", (char *)"/build", (char *)"dangling", NULL};
    struct plan_input in = {.kind = PLAN_OVERLAY, .target = (char *)"/in", .directory = true, .exclude = hidden};
    int top = mount_tmpfs(16 << 20, 200, 0755, &why);
    int from = folder(top, "from"), to = folder(top, "to"), up = folder(top, "up"), work = folder(top, "wk");
    NEED(from >= 0 && to >= 0 && up >= 0 && work >= 0 && make_tree(from) == 0);
    NEED(mask_tree(&in, from, to, -1, &why) == 0);
    NEED(fstatat(to, "build", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == 0);
    NEED(fstatat(to, "sub/b.o", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode));
    NEED(fstatat(to, "dangling", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode));
    NEED(!there(to, "a") && !there(to, "sub/c") &&
         !there(to, "build/x")); /* nothing but what is hidden and the way to it */
    NEED(fstatat(to, "sub", &st, 0) == 0 && (st.st_mode & 0777) == 0755 && st.st_mtim.tv_sec == 1000000000);
    const int lowers[] = {to, from};
    int over = mount_overlay(lowers, 2, up, work, false, &why);
    NEED(over >= 0 && there(over, "a") && there(over, "sub/c") && !there(over, "sub/b.o") && !there(over, "build") &&
         !there(over, "dangling"));
    NEED(put(over, "sub/b.o", "mine") == 0 && holds(over, "sub/b.o", "mine") && holds(from, "sub/b.o", "two"));
    int tight = mount_tmpfs(1 << 20, 3, 0755, &why);
    NEED(tight >= 0 && mask_tree(&in, from, tight, -1, &why) == -ENOSPC && strstr(why.message, "limits.files"));
}

static void spaces(void) {
    struct plan p = {.limits = {[PLAN_DISK] = 1 << 20, [PLAN_FILES] = 10}};
    struct launch_end end = {0};
    static char block[1 << 16];
    int space = -1;
    NEED(space_make(&p, -1, &space, &why) == 0 && there(space, "tmp") && there(space, "out") && there(space, "shm"));
    NEED(!there(space, "up")); /* no input, no layers */
    space_figures(space, &end);
    NEED(end.disk_full == 0 && end.files_peak >= 4);
    int file = openat(space, "out/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(file, block, sizeof(block)) > 0)
        ;
    NEED(errno == ENOSPC);
    space_figures(space, &end);
    NEED(end.disk_full == 1 && end.disk_peak == 1 << 20);
    NEED(ftruncate(file, 0) == 0);
    char name[] = "tmp/A";
    for (; name[4] < 'Z' && put(space, name, "") == 0; name[4]++)
        ;
    NEED(name[4] - 'A' >= 9 && name[4] - 'A' <= 14 && errno == ENOSPC); /* ten, and what ours leave over */
    space_figures(space, &end);
    NEED(end.disk_full == 3 && end.disk_peak == 1 << 20); /* a peak stays */
    space_figures(-1, &end);
    NEED(end.disk_full == 3);
}

TEST(copies_are_faithful_and_bounded) {
    CHECK_EQ(inside(copies), 0);
}

TEST(masks_hide_and_nothing_else) {
    CHECK_EQ(inside(masks), 0);
}

TEST(the_space_knows_when_it_was_full) {
    CHECK_EQ(inside(spaces), 0);
}

/* What an id of the disk becomes, -1 when the map has no row or two rows for it. */
static int64_t mapped(const struct ns_extent *e, size_t n, uint32_t id) {
    int64_t to = -1;
    for (size_t i = 0; i < n; i++)
        if (id >= e[i].inside && id - e[i].inside < e[i].count)
            to = to >= 0 ? -1 : (int64_t)e[i].outside + (id - e[i].inside);
    return to;
}

TEST(owner_and_worker_change_places) {
    static const uint32_t owners[] = {0, 1, 999, 1000, 1001, 4242, 65534, 65535, 65536, 100000, 4294967294u};
    static const uint32_t selves[] = {0, 1000};
    enum { BASE = 0x70010000 };
    for (size_t o = 0; o < ELEMENTS(owners); o++) {
        for (size_t s = 0; s < ELEMENTS(selves); s++) {
            struct ns_extent e[NS_EXTENTS_MAX];
            size_t n = 0;
            input_swap_ids(e, &n, BASE, owners[o], selves[s]);
            CHECK(n >= 1 && n <= NS_EXTENTS_MAX);
            CHECK_EQ(mapped(e, n, owners[o]), BASE + selves[s]);
            if (owners[o] < LAUNCH_ID_RANGE)
                CHECK_EQ(mapped(e, n, selves[s]), BASE + owners[o]);
            for (size_t i = 0; i < n; i++) { /* the range is the run's own, and nothing in it is given twice */
                CHECK(e[i].count > 0 && e[i].outside >= BASE && e[i].outside - BASE + e[i].count <= LAUNCH_ID_RANGE);
                for (size_t k = 0; k < i; k++)
                    CHECK(e[i].outside >= e[k].outside + e[k].count || e[k].outside >= e[i].outside + e[i].count);
            }
            for (uint32_t id = 0; id < LAUNCH_ID_RANGE; id += 97)
                if (id != owners[o] && id != selves[s])
                    CHECK_EQ(mapped(e, n, id), BASE + id);
        }
    }
}

/* The limits of a child that carries `l`'s, with `spoil` undone. */
static int read_back(const struct launch *l, int spoil) {
    pid_t pid = fork();
    if (pid == 0) {
        char text[4096] = "";
        NEED(limits_carry(l, &why) == 0);
        NEED(spoil < 0 || confine_limit(spoil, 0) == 0);
        int fd = open("/proc/self/limits", O_RDONLY | O_CLOEXEC);
        NEED(fd >= 0 || spoil == RLIMIT_NOFILE);
        if (fd >= 0)
            NEED(fd_read_all(fd, text, sizeof(text) - 1) > 0);
        _exit(limits_check(l, text, &why) == 0 ? 0 : strstr(why.message, "does not hold") ? 1 : 2);
    }
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(limits_are_read_back) {
    struct launch l = {.core = 1, .plan = {.limits = {[PLAN_OPEN_FILES] = 64, [PLAN_PROCESSES] = 50}}};
    CHECK_EQ(read_back(&l, -1), 0);
    CHECK_EQ(read_back(&l, RLIMIT_CORE), 1);
    CHECK_EQ(read_back(&l, RLIMIT_NOFILE), 1);
    CHECK_EQ(read_back(&l, RLIMIT_NPROC), 0); /* not for an rlimit to hold, so nobody's business */
    l.held.limits[PLAN_PROCESSES].by = "rlimit";
    CHECK_EQ(read_back(&l, -1), 0);
    CHECK_EQ(read_back(&l, RLIMIT_NPROC), 1);
    CHECK(limits_check(&l, "", &why) == -EPERM);
    CHECK(limits_check(&l, "Max core file size        unlimited            unlimited            bytes\n", &why) < 0);
}

TEST_MAIN()
