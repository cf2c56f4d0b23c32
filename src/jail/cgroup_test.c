/* cgroup_test.c: where our folder would stand, on hosts of every kind. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "jail/cgroup.h"

#define HYBRID                                                                                                         \
    "30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"                                                       \
    "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"                                              \
    "32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                                                \
    "33 30 0:29 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"                                                    \
    "34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

TEST(hybrid_host) {
    struct cgroup g;
    CHECK(cgroup_find("8:pids:/\n4:memory:/job/a\n1:cpu,cpuacct:/\n0::/\n", HYBRID, "doorward-X-0", &g) == 0);
    CHECK_STR(g.path[CGROUP_V1_MEMORY], "/sys/fs/cgroup/memory/job/a/doorward-X-0");
    CHECK_STR(g.path[CGROUP_V1_PIDS], "/sys/fs/cgroup/pids/doorward-X-0");
    CHECK_STR(g.path[CGROUP_V1_CPU], "/sys/fs/cgroup/cpu/doorward-X-0");
    CHECK_STR(g.path[CGROUP_V2], "/sys/fs/cgroup/unified/doorward-X-0");
    cgroup_free(&g);
}

TEST(host_with_v2_only) {
    struct cgroup g;
    CHECK(cgroup_find("0::/user.slice/user-7.slice/x.scope\n",
                      "25 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n", "doorward-X-0", &g) == 0);
    CHECK(g.path[CGROUP_V1_MEMORY] == NULL);
    CHECK_STR(g.path[CGROUP_V2], "/sys/fs/cgroup/user.slice/user-7.slice/x.scope/doorward-X-0");
    cgroup_free(&g);
}

TEST(container_that_sees_a_part_of_the_tree) {
    struct cgroup g;
    CHECK(cgroup_find("4:memory:/docker/abc/in\n",
                      "32 30 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", "doorward-X-0",
                      &g) == 0);
    CHECK_STR(g.path[CGROUP_V1_MEMORY], "/sys/fs/cgroup/memory/in/doorward-X-0");
    cgroup_free(&g);
    /* A name that only begins like the visible root is another group. */
    CHECK(cgroup_find("4:memory:/docker/abcdef\n",
                      "32 30 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", "doorward-X-0",
                      &g) == 0);
    CHECK(g.path[CGROUP_V1_MEMORY] == NULL);
    cgroup_free(&g);
}

TEST(host_without_any_and_broken_texts) {
    static const char *const texts[] = {"", "\n\n", "0", "::", "4:memory", "4:memory:/a", ":::::\n"};
    struct cgroup g;
    for (size_t i = 0; i < ELEMENTS(texts); i++) {
        CHECK(cgroup_find(texts[i], texts[ELEMENTS(texts) - 1 - i], "doorward-X-0", &g) == 0);
        for (int k = 0; k < CGROUP_N; k++)
            CHECK(g.path[k] == NULL && g.dir[k] == -1);
    }
    CHECK_EQ(cgroup_make(&g, CGROUP_V2), -ENOENT);
    uint64_t got;
    CHECK_EQ(cgroup_limit_memory(&g, 1 << 20, &got), -ENOENT);
}

static void put(const char *dir, const char *name, const char *text) {
    char path[96];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
}

static const char *get(const char *dir, const char *name) {
    static char text[64];
    char path[96];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "re");
    if (!f)
        abort();
    text[fread(text, 1, sizeof(text) - 1, f)] = 0;
    fclose(f);
    return text;
}

/* Files as a v2 folder has them; a plain file keeps what is written, as the kernel's do. */
TEST(limits_and_figures_of_version_2) {
    static const struct {
        const char *name, *text;
    } files[] = {{"memory.max", ""},
                 {"memory.swap.max", ""},
                 {"memory.peak", "4096\n"},
                 {"memory.events", "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n"},
                 {"pids.max", ""},
                 {"pids.peak", "9\n"},
                 {"pids.events", "max 4\n"},
                 {"cpu.max", ""},
                 {"cpu.stat", "usage_usec 1234\nuser_usec 1000\n"}};
    char dir[] = "/tmp/dw-cgroup-XXXXXX", command[80];
    struct cgroup g = {.dir = {-1, -1, -1, -1}, .v2_controls = true};
    struct cgroup_figures f;
    uint64_t got;
    CHECK(mkdtemp(dir) != NULL);
    for (size_t i = 0; i < ELEMENTS(files); i++)
        put(dir, files[i].name, files[i].text);
    g.dir[CGROUP_V2] = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(cgroup_limit_memory(&g, 1 << 20, &got) == 0 && got == 1 << 20);
    CHECK_STR(get(dir, "memory.max"), "1048576");
    CHECK_STR(get(dir, "memory.swap.max"), "0");
    CHECK(cgroup_limit_processes(&g, 12, &got) == 0 && got == 12);
    CHECK(cgroup_limit_cpus(&g, 1500, &got) == 0 && got == 1500);
    CHECK_STR(get(dir, "cpu.max"), "150000 100000");
    cgroup_figures(&g, &f);
    CHECK(f.oom_kills == 2 && f.process_denials == 4 && f.memory_peak == 4096 && f.processes_peak == 9 &&
          f.cpu_us == 1234);
    int fds[CGROUP_N];
    CHECK_EQ(cgroup_entries(&g, fds), 0); /* a process is cloned into a v2 folder */
    cgroup_free(&g);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    CHECK(system(command) == 0);
}

TEST(only_our_own_folders_are_cleaned) {
    char dir[] = "/tmp/dw-cgroup-XXXXXX", path[64];
    CHECK(mkdtemp(dir) != NULL);
    CHECK_EQ(cgroup_clean(dir), -EINVAL);
    CHECK_EQ(cgroup_clean("doorward-x"), -EINVAL);
    snprintf(path, sizeof(path), "%s/../doorward-x", dir);
    CHECK_EQ(cgroup_clean(path), -EINVAL);
    snprintf(path, sizeof(path), "%s/doorward-x", dir);
    CHECK_EQ(cgroup_clean(path), 0); /* not there is as good as removed */
    CHECK(mkdir(path, 0700) == 0);
    CHECK_EQ(cgroup_clean(path), 0);
    CHECK(access(path, F_OK) < 0);
    CHECK(rmdir(dir) == 0);
}

TEST(peers_are_named_by_the_kernel) {
    struct cgroup g;
    struct error err;
    CHECK(cgroup_find_here("doorward-X-0", &g, &err) == 0);
    cgroup_free(&g);
}

TEST_MAIN()
