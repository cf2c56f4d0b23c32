/* watch_test.c: what a hostile init or reaper may say. The launcher is ours, the sandbox below it a fake that says what a
 * test wants; no wall stands, so any process will do for one. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "jail/ns.h"
#include "launch/launch.h"

enum side { INIT, REAPER };
enum { BODY = 8192, PACKETS = 24, SECONDS_MOST = 60 };

/* One packet as it goes over the wire. */
struct packet {
    enum side side;
    struct wire_header header;
    unsigned char body[BODY];
    unsigned fds;
};

static struct packet script[PACKETS];
static size_t n_script;

static struct packet *say(enum side side, uint16_t type) {
    struct packet *p = &script[n_script++];
    *p = (struct packet){.side = side, .header = {WIRE_MAGIC, WIRE_VERSION, type, 0, 0}};
    return p;
}

static void put(struct packet *p, const void *bytes, size_t n) {
    memcpy(p->body + p->header.length, bytes, n);
    p->header.length += (uint32_t)n;
}

static void put_u32(struct packet *p, uint32_t v) {
    put(p, &v, sizeof(v));
}

static void put_text(struct packet *p, char c, uint32_t n) {
    char text[BODY];
    memset(text, c, n);
    put_u32(p, n);
    put(p, text, n);
}

static void put_fds(struct packet *p, unsigned n) {
    p->fds = p->header.n_fds = n;
}

static void say_ready(void) {
    n_script = 0;
    say(INIT, INNER_CONFINED);
    say(REAPER, INNER_LISTENER);
}

static void send_packet(int fd, const struct packet *p) {
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
    } control = {0};
    struct iovec parts[2] = {{(void *)&p->header, sizeof(p->header)}, {(void *)p->body, p->header.length % BODY}};
    struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2};
    if (p->fds) {
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * p->fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * p->fds);
        for (unsigned i = 0; i < p->fds; i++)
            memcpy(CMSG_DATA(c) + sizeof(int) * i, &(int){0}, sizeof(int));
    }
    sendmsg(fd, &msg, MSG_NOSIGNAL);
}

/* The sandbox's first process, which speaks for both halves; its child stands for the reaper. */
static void fake_sandbox(const struct launch *l, const int channels[2]) {
    struct error err;
    int ready[2];
    char byte;
    if (pipe2(ready, O_CLOEXEC) < 0)
        _exit(99);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ready[0]);
        if (limits_carry(l, &err) < 0)
            _exit(99);
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 0)
        _exit(99);
    bool confined = false;
    for (size_t i = 0; i < n_script; i++) {
        send_packet(channels[script[i].side], &script[i]);
        confined |= script[i].side == INIT && script[i].header.type == INNER_CONFINED;
        if (script[i].side == REAPER && script[i].header.type == INNER_LISTENER && confined)
            recv(channels[REAPER], &byte, 1, 0); /* until GO, or the end of this process */
    }
    _exit(0);
}

static int open_descriptors(void) {
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* The controller's end: whatever is said is taken. */
static void fake_controller(int fd) {
    static char bytes[sizeof(struct wire_header) + WIRE_BODY_MAX];
    while (recv(fd, bytes, sizeof(bytes), 0) > 0)
        ;
    _exit(0);
}

/* In a process of its own: runs the script against the watch. Its exit status is the error's number (0: none), or 200 and
 * more when the test's own part failed. */
static void launcher(void) {
    static struct launch l = {
        .space = -1, .pidfd = -1, .listener = -1, .loopback = -1, .freezer = -1, .group = {.dir = {-1, -1, -1, -1}}};
    struct error err = {0};
    int inner[2], build[2], channel[2];
    alarm(SECONDS_MOST);
    memset(l.plan.lab_off, 1, sizeof(l.plan.lab_off));
    memset(l.plan.lab_limit_off, 1, sizeof(l.plan.lab_limit_off));
    if (wire_pair(inner) < 0 || wire_pair(build) < 0 || wire_pair(channel) < 0)
        _exit(200);
    int ours = fcntl(channel[0], F_DUPFD_CLOEXEC, 64), theirs = fcntl(channel[1], F_DUPFD_CLOEXEC, 64);
    l.inner = fcntl(inner[0], F_DUPFD_CLOEXEC, 64);
    l.build = fcntl(build[0], F_DUPFD_CLOEXEC, 64);
    const int channels[2] = {fcntl(inner[1], F_DUPFD_CLOEXEC, 64), fcntl(build[1], F_DUPFD_CLOEXEC, 64)};
    fd_close_from(3, (int[]){ours, theirs, l.inner, l.build, channels[0], channels[1]}, 6);
    if (dup2(ours, LAUNCH_CHANNEL) != LAUNCH_CHANNEL)
        _exit(200);
    close(ours);
    l.init = ns_clone(0, -1, &l.pidfd);
    if (l.init == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fake_sandbox(&l, channels);
    }
    close(channels[0]);
    close(channels[1]);
    pid_t controller = fork();
    if (controller == 0) {
        fd_close_from(3, &theirs, 1);
        fake_controller(theirs);
    }
    close(theirs);
    int before = open_descriptors();
    int r = watch_run(&l, &err);
    int kept = (l.space >= 0) + (l.listener >= 0) + (l.loopback >= 0);
    ns_kill(l.pidfd, l.init);
    /* confirm.c holds what it looked up, two descriptors, until the launcher ends. */
    if (open_descriptors() - before - kept > 2)
        _exit(201);
    _exit(r < 0 && !*err.message ? 202 : -r);
}

static int outcome(void) {
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        launcher();
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct packet *ended(enum side side, uint32_t how, uint32_t value, uint32_t text) {
    struct packet *p = say(side, INNER_ENDED);
    put_u32(p, how);
    put_u32(p, value);
    put_text(p, 'x', text);
    return p;
}

TEST(what_may_be_said_is_heard) {
    say_ready();
    CHECK_EQ(outcome(), 0);
    say_ready();
    ended(REAPER, LAUNCH_HOW_EXITED, 3, 511);
    CHECK_EQ(outcome(), 0);
    say_ready();
    for (int i = 0; i < 16; i++)
        put_text(say(INIT, INNER_REFUSAL), 'x', INNER_REASON_MAX);
    CHECK_EQ(outcome(), 0);
    n_script = 0;
    struct packet *p = say(REAPER, INNER_FAILED);
    put_u32(p, ENOSPC);
    put_text(p, 'x', 20);
    CHECK_EQ(outcome(), ENOSPC);
    n_script = 0;
    CHECK_EQ(outcome(), ECHILD); /* it ended while it was set up */
}

TEST(no_worker_runs_before_both_halves_are_confined) {
    n_script = 0;
    say(REAPER, INNER_LISTENER);
    int code = outcome();
    CHECK(code == ECHILD || code == ESRCH); /* it may have ended before it was looked at */
    n_script = 0;
    say(INIT, INNER_CONFINED);
    CHECK_EQ(outcome(), ECHILD);
}

TEST(an_end_out_of_bounds_is_none) {
    static const struct {
        enum side side;
        uint32_t how, value, text;
    } rows[] = {
        {REAPER, LAUNCH_HOW_N, 0, 0}, {REAPER, UINT32_MAX, 0, 0}, {REAPER, 1, 256, 0}, {REAPER, 1, UINT32_MAX, 0},
        {REAPER, 1, 0, 512},          {REAPER, 1, 0, 4000},       {INIT, 1, 0, 0}};
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        say_ready();
        ended(rows[i].side, rows[i].how, rows[i].value, rows[i].text);
        CHECK_EQ(outcome(), EPROTO);
    }
    say_ready();
    ended(REAPER, 1, 0, 0);
    ended(REAPER, 1, 0, 0); /* twice */
    CHECK_EQ(outcome(), EPROTO);
    say_ready();
    put_u32(ended(REAPER, 1, 0, 0), 0); /* more behind it */
    CHECK_EQ(outcome(), EPROTO);
    say_ready();
    put_fds(ended(REAPER, 1, 0, 0), 3);
    CHECK_EQ(outcome(), EPROTO);
    say_ready();
    struct packet *p = ended(REAPER, 1, 0, 8);
    p->body[p->header.length - 3] = 0; /* a NUL in the text */
    CHECK_EQ(outcome(), EPROTO);
}

TEST(nothing_is_said_out_of_turn) {
    static const struct {
        enum side side;
        uint16_t type;
        bool ready; /* after the worker was let go */
    } rows[] = {{REAPER, INNER_ENDED, false},    {INIT, INNER_REFUSAL, false},   {INIT, INNER_LISTENER, false},
                {INIT, INNER_SPACE, false},      {REAPER, INNER_SPACE, true},    {REAPER, INNER_TERMINAL, true},
                {REAPER, INNER_GO, true},        {REAPER, INNER_LISTENER, true}, {REAPER, INNER_REFUSAL, true},
                {INIT, INNER_ENDED, true},       {INIT, INNER_GROUPS, true},     {INIT, 0, true},
                {REAPER, INNER_CONFINED, false}, {INIT, INNER_CONFINED, true},   {INIT, UINT16_MAX, true},
                {REAPER, INNER_BUILD, false},    {REAPER, INNER_TERMINAL, false}};
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        n_script = 0;
        if (rows[i].ready)
            say_ready();
        put_fds(say(rows[i].side, rows[i].type), 1);
        CHECK_EQ(outcome(), EPROTO);
    }
}

TEST(a_refusal_is_bounded) {
    say_ready();
    put_text(say(INIT, INNER_REFUSAL), 'x', INNER_REASON_MAX + 1);
    CHECK_EQ(outcome(), EPROTO);
    say_ready();
    for (int i = 0; i < 17; i++)
        put_text(say(INIT, INNER_REFUSAL), 'x', 1);
    CHECK_EQ(outcome(), EPROTO);
}

TEST(an_error_that_is_none_breaks_the_protocol) {
    static const uint32_t codes[] = {0, 4096, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < ELEMENTS(codes); i++) {
        say_ready();
        struct packet *p = say(INIT, INNER_FAILED);
        put_u32(p, codes[i]);
        put_text(p, 'x', 3);
        CHECK_EQ(outcome(), EPROTO);
    }
}

TEST(packets_that_are_not_ours_end_the_step) {
    for (int i = 0; i < 4; i++) {
        say_ready();
        struct packet *p = ended(REAPER, 1, 0, 0);
        p->header.magic ^= i == 0;
        p->header.version += i == 1;
        p->header.n_fds += i == 2;
        p->header.length += i == 3 ? BODY : 0; /* send_packet sends what there is */
        CHECK_EQ(outcome(), EPROTO);
    }
}

/* xorshift32: the same numbers each time. */
static uint32_t noise(void) {
    static uint32_t x = 20;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x >> 1;
}

/* Whatever is said in whatever order: the watch ends, with an error in words or without one, and keeps no descriptor. */
TEST(whatever_is_said) {
    for (int round = 0; round < 150; round++) {
        n_script = 0;
        if (noise() % 3)
            say_ready();
        for (uint32_t i = noise() % 6 + 1; i > 0; i--) {
            struct packet *p = say(noise() % 2 ? INIT : REAPER, (uint16_t)(noise() % 16));
            for (uint32_t k = noise() % 4; k > 0; k--)
                put_u32(p, noise() % 2 ? noise() % 8 : noise());
            if (noise() % 2)
                put_text(p, (char)noise(), noise() % 600);
            put_fds(p, noise() % 3);
        }
        int code = outcome();
        if (code < 0 || code >= 200)
            printf("# round %d: %d\n", round, code);
        CHECK(code >= 0 && code < 200);
    }
}

TEST_MAIN()
