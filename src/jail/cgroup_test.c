/* cgroup_test.c: where our folder would stand, on hosts of every kind. */
#include "base/test.h"

#include <errno.h>
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
