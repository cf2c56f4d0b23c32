/* probe.h: inside the probe program: what a probe is given and how it answers.
 *
 * A probe is told facts of the host as KEY=VALUE arguments, which the stage (stage.c) collected outside. The secret
 * that probes look for comes scrambled, so that no copy of it stands in an argument list; it is put together only
 * in the memory of the process that compares.
 * runs in: probe, inside and outside (untrusted input: none; holds: nothing) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "lab/rows.h"

#define PROBE_SECRET   41 /* "doorward-canary-" and 24 hex digits, NUL */
#define PROBE_SCRAMBLE 0x5a

struct call {
    const struct lab_row *row;
    bool control; /* outside: the same action, which must succeed there */
    char **facts; /* KEY=VALUE, NULL-terminated */
    char secret[PROBE_SECRET];
    int err; /* errno of the decisive call, 0 when none decided */
    char detail[400];
};

typedef enum lab_result (*probe_fn)(struct call *c);

struct probe {
    const char *name; /* of its row */
    probe_fn run;
};

/* One table per theme, ended by a row without name. */
extern const struct probe probes_files[], probes_processes[], probes_kernel[], probes_network[], probes_terminal[],
    probes_limits[], probes_usable[], probes_setup[];

/* Records how it went and returns `r`, so that `return held(c, errno, "...")` reads well. */
enum lab_result say(struct call *c, enum lab_result r, int err, const char *format, ...) _printf_(4, 5);
#define held(c, err, ...)    say(c, LAB_HELD, err, __VA_ARGS__)
#define is_open(c, err, ...) say(c, LAB_OPEN, err, __VA_ARGS__)
#define broken(c, err, ...)  say(c, LAB_BROKEN, err, __VA_ARGS__)
#define absent(c, err, ...)  say(c, LAB_ABSENT, err, __VA_ARGS__)

/* Value of the first fact of that name, or NULL; fact_next goes on after `at` (0 first) and moves it. */
const char *fact(const struct call *c, const char *key);
const char *fact_next(const struct call *c, const char *key, size_t *at);
uint64_t fact_number(const struct call *c, const char *key); /* 0 when missing */

/* True when `err` is one of the row's refusals. */
bool refused(const struct call *c, int err);

/* Reads at most room-1 bytes of a file into `to`, NUL-terminated; bytes or -errno. */
ssize_t slurp(const char *path, char *to, size_t room);
bool has_secret(const struct call *c, const char *bytes, size_t n);

/* Runs `f` in a child of its own (a call may kill its caller); its return value 0..255, or 256 + signal. */
int in_child(int (*f)(void *), void *data);

/* Enters a fresh user namespace (with `more` namespaces) as root of it, in a child. 0 or errno.
 * It is how an ordinary user outside performs what needs a capability. */
int enter_userns(int more);

/* A folder for the probe's own files: $TMPDIR, else /tmp; outside the stage's scratch folder. */
const char *scratch(const struct call *c);

/* Path of the running program, for exec of a second role of it ("/proc/self/exe" where that can be). */
const char *own_path(void);
/* Other roles of the program, see probe.c. */
int stage_main(int argc, char **argv);
int victim_main(int argc, char **argv);
