/* wire_test.c: messages arrive as they were sent, or not at all. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "wire/launch.h"

TEST(a_message_arrives_whole) {
    static struct wire_message m;
    int pair[2];
    char text[16];
    CHECK(wire_pair(pair) == 0);
    wire_begin(&m, 7);
    wire_put_u32(&m, 42);
    wire_put_u64(&m, 1ULL << 40);
    wire_put_text(&m, "hello");
    wire_put_fd(&m, 0);
    CHECK(wire_send(pair[0], &m) == 0);
    CHECK_EQ(wire_receive(pair[1], &m), 1);
    CHECK_EQ(m.type, 7);
    CHECK_EQ(wire_get_u32(&m), 42);
    CHECK_EQ(wire_get_u64(&m), 1LL << 40);
    wire_get_text(&m, text, sizeof(text));
    CHECK_STR(text, "hello");
    int fd = wire_take_fd(&m);
    CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
    CHECK(wire_end(&m) == 0);
    close(fd);
    close(pair[0]);
    CHECK_EQ(wire_receive(pair[1], &m), 0);
    close(pair[1]);
}

TEST(what_does_not_fit_breaks_it) {
    static struct wire_message m;
    static char big[WIRE_BODY_MAX + 1];
    char small[4];
    int pair[2];
    memset(big, 'x', WIRE_BODY_MAX);
    wire_begin(&m, 1);
    wire_put_text(&m, big);
    CHECK_EQ(wire_send(0, &m), -EMSGSIZE);
    CHECK(wire_pair(pair) == 0);
    wire_begin(&m, 1);
    wire_put_text(&m, "longer than three");
    CHECK(wire_send(pair[0], &m) == 0);
    CHECK_EQ(wire_receive(pair[1], &m), 1);
    wire_get_text(&m, small, sizeof(small));
    CHECK_EQ(wire_end(&m), -EPROTO);
    CHECK(wire_send(pair[0], &m) == -EMSGSIZE);
    close(pair[0]);
    close(pair[1]);
}

TEST(foreign_packets_are_refused_and_their_descriptors_closed) {
    static struct wire_message m;
    int pair[2], before, after;
    CHECK(wire_pair(pair) == 0);
    before = fcntl(0, F_DUPFD_CLOEXEC, 0);
    close(before);
    wire_begin(&m, 1);
    wire_put_fd(&m, 0);
    CHECK(wire_send(pair[0], &m) == 0);
    CHECK(send(pair[0], "rubbish", 7, 0) == 7);
    CHECK_EQ(wire_receive(pair[1], &m), 1);
    CHECK_EQ(wire_end(&m), -EPROTO); /* nobody took the descriptor */
    CHECK_EQ(wire_receive(pair[1], &m), -EPROTO);
    after = fcntl(0, F_DUPFD_CLOEXEC, 0);
    close(after);
    CHECK_EQ(before, after);
    close(pair[0]);
    CHECK(wire_send(pair[1], &m) == -EPIPE);
    close(pair[1]);
}

TEST(a_last_word_is_heard) {
    static struct wire_message m;
    int pair[2];
    CHECK(wire_pair(pair) == 0);
    wire_begin(&m, LAUNCH_CREATE); /* never read by the other side */
    CHECK(wire_send(pair[0], &m) == 0);
    wire_begin(&m, LAUNCH_FAILED);
    wire_put_u32(&m, 2);
    CHECK(wire_send(pair[1], &m) == 0);
    close(pair[1]);
    CHECK_EQ(wire_receive(pair[0], &m), 1);
    CHECK_EQ(m.type, LAUNCH_FAILED);
    CHECK_EQ(wire_receive(pair[0], &m), 0);
    close(pair[0]);
}

TEST(an_end_survives_the_wire) {
    static struct wire_message m, again;
    struct launch_end e = {.reason = LAUNCH_BY_WALL,
                           .how = LAUNCH_HOW_SIGNALED,
                           .value = 9,
                           .oom_kills = UINT64_MAX,
                           .detail = "x"},
                      f = {0};
    wire_begin(&m, LAUNCH_ENDED);
    launch_put_end(&m, &e);
    launch_get_end(&m, &f);
    CHECK(wire_end(&m) == 0);
    wire_begin(&again, LAUNCH_ENDED);
    launch_put_end(&again, &f);
    CHECK_EQ(again.length, m.length);
    CHECK(memcmp(again.body, m.body, m.length) == 0);
    e.how = LAUNCH_HOW_N;
    wire_begin(&m, LAUNCH_ENDED);
    launch_put_end(&m, &e);
    launch_get_end(&m, &f);
    CHECK_EQ(wire_end(&m), -EPROTO);
}

TEST(a_side_that_left_without_reading_is_gone) {
    static struct wire_message m;
    int pair[2];
    CHECK(wire_pair(pair) == 0);
    wire_begin(&m, 1);
    CHECK_EQ(wire_send(pair[0], &m), 0);
    close(pair[1]);
    CHECK_EQ(wire_send(pair[0], &m), -EPIPE); /* the kernel says ECONNRESET, once */
    CHECK_EQ(wire_send(pair[0], &m), -EPIPE);
    close(pair[0]);
}

TEST(an_error_number_is_bounded) {
    static const struct {
        uint32_t sent;
        int got;
    } rows[] = {{1, -1}, {4095, -4095}, {0, -EPROTO}, {4096, -EPROTO}, {0x80000000u, -EPROTO}, {UINT32_MAX, -EPROTO}};
    static struct wire_message m;
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        wire_begin(&m, 1);
        wire_put_u32(&m, rows[i].sent);
        CHECK_EQ(wire_get_code(&m), rows[i].got);
        CHECK_EQ(wire_end(&m), rows[i].got == -EPROTO ? -EPROTO : 0);
    }
}

TEST_MAIN()
