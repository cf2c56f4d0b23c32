/* bench.c: doorward's start beside bare, a kernel floor and bubblewrap.
 *
 * usage: bench --doorward PATH --floor PATH --folder FOLDER [--rounds N] [--files N] [--starts N] [--boxes N]
 * Everything that is compared runs in one go, interleaved: a round starts each contender once, and a ratio is the
 * median of the rounds' own ratios, so that what the machine does besides moves both sides. FOLDER (a fresh one) takes
 * doorward's state and the workspaces. As root everything runs as root and then as an ordinary user (BENCH_UID).
 * Prints Markdown. runs in: bench */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "filter.h"
#include "memory.h"

#define ELEMENTS(a)  (sizeof(a) / sizeof((a)[0]))
#define BENCH_UID    54321 /* an id that owns nothing here */
#define ARGS_MAX     160
#define ROUNDS_MAX   2000
#define STARTS_BATCH 50 /* contenders take turns after so many */
#define BOXES_MAX    500

enum contender { BARE, FLOOR, PLAIN_BWRAP, BWRAP, DOORWARD, CONTENDERS };
static const char *const contender_names[CONTENDERS] = {"bare", "kernel floor", "bubblewrap, plain", "bubblewrap",
                                                        "doorward"};

/* Who runs it: an id, and the environment that belongs to it. */
struct mode {
    const char *name;
    unsigned uid; /* 0: stay who we are */
    bool degrade; /* nothing on this host holds a group's memory and processors for this user */
    char *env[8];
};

static const char *doorward = "build/doorward", *floor_program = "build/bench/floor", *folder;
static int rounds = 200, files_most = 250000, starts = 500, boxes = 50;

static _Noreturn void die(const char *what) {
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n) {
    if (n == 0)
        return 0;
    qsort(v, (size_t)n, sizeof(*v), by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Median of the rounds' ratios a[i] / b[i]. */
static double ratio(const double *a, const double *b, int n) {
    static double v[ROUNDS_MAX];
    for (int i = 0; i < n; i++)
        v[i] = a[i] / b[i];
    return median(v, n);
}

static double median_of(const double *a, int n) {
    static double v[ROUNDS_MAX];
    memcpy(v, a, sizeof(*a) * (size_t)n);
    return median(v, n);
}

/* Two strings put together; owned by the caller. */
static char *text(const char *format, const char *a, const char *b) {
    char *s;
    if (asprintf(&s, format, a, b) < 0) // NOLINT: the formats are ours
        die("memory");
    return s;
}

/* ---- bars ---- */

/* One figure against its bar (docs/performance.md). */
struct bar {
    const char *what, *mode;
    double measured, bar;
    bool at_most;
};
static struct bar bars[32];
static int n_bars;

static void bar(const char *what, const struct mode *mode, double measured, double value, bool at_most) {
    if (n_bars < (int)ELEMENTS(bars))
        bars[n_bars++] = (struct bar){what, mode->name, measured, value, at_most};
}

static void print_bars(void) {
    printf("\n### Bars\n\n| what | as | measured | bar | |\n| --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < n_bars; i++) {
        const struct bar *b = &bars[i];
        bool held = b->at_most ? b->measured <= b->bar : b->measured >= b->bar;
        printf("| %s | %s | %.2f | %s %.2f | %s |\n", b->what, b->mode, b->measured,
               b->at_most ? "at most" : "at least", b->bar, held ? "held" : "**missed**");
    }
}

/* ---- commands ---- */

#define BWRAP_WALLS                                                                                                    \
    "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "1000", "--gid",     \
        "1000", "--hostname", "box", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink",         \
        "usr/sbin", "/sbin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc",    \
        "--dev", "/dev", "--tmpfs", "/tmp", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin"
#define SHOW(path)    "--ro-bind", path, path
#define COVER(path)   "--ro-bind", "/dev/null", path
#define FILTER_FD     "10"
#define FILTER_NUMBER 10

/* How each contender is asked to run a command; the command follows. Plain bubblewrap has every namespace, /usr, /proc, /dev
 * and /tmp. The other one, which the bars are about, gives the worker the view that doorward gives: the same files of
 * /etc, the same writable places, the same covers over /proc, the same variables, a filter of the same size. */
static const char *const prefixes[CONTENDERS][ARGS_MAX] = {
    [BARE] = {NULL},
    [FLOOR] = {"FLOOR", NULL},
    [PLAIN_BWRAP] = {BWRAP_WALLS, NULL},
    [BWRAP] = {BWRAP_WALLS,
               SHOW("/etc/alternatives"),
               SHOW("/etc/ssl/certs"),
               SHOW("/etc/ssl/openssl.cnf"),
               SHOW("/etc/ld.so.cache"),
               SHOW("/etc/passwd"),
               SHOW("/etc/group"),
               SHOW("/etc/hosts"),
               SHOW("/etc/nsswitch.conf"),
               COVER("/proc/keys"),
               COVER("/proc/key-users"),
               COVER("/proc/timer_list"),
               COVER("/proc/interrupts"),
               "--tmpfs",
               "/home/agent",
               "--tmpfs",
               "/out",
               "--tmpfs",
               "/dev/shm",
               "--remount-ro",
               "/",
               "--setenv",
               "HOME",
               "/home/agent",
               "--setenv",
               "USER",
               "agent",
               "--setenv",
               "LANG",
               "C.UTF-8",
               "--setenv",
               "TERM",
               "dumb",
               "--setenv",
               "TMPDIR",
               "/tmp",
               "--seccomp",
               FILTER_FD,
               NULL},
    [DOORWARD] = {"DOORWARD", "run", NULL},
};

/* Writes prefix, options and command into `to`; strings are borrowed. */
static void command(const char *to[ARGS_MAX], const struct mode *mode, enum contender who, const char *overlay,
                    const char *const *argv) {
    const char *degrade = mode->degrade ? "--degrade" : NULL;
    const char *options[] = {degrade, "memory", degrade, "cpus", overlay ? "--overlay" : NULL, overlay};
    int n = 0;
    for (int i = 0; prefixes[who][i]; i++)
        to[n++] = prefixes[who][i];
    if (who == FLOOR)
        to[0] = floor_program;
    if (who == DOORWARD) {
        to[0] = doorward;
        for (size_t i = 0; i < ELEMENTS(options); i += 2)
            if (options[i]) {
                to[n++] = options[i];
                to[n++] = options[i + 1];
            }
        to[n++] = "--";
    }
    for (int i = 0; argv[i] && n < ARGS_MAX - 1; i++)
        to[n++] = argv[i];
    to[n] = NULL;
}

/* Runs in a child that shares our memory: raw calls only, since glibc's setuid would signal threads. */
static void become(const struct mode *mode) {
    if (mode->uid &&
        (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, mode->uid, mode->uid, mode->uid) < 0 ||
         syscall(SYS_setresuid, mode->uid, mode->uid, mode->uid) < 0))
        _exit(125);
}

static int null = -1;
static const char *filter_path;

static _Noreturn __attribute__((noinline)) void run_child(const struct mode *mode, const char *const *argv, int out) {
    become(mode);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    if (strcmp(argv[0], "bwrap") == 0)
        dup2(open(filter_path, O_RDONLY | O_CLOEXEC), FILTER_NUMBER); /* it reads to the end: a fresh one each time */
    execvpe(argv[0], (char *const *)argv, mode->env);
    _exit(127);
}

/* Starts argv; stdin is /dev/null, stdout and stderr go to `out`. Returns the pid. */
static pid_t start(const struct mode *mode, const char *const *argv, int out) {
    pid_t pid = vfork(); // NOLINT: what it saves is what is measured
    if (pid == 0)
        run_child(mode, argv, out); // NOLINT: it only becomes, redirects and executes
    if (pid < 0)
        die("vfork");
    return pid;
}

static int finish(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            die("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Milliseconds from start to reaped; a start that fails ends the bench, since its time means nothing. */
static double timed(const struct mode *mode, const char *const *argv) {
    double from = now_ms();
    int status = finish(start(mode, argv, null));
    double took = now_ms() - from;
    if (status != 0) {
        fprintf(stderr, "bench: %s (as %s) ended with status %d\n", argv[0], mode->name, status);
        exit(1);
    }
    return took;
}

/* True when the command works here; else says why once, with the command's own words. */
static bool works(const struct mode *mode, const char *const *argv, const char *name, bool tell) {
    char text[512] = "";
    int pipefd[2];
    if (pipe2(pipefd, O_CLOEXEC) < 0)
        die("pipe");
    pid_t pid = start(mode, argv, pipefd[1]);
    close(pipefd[1]);
    ssize_t n = read(pipefd[0], text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    int status = finish(pid);
    close(pipefd[0]);
    if (status != 0 && tell)
        printf("\n%s does not run here as %s (status %d): %s\n", name, mode->name, status, text);
    return status == 0;
}

/* ---- starts ---- */

struct samples {
    double ms[CONTENDERS][ROUNDS_MAX];
    bool works[CONTENDERS];
};

static void sample(struct samples *s, const struct mode *mode, const char *const *argv, int n) {
    const char *commands[CONTENDERS][ARGS_MAX];
    for (int c = 0; c < CONTENDERS; c++) {
        command(commands[c], mode, c, NULL, argv);
        s->works[c] = works(mode, commands[c], contender_names[c], true);
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < CONTENDERS; k++) {
            int c = (i + k) % CONTENDERS; /* nobody always follows the same one */
            if (s->works[c])
                s->ms[c][i] = timed(mode, commands[c]);
        }
}

static void cell_ratio(const struct samples *s, int a, int b, int n) {
    if (s->works[a] && s->works[b])
        printf(" %.2f |", ratio(s->ms[a], s->ms[b], n));
    else
        printf(" - |");
}

static void bench_start(const struct mode *mode, const char *title, const char *const *argv, int n, bool is_bar) {
    static struct samples s;
    printf(
        "\n### %s, as %s (%d rounds)\n\n| | ms | x bare | x floor | x bubblewrap |\n| --- | --- | --- | --- | --- |\n",
        title, mode->name, n);
    fflush(stdout);
    sample(&s, mode, argv, n);
    for (int c = 0; c < CONTENDERS; c++) {
        if (!s.works[c])
            continue;
        printf("| %s | %.2f |", contender_names[c], median_of(s.ms[c], n));
        cell_ratio(&s, c, BARE, n);
        cell_ratio(&s, c, FLOOR, n);
        cell_ratio(&s, c, BWRAP, n);
        printf("\n");
    }
    fflush(stdout);
    if (is_bar && s.works[DOORWARD] && s.works[BWRAP])
        bar("start of /bin/true / bubblewrap", mode, ratio(s.ms[DOORWARD], s.ms[BWRAP], n), 0.7, true);
    if (is_bar && s.works[DOORWARD] && s.works[FLOOR])
        bar("start of /bin/true / kernel floor", mode, ratio(s.ms[DOORWARD], s.ms[FLOOR], n), 1.7, true);
}

/* ---- starts per second ---- */

/* Two workers, `n` starts each; returns the seconds until both are done. */
static double two_workers(const struct mode *mode, const char *const *argv, int n) {
    double from = now_ms();
    pid_t workers[2];
    fflush(stdout);
    for (int w = 0; w < 2; w++) {
        workers[w] = fork();
        if (workers[w] < 0)
            die("fork");
        if (workers[w] == 0) {
            for (int i = 0; i < n; i++)
                timed(mode, argv);
            _exit(0);
        }
    }
    for (int w = 0; w < 2; w++)
        if (finish(workers[w]) != 0)
            exit(1);
    return (now_ms() - from) / 1e3;
}

static void bench_throughput(const struct mode *mode) {
    static const char *const argv[] = {"/bin/true", NULL};
    static double rate[CONTENDERS][ROUNDS_MAX];
    const char *commands[CONTENDERS][ARGS_MAX];
    int batches = starts / STARTS_BATCH;
    printf("\n### Starts per second, two at a time, as %s (%d starts each, in turns of %d)\n\n"
           "| | starts/s | x bubblewrap |\n| --- | --- | --- |\n",
           mode->name, starts, STARTS_BATCH);
    bool can[CONTENDERS];
    for (int c = 0; c < CONTENDERS; c++) {
        command(commands[c], mode, c, NULL, argv);
        can[c] = works(mode, commands[c], contender_names[c], true);
    }
    for (int b = 0; b < batches; b++)
        for (int c = 0; c < CONTENDERS; c++)
            rate[c][b] = can[c] ? STARTS_BATCH / two_workers(mode, commands[c], STARTS_BATCH / 2) : 0;
    for (int c = 0; c < CONTENDERS; c++)
        if (can[c] && can[BWRAP])
            printf("| %s | %.0f | %.2f |\n", contender_names[c], median_of(rate[c], batches),
                   ratio(rate[c], rate[BWRAP], batches));
        else if (can[c])
            printf("| %s | %.0f | - |\n", contender_names[c], median_of(rate[c], batches));
    if (can[DOORWARD] && can[BWRAP])
        bar("starts per second, two at a time / bubblewrap", mode, ratio(rate[DOORWARD], rate[BWRAP], batches), 1.3,
            false);
    fflush(stdout);
}

/* ---- memory of idle sandboxes ---- */

static void bench_idle(const struct mode *mode, enum contender who) {
    static const char *const argv[] = {"/bin/sleep", "120", NULL};
    const char *args[ARGS_MAX];
    pid_t pids[BOXES_MAX];
    command(args, mode, who, NULL, argv);
    for (int i = 0; i < boxes; i++)
        pids[i] = start(mode, args, null);
    struct idle r = {0};
    for (int tries = 0; tries < 200; tries++) {
        r = measure_idle();
        if (r.workers >= boxes)
            break;
        usleep(50000);
    }
    usleep(300000); /* whoever is still exiting after set-up is gone then */
    r = measure_idle();
    if (r.workers == boxes && !r.hidden)
        printf("| %s | %.1f | %.0f | %.0f |\n", contender_names[who], (double)r.processes / boxes,
               (double)r.ours_kb / boxes, (double)(r.ours_kb + r.worker_kb) / boxes);
    if (r.workers == boxes && !r.hidden && who == DOORWARD)
        bar("idle sandbox, everything of ours, MB", mode, (double)r.ours_kb / boxes / 1e3, 1.5, true);
    if (r.workers != boxes || r.hidden)
        printf("| %s | - | %d of %d came up%s | - |\n", contender_names[who], r.workers, boxes,
               r.hidden ? ", some may not be read by this user" : "");
    for (int i = 0; i < boxes; i++)
        kill(pids[i], SIGTERM);
    for (int i = 0; i < boxes; i++)
        finish(pids[i]);
    fflush(stdout);
}

static void bench_memory(const struct mode *mode) {
    printf("\n### %d idle sandboxes, as %s: memory of one (proportional set size)\n\n"
           "| | processes besides the command | KB without the command | KB with it |\n| --- | --- | --- | --- |\n",
           boxes, mode->name);
    for (int c = 0; c < CONTENDERS; c++)
        if (c != FLOOR) /* the floor holds nothing but the command */
            bench_idle(mode, c);
}

/* ---- growth with the workspace ---- */

/* A workspace of `n` empty files, a thousand in a folder, owned by the mode's user. */
static void make_workspace(const char *path, int n, const struct mode *mode) {
    if (mkdir(path, 0755) < 0 || (mode->uid && chown(path, mode->uid, mode->uid) < 0))
        die(path);
    int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), in = -1;
    for (int i = 0; i < n; i++) {
        char name[32];
        if (i % 1000 == 0) {
            snprintf(name, sizeof(name), "folder%d", i / 1000);
            if (in >= 0)
                close(in);
            if (mkdirat(top, name, 0755) < 0 || (in = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
                die(name);
            if (mode->uid && fchown(in, mode->uid, mode->uid) < 0)
                die(name);
        }
        snprintf(name, sizeof(name), "file%d", i);
        int fd = openat(in, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        if (fd < 0 || (mode->uid && fchown(fd, mode->uid, mode->uid) < 0))
            die(name);
        close(fd);
    }
    close(in);
    close(top);
}

static void remove_workspace(const char *path) {
    const char *const argv[] = {"/bin/rm", "-rf", path, NULL};
    static const struct mode self = {.name = "self"};
    finish(start(&self, argv, null));
}

static void bench_growth(const struct mode *mode, int n) {
    static double ms[3][ROUNDS_MAX];
    static const char *const argv[] = {"/bin/true", NULL};
    const int sizes[3] = {10, 10000, files_most};
    static const char *const sizes_text[3] = {"small", "medium", "large"};
    char *paths[3], *options[3];
    const char *commands[3][ARGS_MAX];
    bool can = true;
    for (int i = 0; i < 3; i++) {
        paths[i] = text("%s/workspace-%s", folder, sizes_text[i]);
        options[i] = text("%s%s", paths[i], ":/work");
        make_workspace(paths[i], sizes[i], mode);
        command(commands[i], mode, DOORWARD, options[i], argv);
        can &= works(mode, commands[i], "doorward run --overlay", true);
    }
    printf("\n### Growth with the workspace, as %s: doorward run --overlay FOLDER:/work -- /bin/true (%d rounds)\n\n"
           "| files in FOLDER | ms | x 10 files |\n| --- | --- | --- |\n",
           mode->name, n);
    for (int i = 0; can && i < n; i++)
        for (int k = 0; k < 3; k++)
            ms[(i + k) % 3][i] = timed(mode, commands[(i + k) % 3]);
    for (int i = 0; can && i < 3; i++)
        printf("| %d | %.2f | %.2f |\n", sizes[i], median_of(ms[i], n), ratio(ms[i], ms[0], n));
    if (can)
        bar("growth, largest workspace / 10 files", mode, ratio(ms[2], ms[0], n), 1.2, true);
    for (int i = 0; i < 3; i++) {
        remove_workspace(paths[i]);
        free(paths[i]);
        free(options[i]);
    }
    fflush(stdout);
}

/* ---- all ---- */

/* Writes the filter as bubblewrap reads it. */
static void write_filter(void) {
    filter_path = text("%s/%s", folder, "filter");
    build_filter();
    int fd = open(filter_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, filter, filter_length * sizeof(filter[0])) < 0)
        die(filter_path);
    close(fd);
}

static void prepare(struct mode *mode) {
    char *home = text("%s/home-%s", folder, mode->name);
    if (mkdir(home, 0700) < 0 || (mode->uid && chown(home, mode->uid, mode->uid) < 0))
        die(home);
    mode->env[0] = text("PATH=%s%s", "/usr/bin:/bin:/usr/sbin:/sbin", "");
    mode->env[1] = text("HOME=%s%s", home, "");
    mode->env[2] = text("XDG_STATE_HOME=%s%s", home, "/state");
    mode->env[3] = text("XDG_RUNTIME_DIR=%s%s", home, "");
    mode->env[4] = text("LANG=%s%s", "C.UTF-8", "");
    free(home);
}

/* An ordinary user without a delegated control group has to say that memory is only watched. */
static void find_degrade(struct mode *mode) {
    static const char *const argv[] = {"/bin/true", NULL};
    const char *args[ARGS_MAX];
    command(args, mode, DOORWARD, NULL, argv);
    if (works(mode, args, "doorward", false))
        return;
    mode->degrade = true;
    command(args, mode, DOORWARD, NULL, argv);
    mode->degrade = works(mode, args, "doorward", false);
    if (mode->degrade)
        printf("\nAs %s, doorward runs with `--degrade memory --degrade cpus`: this host delegates no control group to "
               "that user.\n",
               mode->name);
}

static void bench_mode(struct mode *mode) {
    static const char *const true_argv[] = {"/bin/true", NULL}, *const python_argv[] = {"/usr/bin/python3", "-c",
                                                                                        "pass", NULL};
    prepare(mode);
    find_degrade(mode);
    bench_start(mode, "Start of /bin/true, start to reaped", true_argv, rounds, true);
    bench_start(mode, "python3 -c pass", python_argv, rounds / 4 + 1, false);
    bench_throughput(mode);
    bench_memory(mode);
    bench_growth(mode, rounds / 2 + 1);
}

/* The options: each a text or a number. */
static const struct {
    const char *name;
    const char **text;
    int *number;
} options[] = {
    {"--doorward", &doorward, NULL}, {"--floor", &floor_program, NULL}, {"--folder", &folder, NULL},
    {"--rounds", NULL, &rounds},     {"--files", NULL, &files_most},    {"--starts", NULL, &starts},
    {"--boxes", NULL, &boxes},
};

static bool read_option(const char *name, const char *value) {
    for (size_t i = 0; i < ELEMENTS(options); i++) {
        if (strcmp(name, options[i].name) != 0)
            continue;
        if (options[i].text)
            *options[i].text = value;
        else
            *options[i].number = (int)strtol(value, NULL, 10);
        return true;
    }
    return false;
}

int main(int argc, char **argv) {
    bool ok = argc % 2 == 1;
    for (int i = 1; ok && i < argc; i += 2)
        ok = read_option(argv[i], argv[i + 1]);
    if (!ok || !folder || rounds < 4 || rounds > ROUNDS_MAX || files_most < 10 || starts < STARTS_BATCH || boxes < 1 ||
        boxes > BOXES_MAX) {
        fprintf(stderr,
                "usage: bench --doorward PATH --floor PATH --folder FOLDER [--rounds 4..%d] [--files N] "
                "[--starts %d...] [--boxes 1..%d]\n",
                ROUNDS_MAX, STARTS_BATCH, BOXES_MAX);
        return 2;
    }
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    write_filter();
    struct mode root = {.name = "root"}, user = {.name = "user", .uid = geteuid() ? 0 : BENCH_UID};
    if (geteuid() == 0)
        bench_mode(&root);
    bench_mode(&user);
    print_bars();
    return 0;
}
