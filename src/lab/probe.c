/* probe.c: doorward-probe, the program that the lab runs inside a sandbox.
 *
 *     doorward-probe run NAME [KEY=VALUE ...]      try to get through; prints one JSON line
 *     doorward-probe control NAME [KEY=VALUE ...]  the same action, run outside where it must succeed
 *     doorward-probe list [--json]
 *     doorward-probe stage DIR                     outside: lay out canaries, listen, answer what was heard
 *
 * Static, links base only, and talks to the kernel by raw calls where a library might refuse first.
 * runs in: probe, inside and outside (untrusted input: none; holds: nothing) */
#include "lab/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/str.h"

static const struct probe *const themes[] = {probes_files,    probes_processes, probes_kernel, probes_network,
                                             probes_terminal, probes_limits,    probes_usable, probes_setup};

static probe_fn function_of(const char *name) {
    for (size_t t = 0; t < ELEMENTS(themes); t++)
        for (const struct probe *p = themes[t]; p->name; p++)
            if (!strcmp(p->name, name))
                return p->run;
    return NULL;
}

enum lab_result say(struct call *c, enum lab_result r, int err, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->detail, sizeof(c->detail), format, ap);
    va_end(ap);
    c->err = err < 0 ? -err : err;
    return r;
}

const char *fact_next(const struct call *c, const char *key, size_t *at) {
    size_t n = strlen(key);
    for (; c->facts[*at]; (*at)++) {
        const char *f = c->facts[*at];
        if (!strncmp(f, key, n) && f[n] == '=') {
            (*at)++;
            return f + n + 1;
        }
    }
    return NULL;
}

const char *fact(const struct call *c, const char *key) {
    size_t at = 0;
    return fact_next(c, key, &at);
}

uint64_t fact_number(const struct call *c, const char *key) {
    const char *v = fact(c, key);
    return v ? strtoull(v, NULL, 0) : 0;
}

bool refused(const struct call *c, int err) {
    for (size_t i = 0; i < LAB_REFUSED_MAX && c->row->refused[i]; i++)
        if (c->row->refused[i] == err)
            return true;
    return false;
}

ssize_t slurp(const char *path, char *to, size_t room) {
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    ssize_t n = fd_read_all(fd, to, room - 1);
    to[n > 0 ? n : 0] = '\0';
    return n;
}

bool has_secret(const struct call *c, const char *bytes, size_t n) {
    return c->secret[0] && memmem(bytes, n, c->secret, strlen(c->secret));
}

int in_child(int (*f)(void *), void *data) {
    pid_t pid = fork();
    if (pid < 0)
        return 255;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(f(data) & 255);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 255;
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

int enter_userns(int more) {
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | more) < 0)
        return errno;
    char map[64];
    _cleanup_fd_ int setgroups_fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
    if (setgroups_fd >= 0)
        fd_write_all(setgroups_fd, "deny", 4);
    _cleanup_fd_ int uid_fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    fd_write_all(uid_fd, map, (size_t)snprintf(map, sizeof(map), "0 %u 1", uid));
    _cleanup_fd_ int gid_fd = open("/proc/self/gid_map", O_WRONLY | O_CLOEXEC);
    fd_write_all(gid_fd, map, (size_t)snprintf(map, sizeof(map), "0 %u 1", gid));
    return 0;
}

const char *scratch(const struct call *c) {
    static char path[4096];
    if (c->control && fact(c, "dir")) {
        snprintf(path, sizeof(path), "%s/scratch", fact(c, "dir"));
        return path;
    }
    const char *t = getenv("TMPDIR");
    return t && *t == '/' ? t : "/tmp";
}

const char *own_path(void) {
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n <= 0)
        return "/proc/self/exe";
    path[n] = '\0';
    return path;
}

/* The scrambled secret is pairs of hex digits, each byte xor PROBE_SCRAMBLE. */
static void unscramble(struct call *c) {
    const char *s = fact(c, "secret");
    for (size_t i = 0; s && i < PROBE_SECRET - 1 && s[2 * i] && s[2 * i + 1]; i++) {
        char hex[3] = {s[2 * i], s[2 * i + 1], 0};
        c->secret[i] = (char)(strtoul(hex, NULL, 16) ^ PROBE_SCRAMBLE);
    }
}

/* `s` as a JSON string: neutralised first, then quotes and backslashes escaped. */
static void put_json(struct buf *b, const char *s) {
    _cleanup_buf_ struct buf safe = {0};
    str_put_safe(&safe, s, strlen(s));
    buf_puts(b, "\"");
    for (size_t i = 0; i < safe.n; i++)
        buf_printf(b, safe.bytes[i] == '"' || safe.bytes[i] == '\\' ? "\\%c" : "%c", safe.bytes[i]);
    buf_puts(b, "\"");
}

static void put_answer(const struct call *c, enum lab_result r) {
    _cleanup_buf_ struct buf b = {0};
    buf_puts(&b, "\n{\"probe\":");
    put_json(&b, c->row->name);
    buf_printf(&b, ",\"result\":\"%s\",\"errno\":%d,\"detail\":", lab_result_names[r], c->err);
    put_json(&b, c->detail);
    buf_puts(&b, "}\n");
    fflush(NULL);
    if (!b.failed)
        fd_write_all(1, b.bytes, b.n); /* a line of its own, whatever a terminal echoed before */
}

static int run_main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "doorward-probe: which probe? `doorward-probe list` names them\n");
        return LAB_BROKEN;
    }
    struct call c = {.row = lab_row_find(argv[2]), .control = !strcmp(argv[1], "control"), .facts = argv + 3};
    probe_fn f = function_of(argv[2]);
    if (!c.row || !f) {
        fprintf(stderr, "doorward-probe: no probe has that name; `doorward-probe list` names them\n");
        return LAB_BROKEN;
    }
    unscramble(&c);
    signal(SIGPIPE, SIG_IGN);
    umask(022);
    enum lab_result r = f(&c);
    put_answer(&c, r);
    return r;
}

/* Fails when a row has no function: the table and the program would say different things. */
static int list_main(int argc, char **argv) {
    bool json = argc > 2 && !strcmp(argv[2], "--json");
    int missing = 0;
    _cleanup_buf_ struct buf b = {0};
    buf_puts(&b, json ? "[" : "");
    for (size_t i = 0; i < lab_n_rows; i++) {
        const struct lab_row *r = &lab_rows[i];
        missing += !function_of(r->name);
        if (!json) {
            buf_printf(&b, "%-20s %-6s %s\n", r->name, r->case_id, r->must);
            continue;
        }
        buf_printf(&b, "%s{\"name\":\"%s\",\"case\":\"%s\",\"kind\":\"%s\",\"deadline_ms\":%u,\"must\":", i ? "," : "",
                   r->name, r->case_id, lab_kind_names[r->kind], r->deadline_ms);
        put_json(&b, r->must);
        buf_puts(&b, "}");
    }
    buf_puts(&b, json ? "]\n" : "");
    return missing || b.failed || fd_write_all(1, b.bytes, b.n) < 0;
}

/* A process that only stays: the one that must not outlive its step. Named by its last argument. */
static int linger_main(int argc, char **argv) {
    for (int s = 1; s < 64; s++)
        signal(s, SIG_IGN);
    struct timespec t = {LAB_LINGER_MS / 1000, LAB_LINGER_MS % 1000 * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
    return 0;
}

/* Says what this process may: run by the set-id probes. Exit: bit 0 = another euid, bit 1 = a capability. */
static int powers_main(int argc, char **argv) {
    char status[4096] = "", *caps;
    slurp("/proc/self/status", status, sizeof(status));
    caps = strstr(status, "CapEff:");
    int got = argc > 2 && geteuid() != (uid_t)strtoul(argv[2], NULL, 10);
    return got | (caps && strtoull(caps + 7, NULL, 16) ? 2 : 0);
}

static int nothing_main(int argc, char **argv) {
    return 42;
}

static const struct {
    const char *word;
    int (*main)(int argc, char **argv);
} roles[] = {{"run", run_main},       {"control", run_main},   {"list", list_main},     {"stage", stage_main},
             {"victim", victim_main}, {"linger", linger_main}, {"powers", powers_main}, {"nothing", nothing_main}};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < ELEMENTS(roles); i++)
        if (!strcmp(argv[1], roles[i].word))
            return roles[i].main(argc, argv);
    fprintf(stderr, "usage: doorward-probe run|control NAME [KEY=VALUE ...] | list [--json] | stage DIR\n");
    return LAB_BROKEN;
}
