/* collect_test.c: what a hostile tree may hold instead of the file that was declared. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "base/fd.h"
#include "export/collect.h"

#define RUN "01ARZ3NDEKTSV4RRFFQ69G5FAV"

static char folder[64];
static int state = -1, tree = -1;
static struct collect_space space;

static void set_up(void) {
    snprintf(folder, sizeof(folder), "/tmp/dw-collect-XXXXXX");
    int top = open(mkdtemp(folder), O_PATH | O_DIRECTORY | O_CLOEXEC);
    mkdirat(top, "state", 0700);
    mkdirat(top, "out", 0700);
    state = openat(top, "state", O_PATH | O_DIRECTORY | O_CLOEXEC);
    tree = openat(top, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(top);
    collect_add_place(&space, "/out", fcntl(tree, F_DUPFD_CLOEXEC, 3));
}

static void clean(void) {
    char command[128];
    collect_free(&space);
    close(state);
    close(tree);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        printf("# cannot remove %s\n", folder);
}

static void make_file(const char *name, const char *bytes, mode_t mode) {
    int fd = openat(tree, name, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0600);
    fd_write_all(fd, bytes, strlen(bytes));
    fchmod(fd, mode);
    close(fd);
}

static struct collected collect(const char *path, uint64_t max, bool executable) {
    struct collected c;
    struct plan_export e = {.name = (char *)"x", .path = (char *)path, .max = max, .executable = executable};
    collect_export(&space, &e, state, RUN, &c);
    return c;
}

TEST(a_regular_file_is_collected) {
    set_up();
    mkdirat(tree, "a", 0700);
    make_file("a/f", "abc", 0644);
    struct collected c = collect("/out/a/f", 3, false);
    CHECK_EQ(c.result, COLLECT_DONE);
    CHECK_EQ(c.blob.size, 3);
    CHECK(!c.made_plain && !c.set_id);
    CHECK_EQ(linkat(tree, "a/f", tree, "second", 0), 0);
    CHECK_EQ(collect("/out/second", 3, false).result, COLLECT_DONE);
    clean();
}

TEST(a_place_may_be_the_file_itself) {
    set_up();
    make_file("f", "abc", 0644);
    CHECK_EQ(collect_add_place(&space, "/work/f", openat(tree, "f", O_PATH | O_CLOEXEC)), 0);
    CHECK_EQ(collect_add_place(&space, "/work", openat(tree, ".", O_PATH | O_CLOEXEC)), 0);
    struct collected c = collect("/work/f", 3, false);
    CHECK_EQ(c.result, COLLECT_DONE);
    CHECK_EQ(c.blob.size, 3);
    CHECK_EQ(collect("/work", 3, false).result, COLLECT_NOT_REGULAR);
    CHECK_EQ(collect("/work/f/x", 3, false).result, COLLECT_MISSING);
    clean();
}

TEST(bits_are_stripped) {
    set_up();
    make_file("tool", "abc", 06755);
    struct collected c = collect("/out/tool", 10, false);
    CHECK_EQ(c.result, COLLECT_DONE);
    CHECK_EQ(c.blob.mode, 0400);
    CHECK(c.made_plain && c.set_id);
    c = collect("/out/tool", 10, true);
    CHECK_EQ(c.blob.mode, 0500);
    CHECK(!c.made_plain && c.set_id);
    clean();
}

TEST(sizes_count_with_holes) {
    set_up();
    make_file("big", "", 0600);
    int fd = openat(tree, "big", O_WRONLY | O_CLOEXEC);
    CHECK_EQ(ftruncate(fd, 1LL << 40), 0);
    close(fd);
    CHECK_EQ(collect("/out/big", 1 << 20, false).result, COLLECT_TOO_LARGE);
    make_file("four", "abcd", 0600);
    CHECK_EQ(collect("/out/four", 3, false).result, COLLECT_TOO_LARGE);
    CHECK_EQ(collect("/out/four", 4, false).result, COLLECT_DONE);
    clean();
}

TEST(other_types_are_refused) {
    set_up();
    mkdirat(tree, "folder", 0700);
    mkfifoat(tree, "fifo", 0600);
    CHECK_EQ(symlinkat("/etc/passwd", tree, "link"), 0);
    CHECK_EQ(symlinkat("/etc", tree, "way"), 0);
    CHECK_EQ(symlinkat("loop", tree, "loop"), 0);
    make_file("plain", "x", 0600);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/out/socket", folder);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(s, (struct sockaddr *)&address, sizeof(address)), 0);
    close(s);
    static const struct {
        const char *path;
        enum collect_result result;
    } cases[] = {
        {"/out/folder", COLLECT_NOT_REGULAR}, {"/out/fifo", COLLECT_NOT_REGULAR}, {"/out/link", COLLECT_LINK},
        {"/out/way/passwd", COLLECT_LINK},    {"/out/loop", COLLECT_LINK},        {"/out/loop/x", COLLECT_LINK},
        {"/out/socket", COLLECT_NOT_REGULAR}, {"/out/plain/x", COLLECT_MISSING},  {"/out/none", COLLECT_MISSING},
        {"/out/none/x", COLLECT_MISSING},     {"/tmp/x", COLLECT_UNREADABLE},     {"/outer/x", COLLECT_UNREADABLE},
    };
    for (size_t i = 0; i < ELEMENTS(cases); i++) {
        struct collected c = collect(cases[i].path, 1 << 20, true);
        if (c.result != cases[i].result)
            printf("# %s: %s (%s)\n", cases[i].path, collect_result_names[c.result], c.why);
        CHECK_EQ(c.result, cases[i].result);
        CHECK(c.why[0]);
    }
    if (geteuid() == 0 && mknodat(tree, "device", S_IFCHR | 0600, makedev(1, 5)) == 0)
        CHECK_EQ(collect("/out/device", 1 << 20, true).result, COLLECT_NOT_REGULAR);
    CHECK(faccessat(state, "blobs", F_OK, 0) < 0);
    clean();
}

TEST_MAIN()
