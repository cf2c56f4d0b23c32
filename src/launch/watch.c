/* watch.c: from the set-up child's first word to the kernel's confirmation that nothing of the step is left.
 *
 * The deadline is a timer here, so nothing that the controller does (a slow reader of its output) can hold it up. What
 * init says is a claim: bounded, checked against the phase, and outranked by pidfd and control group.
 * runs in: launcher (untrusted input: init's messages; holds: doorward's own rights until the worker starts) */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/confine.h"
#include "jail/ns.h"
#include "launch/launch.h"

enum { TICK_MS = 1000, TICK_WATCH_MS = 100, SETUP_MS = 60000, GONE_MS = 20000, REASON_ROOM = INNER_REASON_MAX + 1 };
enum { PLACES_N = 4, SPACE_PLACES_MOST = 3 }; /* three of the longest paths fill a message */
enum { W_CHANNEL, W_INNER, W_BUILD, W_PIDFD, W_DEADLINE, W_TICK, W_LISTENER, W_N };

struct watch {
    struct launch *l;
    struct error *err;
    struct pollfd waits[W_N];
    bool gone;      /* init has exited */
    bool confirmed; /* the walls were read back and told */
    bool confined;  /* init's half has confined itself, too */
    bool go;        /* the worker was let go */
    bool told;      /* init has reported the worker's end */
    bool watched;   /* memory is watched here */
    bool is_frozen;
    struct frozen frozen;
    uint64_t frozen_at_us, held_ms; /* held: what was left of the deadline, 0 = it goes on */
    unsigned refusals;
};

static int timer(uint64_t first_ms, uint64_t every_ms) {
    struct itimerspec when = {
        .it_value = {(time_t)(first_ms / 1000), (long)(first_ms % 1000) * 1000000},
        .it_interval = {(time_t)(every_ms / 1000), (long)(every_ms % 1000) * 1000000},
    };
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd >= 0 && timerfd_settime(fd, 0, &when, NULL) < 0)
        fd = fd_close(fd);
    return fd < 0 ? -errno : fd;
}

static void kill_step(struct launch *l) {
    ns_kill(l->pidfd, l->init);
    if (l->group.dir[CGROUP_V2] < 0 || !wall_stands(l, PLAN_WALL_REAP))
        return;
    _cleanup_fd_ int fd = openat(l->group.dir[CGROUP_V2], "cgroup.kill", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        fd_write_all(fd, "1", 1); /* what is not below init (the lab, without the pid wall) goes too */
}

static void end_for(struct launch *l, enum launch_reason reason) {
    if (l->end.reason == LAUNCH_BY_ITSELF)
        l->end.reason = reason;
    kill_step(l);
}

/* --- what init and the set-up child say --- */

static int on_failed(struct watch *w) {
    char text[ERROR_MESSAGE_MAX];
    struct wire_message *m = &w->l->m;
    int code = wire_get_code(m);
    wire_get_text(m, text, sizeof(text));
    return wire_end(m) < 0 ? -EPROTO : error_set(w->err, code, "%s", text);
}

static int on_space(struct watch *w) {
    struct launch *l = w->l;
    if (l->space < 0)
        l->space = wire_take_fd(&l->m);
    while (l->m.n_fds) {
        uint32_t i = wire_get_u32(&l->m);
        if (l->m.broken || i >= l->plan.n_inputs || l->shows[i] >= 0)
            break;
        l->shows[i] = wire_take_fd(&l->m);
    }
    return wire_end(&l->m);
}

static int on_terminal(struct watch *w) {
    struct launch *l = w->l;
    _cleanup_fd_ int fd = wire_take_fd(&l->m);
    if (wire_end(&l->m) < 0 || !l->plan.terminal)
        return -EPROTO;
    wire_begin(&l->m, LAUNCH_TERMINAL);
    wire_put_fd(&l->m, fd);
    return wire_send(LAUNCH_CHANNEL, &l->m);
}

/* The folder outside that covers an export: *ret_inside is where it stands inside. -1 where there is none. `opened` has
 * those of the space, as they are needed. */
static int covering(struct launch *l, const char *path, int opened[PLACES_N], const char **ret_inside) {
    static const struct {
        const char *inside, *folder;
    } places[PLACES_N] = {{"/tmp", "tmp"}, {"/home/agent", "home"}, {"/out", "out"}, {"/dev/shm", "shm"}};
    const struct plan_input *in = plan_input_at(&l->plan, path);
    if (in) {
        *ret_inside = in->target;
        return l->shows[in - l->plan.inputs];
    }
    for (size_t p = 0; p < PLACES_N; p++) {
        size_t len = strlen(places[p].inside);
        if (strncmp(path, places[p].inside, len) != 0 || path[len] != '/')
            continue;
        *ret_inside = places[p].inside;
        if (opened[p] < 0)
            opened[p] = fd_open_beneath(l->space, places[p].folder, O_PATH | O_DIRECTORY, 0);
        return opened[p];
    }
    return -1;
}

static int send_places(struct wire_message *m, uint32_t n) {
    memcpy(m->body, &n, sizeof(n));
    return wire_send(LAUNCH_CHANNEL, m);
}

static void begin_places(struct wire_message *m) {
    wire_begin(m, LAUNCH_SPACE);
    wire_put_u32(m, 0); /* how many: written when it is known */
}

/* What the controller can read exports from after the end: the folder that covers each export, once, as many in a message
 * as it takes. */
static int tell_space(struct launch *l) {
    const char *told[PLAN_EXPORTS_MAX];
    int opened[PLACES_N] = {-1, -1, -1, -1}, r = 0;
    struct wire_message *m = &l->m;
    uint32_t n = 0, n_told = 0;
    begin_places(m);
    for (size_t e = 0; r == 0 && e < l->plan.n_exports; e++) {
        const char *inside = ""; /* stays where nothing covers the export */
        bool again = false;
        int fd = covering(l, l->plan.exports[e].path, opened, &inside);
        for (uint32_t t = 0; t < n_told; t++)
            again |= !strcmp(told[t], inside);
        if (again)
            continue;
        if (n == SPACE_PLACES_MOST) {
            r = send_places(m, n);
            begin_places(m);
            n = 0;
        }
        told[n_told++] = inside;
        wire_put_text(m, inside);
        wire_put_fd(m, fd); /* none breaks the message */
        n++;
    }
    if (r == 0)
        r = send_places(m, n);
    for (size_t p = 0; p < PLACES_N; p++)
        fd_close(opened[p]);
    return r;
}

static int tell_enforced(struct launch *l) {
    _cleanup_buf_ struct buf text = {0};
    if (held_print(l, &text) < 0)
        return -ENOMEM;
    wire_begin(&l->m, LAUNCH_ENFORCED);
    wire_put_text(&l->m, text.bytes);
    return wire_send(LAUNCH_CHANNEL, &l->m);
}

static int start_clock(struct watch *w) {
    struct launch *l = w->l;
    l->begun_us = clock_monotonic_us();
    if (l->plan.lab_limit_off[PLAN_WALL])
        return 0;
    w->waits[W_DEADLINE] = (struct pollfd){timer(l->plan.limits[PLAN_WALL], 0), POLLIN, 0};
    return w->waits[W_DEADLINE].fd < 0 ? w->waits[W_DEADLINE].fd : 0;
}

/* From here on the launcher only watches, by descriptors it has. At the end it removes its control groups, in folders that
 * v1 makes without write permission even for root. */
static int give_up_rights(struct watch *w) {
    if (confine_capabilities(w->l->root ? CAP_DAC_OVERRIDE : -1) < 0 || confine_no_new_privileges() < 0)
        return error_set(w->err, -EPERM, "the launcher cannot give up its capabilities");
    return 0;
}

/* The walls hold around both halves, and that is told: the worker may run. */
static int start_worker(struct watch *w) {
    struct launch *l = w->l;
    if (!w->confirmed || !w->confined)
        return 0;
    int r = start_clock(w);
    if (r < 0)
        return r;
    w->go = l->running = true;
    wire_begin(&l->m, INNER_GO);
    if ((r = wire_send(l->build, &l->m)) < 0)
        return r == -EPIPE ? 0 : r; /* its end says why */
    wire_begin(&l->m, LAUNCH_STARTED);
    wire_put_u32(&l->m, (uint32_t)l->init);
    r = wire_send(LAUNCH_CHANNEL, &l->m);
    return r < 0 ? r : give_up_rights(w);
}

/* Once the reaper's half is confined (its last word is LISTENER), what holds is read back and told, while both halves exec. */
static int confirm(struct watch *w) {
    struct launch *l = w->l;
    int r = confirm_walls(l, w->err);
    if (r == 0)
        r = tell_enforced(l);
    if (r == 0)
        r = tell_space(l);
    w->confirmed = r == 0;
    return r == 0 ? start_worker(w) : r;
}

static int on_listener(struct watch *w) {
    struct launch *l = w->l;
    if (w->confirmed)
        return -EPROTO;
    if (l->m.n_fds > wall_stands(l, PLAN_WALL_NET)) /* no filter, no listener: confirm_walls asks the kernel about it */
        l->listener = wire_take_fd(&l->m);
    if (wall_stands(l, PLAN_WALL_NET))
        l->loopback = wire_take_fd(&l->m);
    if (wire_end(&l->m) < 0)
        return -EPROTO;
    if (l->listener < 0 && l->loopback >= 0)
        ns_loopback_up(l->loopback); /* nothing will tell of the first socket */
    w->waits[W_LISTENER] = (struct pollfd){l->listener, POLLIN, 0};
    return confirm(w);
}

static int on_confined(struct watch *w) {
    if (wire_end(&w->l->m) < 0 || w->confined)
        return -EPROTO;
    w->confined = true;
    return start_worker(w);
}

static int on_ended(struct watch *w) {
    struct launch *l = w->l;
    uint32_t how = wire_get_u32(&l->m), value = wire_get_u32(&l->m);
    char detail[sizeof(l->end.detail)];
    wire_get_text(&l->m, detail, sizeof(detail));
    if (wire_end(&l->m) < 0 || w->told || !w->go || how >= LAUNCH_HOW_N || value > 255)
        return -EPROTO;
    w->told = true;
    l->end.how = how;
    l->end.value = value;
    memcpy(l->end.detail, detail, sizeof(detail));
    return 0;
}

static int on_refusal(struct watch *w) {
    enum { REFUSALS_MAX = 16 };
    static char text[REASON_ROOM];
    struct launch *l = w->l;
    wire_get_text(&l->m, text, sizeof(text));
    if (wire_end(&l->m) < 0 || !l->running || ++w->refusals > REFUSALS_MAX)
        return -EPROTO;
    wire_begin(&l->m, LAUNCH_REFUSAL);
    wire_put_text(&l->m, text);
    return wire_send(LAUNCH_CHANNEL, &l->m);
}

/* What may be said, on which channel, before GO and after it. */
static const struct {
    enum inner_type type;
    bool build; /* by the reaper's half, else by init's */
    bool setup, after;
    int (*handle)(struct watch *w);
} inner_rows[] = {
    {INNER_FAILED, false, true, true, on_failed},     {INNER_FAILED, true, true, true, on_failed},
    {INNER_SPACE, true, true, false, on_space},       {INNER_TERMINAL, true, true, false, on_terminal},
    {INNER_LISTENER, true, true, false, on_listener}, {INNER_ENDED, true, false, true, on_ended},
    {INNER_REFUSAL, false, false, true, on_refusal},  {INNER_CONFINED, false, true, false, on_confined},
};

static int from_inside(struct watch *w, int channel) {
    struct launch *l = w->l;
    bool build = channel == W_BUILD;
    int got = wire_receive(w->waits[channel].fd, &l->m);
    if (got == 0) {
        w->waits[channel].fd = -1;
        return 0; /* init's exit tells the rest */
    }
    for (size_t i = 0; got > 0 && i < ELEMENTS(inner_rows); i++)
        if (inner_rows[i].type == l->m.type && inner_rows[i].build == build &&
            (w->go ? inner_rows[i].after : inner_rows[i].setup))
            return inner_rows[i].handle(w);
    wire_drop(&l->m);
    return -EPROTO;
}

/* All that the set-up said so far. Before anything that init says: it speaks later, but poll(2) looks at one channel
 * after the other, and may have found nothing in the first before both were written. */
static int from_build(struct watch *w) {
    int r = 0;
    while (r == 0 && w->waits[W_BUILD].fd >= 0 && poll(&w->waits[W_BUILD], 1, 0) > 0)
        r = from_inside(w, W_BUILD);
    w->waits[W_BUILD].revents = 0;
    return r;
}

/* --- what the controller says --- */

static int on_signal(struct watch *w) {
    struct launch *l = w->l;
    uint32_t number = wire_get_u32(&l->m);
    if (wire_end(&l->m) < 0 || number == 0 || number >= NSIG)
        return -EPROTO;
    if (!l->running || w->told)
        return 0;
    wire_begin(&l->m, INNER_SIGNAL);
    wire_put_u32(&l->m, number);
    wire_send(l->build, &l->m); /* a step that has just ended is no error */
    return 0;
}

static int on_kill(struct watch *w) {
    uint32_t reason = wire_get_u32(&w->l->m);
    if (wire_end(&w->l->m) < 0 || reason == LAUNCH_BY_ITSELF || reason >= LAUNCH_REASON_N)
        return -EPROTO;
    end_for(w->l, reason);
    return 0;
}

/* --- the operator's switch --- */

static int tell_undone(struct watch *w, const struct error *err) {
    struct launch *l = w->l;
    wire_begin(&l->m, LAUNCH_UNDONE);
    wire_put_u32(&l->m, (uint32_t)-err->code);
    wire_put_text(&l->m, err->message);
    return wire_send(LAUNCH_CHANNEL, &l->m);
}

/* Takes what is left of the deadline off the timer, or puts it back. */
static void hold_clock(struct watch *w) {
    struct itimerspec left = {0}, none = {0};
    int fd = w->waits[W_DEADLINE].fd;
    if (fd < 0 || timerfd_settime(fd, 0, &none, &left) < 0)
        return;
    w->held_ms = (uint64_t)left.it_value.tv_sec * 1000 + (uint64_t)left.it_value.tv_nsec / 1000000 + 1;
}

static void resume_clock(struct watch *w) {
    struct itimerspec when = {
        .it_value = {(time_t)(w->held_ms / 1000), (long)(w->held_ms % 1000) * 1000000},
    };
    if (w->held_ms)
        timerfd_settime(w->waits[W_DEADLINE].fd, 0, &when, NULL);
    w->held_ms = 0;
}

static int on_freeze(struct watch *w) {
    static const char *const by[] = {[FROZEN_BY_CGROUP] = "cgroup-v2", [FROZEN_BY_SIGNALS] = "signals"};
    struct launch *l = w->l;
    struct error err = {0};
    uint32_t hold = wire_get_u32(&l->m);
    if (wire_end(&l->m) < 0 || hold > 1 || w->is_frozen || !l->running)
        return -EPROTO;
    if (freeze_step(l, &w->frozen, &err) < 0)
        return tell_undone(w, &err);
    w->is_frozen = true;
    w->frozen_at_us = clock_monotonic_us();
    if (hold)
        hold_clock(w);
    wire_begin(&l->m, LAUNCH_FROZEN);
    wire_put_text(&l->m, by[w->frozen.by]);
    wire_put_u32(&l->m, w->frozen.processes);
    wire_put_u64(&l->m, w->frozen.took_us);
    return wire_send(LAUNCH_CHANNEL, &l->m);
}

static int on_thaw(struct watch *w) {
    struct launch *l = w->l;
    struct error err = {0};
    if (wire_end(&l->m) < 0 || !w->is_frozen)
        return -EPROTO;
    if (freeze_undo(l, &w->frozen, &err) < 0)
        return tell_undone(w, &err);
    w->is_frozen = false;
    resume_clock(w);
    wire_begin(&l->m, LAUNCH_THAWED);
    wire_put_u64(&l->m, clock_monotonic_us() - w->frozen_at_us);
    return wire_send(LAUNCH_CHANNEL, &l->m);
}

static int on_count(struct watch *w) {
    struct launch *l = w->l;
    struct launch_figures f;
    if (wire_end(&l->m) < 0)
        return -EPROTO;
    figures_now(l, &f);
    wire_begin(&l->m, LAUNCH_FIGURES);
    launch_put_figures(&l->m, &f);
    return wire_send(LAUNCH_CHANNEL, &l->m);
}

static const struct {
    enum launch_type type;
    int (*handle)(struct watch *w);
} channel_rows[] = {
    {LAUNCH_SIGNAL, on_signal}, {LAUNCH_KILL, on_kill},   {LAUNCH_FREEZE, on_freeze},
    {LAUNCH_THAW, on_thaw},     {LAUNCH_COUNT, on_count},
};

static int from_controller(struct watch *w) {
    struct launch *l = w->l;
    int got = wire_receive(LAUNCH_CHANNEL, &l->m);
    if (got == 0)
        return -EPIPE; /* the controller is gone: so is the step */
    for (size_t i = 0; got > 0 && i < ELEMENTS(channel_rows); i++)
        if (channel_rows[i].type == l->m.type)
            return channel_rows[i].handle(w);
    wire_drop(&l->m);
    return -EPROTO;
}

/* --- time --- */

static void on_deadline(struct watch *w) {
    w->waits[W_DEADLINE].fd = fd_close(w->waits[W_DEADLINE].fd);
    end_for(w->l, LAUNCH_BY_WALL);
}

static void on_tick(struct watch *w) {
    static unsigned ticks;
    struct launch *l = w->l;
    uint64_t expired;
    if (read(w->waits[W_TICK].fd, &expired, sizeof(expired)) < 0)
        return;
    space_figures(l->space, &l->end);
    if (!w->watched || ++ticks % (TICK_MS / TICK_WATCH_MS) == 0)
        denied_flush(l);
    uint64_t bytes = w->watched && l->running ? memory_watch(l) : 0;
    if (bytes > l->end.memory_peak || l->end.memory_peak == UINT64_MAX)
        l->end.memory_peak = w->watched ? bytes : UINT64_MAX;
    if (w->watched && bytes > l->plan.limits[PLAN_MEMORY])
        end_for(l, LAUNCH_BY_MEMORY);
}

/* --- the loop and the end --- */

/* Whether everything that the halves said before they ended has been read. Asked anew: poll(2) looks at one descriptor
 * after the other, and may have found nothing in a channel before its last message came and its process ended. */
static bool all_is_read(const struct watch *w) {
    struct pollfd channels[] = {w->waits[W_INNER], w->waits[W_BUILD]};
    return poll(channels, ELEMENTS(channels), 0) <= 0;
}

static int turn(struct watch *w) {
    int r = 0;
    if (w->waits[W_LISTENER].revents & POLLIN)
        denied_answer(w->l);
    else if (w->waits[W_LISTENER].revents)
        w->waits[W_LISTENER].fd = -1; /* nobody is left under the filter */
    if (w->waits[W_BUILD].revents || w->waits[W_INNER].revents)
        r = from_build(w);
    if (r == 0 && w->waits[W_INNER].revents)
        r = from_inside(w, W_INNER);
    if (r == 0 && w->waits[W_CHANNEL].revents)
        r = from_controller(w);
    if (r == 0 && w->waits[W_DEADLINE].revents)
        on_deadline(w);
    if (r == 0 && w->waits[W_TICK].revents)
        on_tick(w);
    if (r == 0 && w->waits[W_PIDFD].revents && all_is_read(w))
        w->gone = true;
    return r;
}

static bool memory_is_watched(const struct launch *l) {
    const char *by = l->held.limits[PLAN_MEMORY].by;
    return by && !strcmp(by, "watch");
}

/* A broken protocol and the like: in words, when nothing said more. */
static int explain(struct watch *w, int r) {
    if (r == -EPROTO)
        return error_set(w->err, r, "a process of doorward's own broke the protocol of the step");
    return w->err->code ? w->err->code : error_errno(w->err, r, "watching the step");
}

int watch_run(struct launch *l, struct error *err) {
    struct watch w = {.l = l, .err = err, .watched = memory_is_watched(l)};
    for (int i = 0; i < W_N; i++)
        w.waits[i] = (struct pollfd){-1, POLLIN, 0};
    w.waits[W_CHANNEL].fd = LAUNCH_CHANNEL;
    w.waits[W_INNER].fd = l->inner;
    w.waits[W_BUILD].fd = l->build;
    w.waits[W_PIDFD].fd = l->pidfd;
    w.waits[W_TICK].fd = timer(w.watched ? TICK_WATCH_MS : TICK_MS, w.watched ? TICK_WATCH_MS : TICK_MS);
    uint64_t begun = clock_monotonic_us();
    int r = 0;
    while (r == 0 && !w.gone) {
        if (poll(w.waits, W_N, w.go ? -1 : SETUP_MS) < 0 && errno != EINTR)
            r = -errno;
        else
            r = turn(&w);
        if (r == 0 && !w.go && !w.gone && clock_monotonic_us() - begun > SETUP_MS * 1000ULL)
            r = error_set(err, -ETIMEDOUT, "the sandbox was not set up within %d s", SETUP_MS / 1000);
    }
    fd_close(w.waits[W_DEADLINE].fd);
    fd_close(w.waits[W_TICK].fd);
    if (r == 0 && !w.go)
        r = error_set(err, -ECHILD,
                      "the sandbox ended while it was set up: a process of it died without a word; if doorward-init is "
                      "damaged, install doorward again");
    return r < 0 ? explain(&w, r) : 0;
}

int watch_end(struct launch *l, struct error *err) {
    struct rusage usage = {0};
    siginfo_t info = {0};
    struct pollfd wait = {l->pidfd, POLLIN, 0};
    kill_step(l);
    int r = poll(&wait, 1, GONE_MS);
    if (r <= 0)
        return error_set(err, -ETIMEDOUT, "the step's processes did not end within %d s", GONE_MS / 1000);
    /* When process 1 of a pid namespace can be reaped, every other process in it and below it is gone:
     * pid_namespaces(7). */
    if (syscall(SYS_waitid, P_PIDFD, l->pidfd, &info, WEXITED, &usage) < 0)
        return error_errno(err, -errno, "cannot confirm the step's end");
    l->end.init_status = info.si_code == CLD_EXITED ? (uint32_t)info.si_status : 128u + (uint32_t)info.si_status;
    l->end.wall_us = l->begun_us ? clock_monotonic_us() - l->begun_us : 0;
    l->end.cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                    (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return 0;
}
