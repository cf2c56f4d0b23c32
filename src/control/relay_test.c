/* relay_test.c: the worker's bytes on their way, and readers that do not read. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "control/relay.h"

static char folder[64];
static struct sink out, err_sink;
static struct relay relay;
static int worker[2], reader;

/* A relay whose standard output goes into a pipe that the test reads. */
static void set_up(uint64_t most) {
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    snprintf(folder, sizeof(folder), "/tmp/dw-relay-XXXXXX");
    int run_fd = open(mkdtemp(folder), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    reader = ends[0];
    sink_open(&out, ends[1]);
    sink_open(&err_sink, -1);
    relay_init(&relay);
    relay.run_fd = run_fd;
    relay.step = "main";
    relay.most = most;
    relay.sinks[0] = &out;
    relay.sinks[1] = &err_sink;
    relay_pipes(&relay, worker);
}

static void clean(void) {
    char command[128];
    relay_close(&relay);
    close(relay.run_fd);
    sink_close(&out);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        printf("# cannot remove %s\n", folder);
}

static int turn(int timeout_ms) {
    struct pollfd p[RELAY_POLLS];
    relay_poll(&relay, p);
    int n = poll(p, RELAY_POLLS, timeout_ms);
    if (n > 0)
        relay_serve(&relay, p);
    return n;
}

static size_t copy_size(const char *name) {
    struct stat st;
    char path[64];
    snprintf(path, sizeof(path), "steps/main/%s", name);
    return fstatat(relay.run_fd, path, &st, 0) == 0 ? (size_t)st.st_size : SIZE_MAX;
}

TEST(bytes_pass_and_are_kept) {
    char got[16] = "";
    set_up(1000);
    CHECK_EQ(fd_write_all(worker[0], "hello", 5), 0);
    CHECK_EQ(fd_write_all(worker[1], "oh", 2), 0);
    while (turn(50) > 0)
        ;
    CHECK_EQ(read(reader, got, sizeof(got)), 5);
    CHECK_STR(got, "hello");
    CHECK_EQ(relay.total, 7);
    CHECK_EQ(copy_size("stdout"), 5);
    CHECK_EQ(copy_size("stderr"), 2);
    clean();
}

TEST(silence_makes_no_file) {
    set_up(1000);
    close(worker[0]);
    close(worker[1]);
    while (turn(50) > 0)
        ;
    CHECK_EQ(relay.from[0], -1);
    CHECK_EQ(faccessat(relay.run_fd, "steps", F_OK, 0), -1);
    clean();
}

TEST(the_limit_cuts_exactly_and_counts_both) {
    char got[64];
    set_up(8);
    CHECK_EQ(fd_write_all(worker[1], "12345", 5), 0);
    turn(50);
    CHECK(!relay.exceeded);
    CHECK_EQ(fd_write_all(worker[0], "abcdef", 6), 0);
    turn(50);
    CHECK(relay.exceeded);
    CHECK_EQ(read(reader, got, sizeof(got)), 3);
    CHECK_EQ(copy_size("stdout"), 3);
    CHECK_EQ(relay.total, 11);
    /* what comes now is read and thrown away */
    CHECK_EQ(fd_write_all(worker[0], "more", 4), 0);
    turn(50);
    CHECK_EQ(copy_size("stdout"), 3);
    CHECK_EQ(relay.bytes[0] + relay.bytes[1], 8);
    clean();
}

TEST(exactly_the_limit_is_allowed) {
    set_up(5);
    CHECK_EQ(fd_write_all(worker[0], "12345", 5), 0);
    turn(50);
    CHECK(!relay.exceeded);
    clean();
    set_up(0);
    CHECK_EQ(fd_write_all(worker[0], "1", 1), 0);
    turn(50);
    CHECK(relay.exceeded);
    clean();
}

/* Fills the worker's pipe as long as it takes bytes. */
static size_t pour(int fd) {
    static const char block[4096];
    size_t n = 0;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (ssize_t w; (w = write(fd, block, sizeof(block))) > 0;)
        n += (size_t)w;
    return n;
}

TEST(a_reader_that_sleeps_stops_the_worker_not_us) {
    set_up(100 << 20);
    size_t n = 0;
    for (int i = 0; i < 50; i++) {
        n += pour(worker[0]);
        if (turn(0) == 0)
            break;
    }
    CHECK(n < 1 << 20); /* three pipes' worth and the buffer; then we do not read */
    CHECK_EQ(turn(0), 0);
    CHECK(sink_waits(&out));
    relay_drain(&relay); /* the step's end takes the rest without waiting */
    CHECK_EQ(relay.total, n);
    CHECK_EQ(copy_size("stdout"), n);
    sink_finish(&out, 10, -1);
    CHECK(out.failed == ETIMEDOUT && out.dropped > 0);
    clean();
}

TEST(a_reader_that_goes_away_does_not_disturb) {
    set_up(100 << 20);
    close(reader);
    for (int i = 0; i < 40; i++) {
        pour(worker[0]);
        turn(50);
    }
    CHECK_EQ(out.failed, EPIPE);
    CHECK(relay.total > 1 << 20);
    CHECK_EQ(copy_size("stdout"), relay.total);
    clean();
}

TEST(a_child_that_keeps_the_pipe_keeps_nothing_open) {
    set_up(1 << 20);
    int kept = fcntl(worker[0], F_DUPFD_CLOEXEC, 3);
    CHECK_EQ(fd_write_all(worker[0], "last words", 10), 0);
    relay_drain(&relay);
    CHECK_EQ(relay.total, 10);
    CHECK_EQ(relay.from[0], -1);
    close(kept);
    clean();
}

TEST(no_flag_of_ours_is_changed) {
    int ends[2];
    struct sink s;
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    sink_open(&s, ends[1]);
    CHECK_EQ(s.kind, SINK_OWN);
    CHECK(fcntl(s.fd, F_GETFL) & O_NONBLOCK);       /* of our own description ... */
    CHECK(!(fcntl(ends[1], F_GETFL) & O_NONBLOCK)); /* ... and not of the one we were given */
    sink_close(&s);
    CHECK(fcntl(ends[1], F_GETFD) >= 0);
}

TEST(input_passes_and_ends) {
    int from[2], to;
    char got[16] = "";
    set_up(1000);
    CHECK_EQ(pipe2(from, O_CLOEXEC), 0);
    CHECK_EQ(relay_input_pipe(&relay, from[0], &to), 0);
    CHECK_EQ(fd_write_all(from[1], "in", 2), 0);
    turn(50);
    CHECK_EQ(read(to, got, sizeof(got)), 2);
    CHECK_STR(got, "in");
    close(from[1]);
    turn(50);
    CHECK_EQ(read(to, got, sizeof(got)), 0);
    clean();
}

TEST(input_that_nobody_reads_waits) {
    int from[2], to;
    set_up(1000);
    CHECK_EQ(pipe2(from, O_CLOEXEC), 0);
    CHECK_EQ(relay_input_pipe(&relay, from[0], &to), 0);
    size_t n = 0;
    for (int i = 0; i < 100; i++) {
        n += pour(from[1]);
        if (turn(0) == 0)
            break;
    }
    CHECK(n < 1 << 20);
    close(to);
    turn(50); /* the worker closed its end: ours is closed too, and nothing spins */
    CHECK_EQ(turn(0), 0);
    clean();
}

TEST_MAIN()
