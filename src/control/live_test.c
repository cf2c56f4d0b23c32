/* live_test.c: the table of live runs, and places. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/str.h"
#include "control/ids.h"
#include "control/live.h"

static char folder[64];

static struct place set_up(void) {
    struct place p = PLACE_EMPTY;
    struct error err;
    snprintf(folder, sizeof(folder), "/tmp/dw-live-XXXXXX");
    setenv("XDG_STATE_HOME", mkdtemp(folder), 1);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    if (place_find(&p, &err) < 0 || place_open(&p, &err) < 0)
        printf("# %s\n", err.message);
    return p;
}

static void clean(struct place *p) {
    char command[128];
    place_close(p);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        printf("# cannot remove %s\n", folder);
}

struct seen {
    int n, answer;
    char run[ULID_TEXT];
};

static int see(void *data, const char run[ULID_TEXT]) {
    struct seen *s = data;
    s->n++;
    memcpy(s->run, run, ULID_TEXT);
    return s->answer;
}

static int count_dead(const struct place *p, int answer, char run[ULID_TEXT]) {
    struct seen s = {.answer = answer};
    if (live_each_dead(p, see, &s, NULL) < 0)
        return -1;
    memcpy(run, s.run, ULID_TEXT);
    return s.n;
}

TEST(a_live_run_is_not_dead_and_an_ended_one_is_gone) {
    struct place p = set_up();
    struct live l = LIVE_EMPTY;
    char run[ULID_TEXT], got[ULID_TEXT];
    ulid_new(run);
    CHECK_EQ(count_dead(&p, 0, got), 0);
    CHECK_EQ(live_take(&p, run, &l, NULL), 0);
    CHECK_EQ(count_dead(&p, 0, got), 0);
    live_leave(&l);
    CHECK_EQ(l.fd, -1);
    CHECK_EQ(count_dead(&p, 0, got), 0);
    clean(&p);
}

TEST(a_dead_run_is_found_until_it_is_dealt_with) {
    struct place p = set_up();
    struct live l = LIVE_EMPTY, second = LIVE_EMPTY;
    char run[ULID_TEXT], other[ULID_TEXT], got[ULID_TEXT];
    ulid_new(run);
    ulid_new(other);
    pid_t child = fork();
    if (child == 0) {
        struct live mine = LIVE_EMPTY;
        if (live_take(&p, run, &mine, NULL) == 0)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    CHECK_EQ(live_take(&p, other, &second, NULL), 0); /* does not take over the dead one's slot */
    CHECK_EQ(second.slot, 1);
    CHECK_EQ(count_dead(&p, -EIO, got), 1);
    CHECK_STR(got, run);
    CHECK_EQ(count_dead(&p, 0, got), 1);
    CHECK_STR(got, run);
    CHECK_EQ(count_dead(&p, 0, got), 0);
    CHECK_EQ(live_take(&p, run, &l, NULL), 0);
    CHECK_EQ(l.slot, 0);
    live_leave(&l);
    live_leave(&second);
    clean(&p);
}

TEST(a_controller_that_gives_up_is_found) {
    struct place p = set_up();
    struct live l = LIVE_EMPTY;
    char run[ULID_TEXT], got[ULID_TEXT];
    ulid_new(run);
    CHECK_EQ(live_take(&p, run, &l, NULL), 0);
    live_close(&l);
    CHECK_EQ(count_dead(&p, 0, got), 1);
    clean(&p);
}

TEST(a_damaged_table_is_no_trap) {
    struct place p = set_up();
    struct live l = LIVE_EMPTY;
    char run[ULID_TEXT], got[ULID_TEXT];
    int fd = openat(p.state_fd, LIVE_NAME, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK_EQ(fd_write_all(fd, "garbage\0\n\n01ARZ3NDEKTSV4RRFFQ69G5FA", 36), 0);
    close(fd);
    CHECK_EQ(count_dead(&p, 0, got), 0);
    ulid_new(run);
    CHECK_EQ(live_take(&p, run, &l, NULL), 0);
    live_leave(&l);
    clean(&p);
}

TEST(ids_are_not_shared) {
    struct place p = set_up();
    struct ids a = IDS_EMPTY, b = IDS_EMPTY;
    p.root = true;
    CHECK_EQ(ids_take(&p, 4095, &a, NULL), 0);
    CHECK_EQ(ids_take(&p, 4095, &b, NULL), 0);
    CHECK_EQ(a.base, 0x7fff0000);
    CHECK_EQ(b.base, 0x70000000);
    ids_leave(&a);
    ids_leave(&b);
    CHECK_EQ(ids_take(&p, 4095, &a, NULL), 0);
    CHECK_EQ(a.slot, 4095);
    ids_leave(&a);
    p.root = false;
    CHECK_EQ(ids_take(&p, 1, &a, NULL), 0);
    CHECK_EQ(a.base, 0);
    clean(&p);
}

TEST(an_open_folder_is_refused) {
    struct place p = set_up();
    struct error err;
    struct stat st;
    CHECK_EQ(fstat(p.state_fd, &st), 0);
    CHECK_EQ(st.st_mode & 07777, 0700);
    CHECK_EQ(fchmod(p.state_fd, 0750), 0);
    CHECK_EQ(place_open(&p, &err), -EPERM);
    CHECK(strstr(err.message, "chmod 700 "));
    clean(&p);
}

TEST(a_link_is_no_state_folder) {
    struct place p = set_up(), q = PLACE_EMPTY;
    struct error err;
    char path[128];
    snprintf(path, sizeof(path), "%s/other", folder);
    CHECK_EQ(mkdir(path, 0700), 0);
    setenv("XDG_STATE_HOME", path, 1);
    snprintf(path, sizeof(path), "%s/other/doorward", folder);
    CHECK_EQ(symlink("/tmp", path), 0);
    CHECK_EQ(place_find(&q, &err), 0);
    CHECK(place_open(&q, &err) < 0);
    CHECK(strstr(err.message, "is not a folder"));
    place_close(&q);
    clean(&p);
}

TEST(places_need_absolute_paths) {
    struct place p = PLACE_EMPTY;
    struct error err;
    setenv("XDG_STATE_HOME", "relative", 1);
    CHECK_EQ(place_find(&p, &err), -EINVAL);
    CHECK(strstr(err.message, "XDG_STATE_HOME"));
    setenv("XDG_STATE_HOME", "/a\xff", 1);
    CHECK_EQ(place_find(&p, &err), -EINVAL);
    unsetenv("XDG_STATE_HOME");
    unsetenv("XDG_RUNTIME_DIR");
    if (geteuid() == 0) {
        CHECK_EQ(place_find(&p, &err), 0);
        CHECK_STR(p.state, "/var/lib/doorward");
        CHECK_STR(p.runtime, "/run/doorward");
        CHECK_STR(p.config, "/etc/doorward");
    } else {
        setenv("HOME", "/h", 1);
        CHECK_EQ(place_find(&p, &err), 0);
        CHECK_STR(p.state, "/h/.local/state/doorward");
        CHECK_STR(p.runtime, "/h/.local/state/doorward/run");
    }
    place_close(&p);
}

TEST(folders_are_made_on_demand) {
    struct place p = set_up();
    char run[ULID_TEXT];
    struct error err;
    ulid_new(run);
    CHECK_EQ(place_open_run(&p, run, false, &err), -ENOENT);
    int fd = place_open_run(&p, run, true, &err);
    CHECK(fd >= 0);
    close(fd);
    CHECK_EQ(place_open_run(&p, run, true, &err), -EEXIST);
    fd = place_open_run(&p, run, false, &err);
    CHECK(fd >= 0);
    close(fd);
    clean(&p);
}

TEST_MAIN()
