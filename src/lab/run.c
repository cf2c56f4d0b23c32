/* run.c: see run.h. runs in: cli */
#include "lab/run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define OUTPUT_KEPT (2u << 20) /* more than the output probe writes; a hostile probe's rest is dropped */
#define LINE_MAX_   8192
#define STAGE_MS    10000 /* for the stage to answer */
#define SETTLE_MS   60    /* after an end, before looking for processes that stayed */
#define KILLED_MS   900   /* the same after a killed controller: everything is to be gone within a second */
#define SCRAMBLE    0x5a  /* PROBE_SCRAMBLE of the probe program */

/* --- the stage --- */

/* One line from the stage without its end, within STAGE_MS. -EPIPE when it ended, -ETIMEDOUT. */
static int stage_line(struct lab_stage *s, char *line, size_t room) {
    size_t n = 0;
    for (char c; n + 1 < room; line[n++] = c) {
        struct pollfd p = {s->from, POLLIN, 0};
        if (poll(&p, 1, STAGE_MS) != 1)
            return -ETIMEDOUT;
        if (read(s->from, &c, 1) != 1)
            return -EPIPE;
        if (c == '\n')
            break;
    }
    line[n] = '\0';
    return 0;
}

static int ask(struct lab_stage *s, char *line, size_t room, const char *question, const char *name) {
    char text[128];
    int n = snprintf(text, sizeof(text), "%s%s%s\n", question, name ? " " : "", name ? name : "");
    int r = fd_write_all(s->to, text, (size_t)n);
    return r < 0 ? r : stage_line(s, line, room);
}

/* The stage's folder has a random name of the same form as mkdtemp's. */
static int start_process(const char *probe, bool own_network, struct lab_stage *s, struct error *err) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
        return error_errno(err, -errno, "lab: pipe");
    s->pid = fork();
    if (s->pid < 0)
        return error_errno(err, -errno, "lab: fork");
    if (s->pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        execl(probe, probe, "stage", s->dir, own_network ? "own-network" : NULL, (char *)NULL);
        _exit(127);
    }
    fd_close(to[0]);
    fd_close(from[1]);
    s->to = to[1];
    s->from = from[0];
    return 0;
}

static const char *fact_of(const struct lab_stage *s, const char *key) {
    size_t n = strlen(key);
    for (size_t i = 0; s->facts && s->facts[i]; i++)
        if (!strncmp(s->facts[i], key, n) && s->facts[i][n] == '=')
            return s->facts[i] + n + 1;
    return "";
}

static int unscramble(struct lab_stage *s) {
    const char *hex = fact_of(s, "secret");
    size_t n = strlen(hex) / 2;
    s->secret = calloc(1, n + 1);
    for (size_t i = 0; s->secret && i < n; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1], 0};
        s->secret[i] = (char)(strtoul(two, NULL, 16) ^ SCRAMBLE);
    }
    return s->secret ? 0 : -ENOMEM;
}

/* A terminal for the rows that start under one; its identity becomes facts. */
static int make_terminal(struct lab_stage *s) {
    char line[128];
    struct stat st;
    s->terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (s->terminal < 0 || grantpt(s->terminal) < 0 || unlockpt(s->terminal) < 0 ||
        ptsname_r(s->terminal, s->slave, sizeof(s->slave)) != 0 || stat(s->slave, &st) < 0)
        return -errno;
    snprintf(line, sizeof(line), "tty=%s", s->slave);
    int r = strv_add(&s->facts, line);
    snprintf(line, sizeof(line), "tty_dev=%ju", (uintmax_t)st.st_dev);
    if (r == 0)
        r = strv_add(&s->facts, line);
    snprintf(line, sizeof(line), "tty_ino=%ju", (uintmax_t)st.st_ino);
    return r == 0 ? strv_add(&s->facts, line) : r;
}

int lab_stage_start(const char *probe, const char *parent, bool own_network, struct lab_stage *ret, struct error *err) {
    struct lab_stage s = {.to = -1, .from = -1, .terminal = -1};
    char line[LINE_MAX_] = "";
    snprintf(s.dir, sizeof(s.dir), "%s/doorward-lab-XXXXXX", parent);
    if (!mkdtemp(s.dir))
        return error_errno(err, -errno, "lab: no folder for the stage below %s", parent);
    int r = start_process(probe, own_network, &s, err);
    while (r == 0 && (r = stage_line(&s, line, sizeof(line))) == 0 && strcmp(line, "ready") != 0)
        r = strv_add(&s.facts, line);
    if (r < 0) {
        lab_stage_end(&s);
        return error_errno(err, r, "lab: the stage (%s stage) did not start", probe);
    }
    r = unscramble(&s);
    if (r == 0)
        r = make_terminal(&s);
    if (r < 0) {
        lab_stage_end(&s);
        return error_errno(err, r, "lab: no terminal for the probes");
    }
    *ret = s;
    return 0;
}

void lab_stage_end(struct lab_stage *s) {
    s->to = fd_close(s->to);
    s->terminal = fd_close(s->terminal);
    if (s->pid > 0)
        waitpid(s->pid, NULL, 0);
    s->from = fd_close(s->from);
    if (s->dir[0])
        rmdir(s->dir); /* the stage removed it; this is for one that did not start */
    strv_free(s->facts);
    free(s->secret);
    *s = (struct lab_stage){.to = -1, .from = -1, .terminal = -1};
}

/* --- one attempt --- */

struct attempt {
    const struct lab_bench *bench;
    const struct lab_row *row;
    enum { OUTSIDE, INSIDE, WITHOUT } where;
    int out, err, status; /* write ends, in the child */
};

/* What a careless controller would leave to whoever it starts: 9 a file, 20 a connected socket, 1500 a folder. */
static void leave_descriptors(const struct lab_stage *s) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < 2048 && l.rlim_max >= 2048) {
        l.rlim_cur = 2048;
        setrlimit(RLIMIT_NOFILE, &l);
    }
    char path[300];
    snprintf(path, sizeof(path), "%s/victim/secret", s->dir);
    dup2(open(path, O_RDONLY | O_CLOEXEC), 9);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)atoi(fact_of(s, "tcp")))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        dup2(fd, 20);
    snprintf(path, sizeof(path), "%s/victim", s->dir);
    dup2(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 1500);
}

/* The environment of whoever starts a sandbox holds authority: each of these must stay behind. */
static void leave_environment(const struct lab_stage *s) {
    static const char *const names[] = {"DOORWARD_LAB_CANARY", "SSH_AUTH_SOCK", "AWS_SECRET_ACCESS_KEY",
                                        "DOCKER_HOST",         "GIT_ASKPASS",   "KUBECONFIG"};
    for (size_t i = 0; i < ELEMENTS(names); i++)
        setenv(names[i], s->secret, 1);
}

static void take_terminal(const struct lab_stage *s) {
    setsid();
    int fd = open(s->slave, O_RDWR | O_CLOEXEC);
    ioctl(fd, TIOCSCTTY, 0);
}

static int exec_control(const struct attempt *t) {
    const struct lab_stage *s = t->bench->stage;
    _cleanup_strv_ char **argv = NULL;
    strv_add(&argv, t->bench->probe);
    strv_add(&argv, "control");
    strv_add(&argv, t->row->name);
    for (size_t i = 0; s->facts[i]; i++)
        strv_add(&argv, s->facts[i]);
    execv(t->bench->probe, argv);
    return 127;
}

static _Noreturn void be_attempt(const struct attempt *t) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(null, 0);
    dup2(t->out, 1);
    dup2(t->err, 2);
    if (t->row->flags & LAB_TTY)
        take_terminal(t->bench->stage);
    else
        setpgid(0, 0);
    leave_environment(t->bench->stage);
    if (t->row->flags & LAB_FDS)
        leave_descriptors(t->bench->stage);
    if (t->where == OUTSIDE)
        _exit(exec_control(t));
    int r = t->bench->inside(t->bench->data, t->row, t->where == WITHOUT, t->status);
    fflush(NULL);
    _exit(r);
}

/* Keeps what fits, so that the end of the stream, where the answer stands, is never lost: drops from the front. */
static void keep(struct buf *b, const char *bytes, size_t n) {
    if (b->n + n > OUTPUT_KEPT)
        b->n = 0;
    buf_put(b, bytes, n);
}

static void drain(int fd, struct buf *b) {
    char bytes[16384];
    ssize_t n;
    while ((n = read(fd, bytes, sizeof(bytes))) > 0)
        keep(b, bytes, (size_t)n);
}

struct streams {
    int fds[3]; /* read ends: out, err, status; non-blocking */
    struct buf bytes[3];
};

/* Reads until the child is gone, or `ms` are over, or it has printed `word` (NULL: none); false when it was killed for
 * the time. Streams that something else still holds do not count. */
static bool watch(pid_t pid, struct streams *s, unsigned ms, const char *word, int *ret_status) {
    uint64_t until = clock_monotonic_us() + (uint64_t)ms * 1000;
    _cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool in_time = true;
    for (;;) {
        struct pollfd p[4] = {{pidfd, POLLIN, 0}};
        for (int i = 0; i < 3; i++)
            p[i + 1] = (struct pollfd){s->fds[i], POLLIN, 0};
        uint64_t now = clock_monotonic_us();
        bool said = word && s->bytes[0].n && strstr(s->bytes[0].bytes, word);
        if (now >= until || said) {
            in_time = said;
            kill(pid, SIGKILL); /* alone: what it started has to end without being told */
        }
        poll(p, 4, now < until ? (int)((until - now) / 1000 + 1) : 1000);
        for (int i = 0; i < 3; i++) {
            drain(s->fds[i], &s->bytes[i]);
            if (p[i + 1].revents & (POLLHUP | POLLERR) && !(p[i + 1].revents & POLLIN))
                s->fds[i] = fd_close(s->fds[i]);
        }
        if (waitpid(pid, ret_status, WNOHANG) == pid)
            break;
    }
    for (int i = 0; i < 3; i++)
        drain(s->fds[i], &s->bytes[i]);
    return in_time;
}

/* Why there is no answer: the last words on standard error. */
static void last_words(const struct buf *err, struct lab_attempt *a) {
    size_t n = err->n, from;
    while (n && err->bytes[n - 1] == '\n')
        n--;
    for (from = n; from && err->bytes[from - 1] != '\n';)
        from--;
    snprintf(a->detail, sizeof(a->detail), "%.*s", (int)(n - from), n ? err->bytes + from : "");
    if (!n)
        snprintf(a->detail, sizeof(a->detail), "ended with status %d%s%s and no answer", a->exit,
                 a->stop[0] ? ", " : "", a->stop);
}

static void read_streams(const struct lab_row *row, struct streams *s, int status, struct lab_attempt *a) {
    a->exit = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (s->bytes[2].n)
        snprintf(a->stop, sizeof(a->stop), "%.*s", (int)strcspn(s->bytes[2].bytes, "\n"), s->bytes[2].bytes);
    if (s->bytes[0].n)
        lab_read_answer(row, s->bytes[0].bytes, s->bytes[0].n, a);
    if (row->flags & LAB_KILLED && s->bytes[0].n && strstr(s->bytes[0].bytes, LAB_LEFT)) {
        a->answered = true;
        a->said = LAB_OPEN;
        snprintf(a->detail, sizeof(a->detail), "left a process and was killed");
    }
    if (!a->answered)
        last_words(&s->bytes[1], a);
}

static void look_at_canaries(const struct lab_bench *b, const struct lab_row *row, const char *digest,
                             struct lab_attempt *a) {
    char line[LINE_MAX_] = "", name[64];
    snprintf(name, sizeof(name), " %s", row->name);
    if (row->flags & LAB_HEARD && ask(b->stage, line, sizeof(line), "heard", NULL) == 0)
        a->heard = strstr(line, name) != NULL;
    if (row->flags & LAB_FILES && ask(b->stage, line, sizeof(line), "digest", NULL) == 0)
        a->changed = strcmp(line, digest) != 0;
    if (row->flags & LAB_LINGER) {
        poll(NULL, 0, row->flags & LAB_KILLED ? KILLED_MS : SETTLE_MS);
        if (ask(b->stage, line, sizeof(line), "lingering", row->name) == 0)
            sscanf(line, "lingering %d", &a->lingering);
    }
}

static pid_t start_attempt(struct attempt *t, struct streams *s) {
    int pipes[3][2];
    for (int i = 0; i < 3; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            return -1;
    t->out = pipes[0][1];
    t->err = pipes[1][1];
    t->status = pipes[2][1];
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        be_attempt(t);
    for (int i = 0; i < 3; i++) {
        fd_close(pipes[i][1]);
        s->fds[i] = pipes[i][0];
        fcntl(s->fds[i], F_SETFL, O_NONBLOCK);
    }
    return pid;
}

static void attempt_once(struct attempt *t, struct lab_attempt *a) {
    struct streams s = {.fds = {-1, -1, -1}};
    char digest[128] = "", line[LINE_MAX_];
    int status = 0;
    *a = (struct lab_attempt){.done = true};
    if (t->row->flags & LAB_HEARD)
        ask(t->bench->stage, line, sizeof(line), "heard", NULL); /* forget what came before */
    if (t->row->flags & LAB_FILES)
        ask(t->bench->stage, digest, sizeof(digest), "digest", NULL);
    uint64_t start = clock_monotonic_us();
    pid_t pid = start_attempt(t, &s);
    const char *word = t->row->flags & LAB_KILLED ? LAB_LEFT : NULL;
    if (pid > 0)
        a->hung = !watch(pid, &s, t->row->deadline_ms, word, &status);
    if (a->hung)
        kill(-pid, SIGKILL); /* no need to wait for what another sandbox left running */
    a->ms = (clock_monotonic_us() - start) / 1000;
    if (pid > 0)
        read_streams(t->row, &s, status, a);
    look_at_canaries(t->bench, t->row, digest, a);
    for (int i = 0; i < 3; i++) {
        fd_close(s.fds[i]);
        buf_free(&s.bytes[i]);
    }
}

static void attempt(const struct lab_bench *b, const struct lab_row *row, int where, struct lab_attempt *a) {
    struct attempt t = {.bench = b, .row = row};
    t.where = where == 0 ? OUTSIDE : where == 1 ? INSIDE : WITHOUT;
    if (row->flags & LAB_TWICE)
        attempt_once(&t, a);
    attempt_once(&t, a);
}

void lab_run_row(const struct lab_bench *b, const struct lab_row *row, struct lab_outcome *ret) {
    *ret = (struct lab_outcome){.row = row};
    if (row->flags & LAB_LINKS && !b->can_off) {
        ret->verdict = LAB_IS_ABSENT;
        snprintf(ret->why, sizeof(ret->why), "tried only where the lab makes the plan");
        return;
    }
    attempt(b, row, 0, &ret->before);
    attempt(b, row, 1, &ret->inside);
    if (row->kind != LAB_USABLE)
        attempt(b, row, 0, &ret->after);
    /* An ordinary user has every other wall only inside the user namespace: without it there is no sandbox to try. */
    bool with_off = b->can_off && (b->root || !(row->off >> PLAN_WALL_USERNS & 1));
    if (row->kind == LAB_WALL && with_off)
        attempt(b, row, 2, &ret->off);
    lab_judge(ret, b->root, with_off);
}
