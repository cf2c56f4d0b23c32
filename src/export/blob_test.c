/* blob_test.c: bytes are stored once, under what they are. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "export/blob.h"

#define RUN "01ARZ3NDEKTSV4RRFFQ69G5FAV"

static char folder[64];

static int state(void) {
    snprintf(folder, sizeof(folder), "/tmp/dw-blob-XXXXXX");
    return open(mkdtemp(folder), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void clean(int fd) {
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    close(fd);
    if (system(command) != 0)
        printf("# cannot remove %s\n", folder);
}

static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(a_blob_has_the_name_of_its_bytes) {
    int s = state();
    _cleanup_fd_ int from = fd_sealed("t", "abc", 3);
    struct blob b;
    struct stat st;
    char path[BLOB_PATH_MAX];
    lseek(from, 0, SEEK_SET);
    CHECK_EQ(blob_store(s, RUN, from, 3, BLOB_MODE_PLAIN, &b, NULL), 0);
    CHECK_STR(b.digest, abc);
    CHECK_EQ(b.size, 3);
    CHECK_STR(blob_path(b.digest, b.mode, path),
              "blobs/sha256/ba/7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_EQ(fstatat(s, path, &st, 0), 0);
    CHECK_EQ(st.st_mode, S_IFREG | 0400);
    /* once more, and as an input with a mode of its own */
    lseek(from, 0, SEEK_SET);
    CHECK_EQ(blob_store(s, RUN, from, 3, BLOB_MODE_PLAIN, &b, NULL), 0);
    lseek(from, 0, SEEK_SET);
    CHECK(!blob_have(s, from, 3, 0755, &b));
    CHECK_EQ(blob_store(s, RUN, from, 3, 04755, &b, NULL), 0);
    lseek(from, 0, SEEK_SET);
    CHECK(blob_have(s, from, 3, 0755, &b));
    CHECK_EQ(fstatat(s, blob_path(b.digest, b.mode, path), &st, 0), 0);
    CHECK_EQ(st.st_mode, S_IFREG | 0755);
    CHECK(strstr(path, ".755"));
    CHECK(faccessat(s, "blobs/incoming/" RUN, F_OK, 0) < 0);
    clean(s);
}

TEST(too_much_leaves_nothing) {
    int s = state();
    struct error err;
    struct blob b = {.size = 77};
    _cleanup_fd_ int from = fd_sealed("t", "abcd", 4);
    lseek(from, 0, SEEK_SET);
    CHECK_EQ(blob_store(s, RUN, from, 3, BLOB_MODE_PLAIN, &b, &err), -EFBIG);
    CHECK_EQ(b.size, 77);
    CHECK(faccessat(s, "blobs/incoming/" RUN, F_OK, 0) < 0);
    CHECK(faccessat(s, "blobs/sha256", F_OK, 0) < 0);
    clean(s);
}

TEST(a_dead_run_is_swept) {
    int s = state();
    CHECK_EQ(mkdirat(s, "blobs", 0700), 0);
    CHECK_EQ(mkdirat(s, "blobs/incoming", 0700), 0);
    close(openat(s, "blobs/incoming/" RUN, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK_EQ(faccessat(s, "blobs/incoming/" RUN, F_OK, 0), 0);
    blob_sweep(s, RUN);
    CHECK(faccessat(s, "blobs/incoming/" RUN, F_OK, 0) < 0);
    clean(s);
}

TEST_MAIN()
