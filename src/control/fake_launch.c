/* fake_launch.c: a launcher for tests of the controller: it speaks the protocol of wire/launch.h, builds no walls, and
 * misbehaves on request.
 *
 * The worker's argv[0] says what to do: a path is executed as it is; "@WORD" is a row of the table below. The plan's
 * working folder stands for /out of the finished tree.
 * runs in: tests, in the launcher's place */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/str.h"
#include "plan/plan.h"
#include "wire/launch.h"

static struct wire_message in, out;
static struct plan plan;
static int streams[3];

static const char *word(size_t i) {
    return i < strv_count(plan.argv) ? plan.argv[i] : "";
}

static void say(void) {
    if (wire_send(3, &out) < 0)
        _exit(1);
}

static void hear(uint16_t type) {
    if (wire_receive(3, &in) != 1 || in.type != type)
        _exit(1);
}

static void take_start(void) {
    char run[64], *text;
    size_t n;
    hear(LAUNCH_BEGIN);
    hear(LAUNCH_START);
    wire_get_text(&in, run, sizeof(run));
    wire_get_u32(&in);
    int fd = wire_take_fd(&in);
    for (int i = 0; i < 3; i++)
        streams[i] = wire_take_fd(&in);
    if (wire_end(&in) < 0 || fd_read_file(fd, 1 << 20, &text, &n, NULL) < 0 || plan_unpack(text, n, &plan, NULL) < 0)
        _exit(1);
}

static void say_placed(void) {
    wire_begin(&out, LAUNCH_PLACED);
    wire_put_u32(&out, 0);
    say();
}

static void say_text(uint16_t type, const char *text) {
    wire_begin(&out, type);
    wire_put_text(&out, text);
    say();
}

static void say_failed(void) {
    wire_begin(&out, LAUNCH_FAILED);
    wire_put_u32(&out, ENOENT);
    wire_put_text(&out, "wall seccomp: cannot be built; install a kernel");
    say();
}

static void say_space(void) {
    wire_begin(&out, LAUNCH_SPACE);
    wire_put_u32(&out, 1);
    wire_put_text(&out, "/out");
    int fd = open(plan.workdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    wire_put_fd(&out, fd);
    say();
    close(fd);
}

static void say_started(void) {
    wire_begin(&out, LAUNCH_STARTED);
    wire_put_u32(&out, (uint32_t)getpid());
    say();
}

static void say_ended(const struct launch_end *e) {
    wire_begin(&out, LAUNCH_ENDED);
    launch_put_end(&out, e);
    say();
}

static void say_denied(const char *what, uint64_t times) {
    wire_begin(&out, LAUNCH_DENIED);
    wire_put_text(&out, what);
    wire_put_u64(&out, times);
    say();
}

static void to_running(void) {
    say_placed();
    hear(LAUNCH_CREATE);
    say_text(LAUNCH_ENFORCED, "{\"limits\":{},\"walls\":{}}");
    say_space();
    say_started();
}

static pid_t start_worker(void) {
    char *args[32] = {NULL}, *environment[] = {NULL};
    pid_t pid;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, streams[i], i);
    for (size_t i = 0; i < 31 && *word(i); i++)
        args[i] = (char *)word(i);
    if (!args[0] || posix_spawn(&pid, args[0], &actions, NULL, args, environment) != 0)
        _exit(1);
    for (int i = 0; i < 3; i++)
        close(streams[i]);
    return pid;
}

/* Waits for the worker; what the controller says meanwhile is obeyed. */
static void run_worker(void) {
    struct launch_end e = {0};
    int status, channel = 3;
    to_running();
    pid_t pid = start_worker();
    while (waitpid(pid, &status, WNOHANG) == 0) {
        struct pollfd p = {channel, POLLIN, 0};
        if (poll(&p, 1, 5) <= 0)
            continue;
        int r = wire_receive(3, &in);
        uint32_t value = r == 1 ? wire_get_u32(&in) : 0;
        if (r == 1 && in.type == LAUNCH_SIGNAL)
            kill(pid, (int)value);
        if (r != 1 || in.type == LAUNCH_KILL)
            kill(pid, SIGKILL);
        if (r == 1 && in.type == LAUNCH_KILL)
            e.reason = value;
        if (r != 1)
            channel = -1;
    }
    e.how = WIFEXITED(status) ? LAUNCH_HOW_EXITED : LAUNCH_HOW_SIGNALED;
    e.value = (uint32_t)(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    say_ended(&e);
}

static void die(void) {
    raise(SIGKILL);
}

static void die_placed(void) {
    say_placed();
    hear(LAUNCH_CREATE);
    die();
}

static void die_running(void) {
    to_running();
    die();
}

static void fail_enforced(void) {
    say_placed();
    hear(LAUNCH_CREATE);
    say_failed();
}

static void fail_late(void) {
    to_running();
    say_failed();
}

static void end_early(void) {
    struct launch_end e = {.how = LAUNCH_HOW_EXITED};
    say_ended(&e);
}

static void bad_json(void) {
    say_placed();
    hear(LAUNCH_CREATE);
    say_text(LAUNCH_ENFORCED, "{\"limits\":");
}

static void garbage(void) {
    if (write(3, "garbage", 7) == 7)
        pause();
}

static void bad_end(void) {
    struct launch_end e = {.how = LAUNCH_HOW_EXITED, .value = 4711};
    to_running();
    say_ended(&e);
}

static void wall(void) {
    struct launch_end e = {.reason = LAUNCH_BY_WALL, .how = LAUNCH_HOW_SIGNALED, .value = 9, .wall_us = 2000000};
    to_running();
    say_ended(&e);
}

static void soft(void) {
    struct launch_end e = {.how = LAUNCH_HOW_EXITED, .process_denials = 3, .processes_peak = 64, .oom_kills = 1};
    to_running();
    say_denied("mount", 1);
    say_denied("mount", 4);
    say_denied("a\nb", 1);
    say_ended(&e);
}

static void refuse(void) {
    struct launch_end e = {.how = LAUNCH_HOW_EXITED, .value = 3};
    to_running();
    say_text(LAUNCH_REFUSAL, "the task asks for \033[31mharm");
    say_text(LAUNCH_REFUSAL, "again");
    say_ended(&e);
}

/* Writes to the streams after ENDED-like moments only: everything is in the pipe when the end is announced. */
static void last_words(void) {
    struct launch_end e = {.how = LAUNCH_HOW_EXITED};
    to_running();
    if (write(streams[1], "last words", 10) == 10 && write(streams[2], "err", 3) == 3)
        say_ended(&e);
    if (fork() == 0) { /* keeps the pipes open for a while; nobody may wait for it */
        usleep(700000);
        _exit(0);
    }
}

static const struct {
    const char *name;
    void (*act)(void);
} acts[] = {
    {"@die", die},
    {"@die-placed", die_placed},
    {"@die-running", die_running},
    {"@fail", say_failed},
    {"@fail-enforced", fail_enforced},
    {"@fail-late", fail_late},
    {"@end-early", end_early},
    {"@bad-json", bad_json},
    {"@garbage", garbage},
    {"@bad-end", bad_end},
    {"@wall", wall},
    {"@soft", soft},
    {"@refuse", refuse},
    {"@last-words", last_words},
};

int main(void) {
    take_start();
    for (size_t i = 0; i < ELEMENTS(acts); i++)
        if (!strcmp(acts[i].name, word(0))) {
            acts[i].act();
            return 0;
        }
    run_worker();
    return 0;
}
