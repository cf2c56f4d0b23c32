/* sight_test.c: whether a name is a folder, also where the file system does not say. */
#include "base/test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "launch/launch.h"

static bool is_folder(int dirfd, const char *name, unsigned char type) {
    struct dirent e = {.d_type = type};
    snprintf(e.d_name, sizeof(e.d_name), "%s", name);
    return sight_is_folder(dirfd, &e);
}

TEST(a_type_left_open_is_asked_for) {
    char dir[] = "/tmp/dw-sight-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    _cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0 && mkdirat(fd, "folder", 0700) == 0 && symlinkat("folder", fd, "link") == 0);
    CHECK(is_folder(fd, "folder", DT_DIR));
    CHECK(is_folder(fd, "folder", DT_UNKNOWN));
    CHECK(!is_folder(fd, "folder", DT_REG)); /* what it does say is believed */
    CHECK(!is_folder(fd, "link", DT_UNKNOWN));
    CHECK(!is_folder(fd, "nothing", DT_UNKNOWN));
    CHECK(unlinkat(fd, "folder", AT_REMOVEDIR) == 0 && unlinkat(fd, "link", 0) == 0 && rmdir(dir) == 0);
}

TEST_MAIN()
