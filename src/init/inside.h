/* inside.h: the programs that live in the sandbox, one binary, three names.
 *
 *   init    process 1: listens for dw, passes its words to the launcher, ends when the reaper or the launcher ends
 *   reaper  process 1 of the worker's own pid namespace: starts the worker, reaps, ends with it
 *   dw      the worker's helper: `dw refuse REASON`
 * runs in: sandbox (untrusted input: everything the worker sends; holds: nothing) */
#pragma once

#include <signal.h>

#include "wire/inner.h"

#define INSIDE_SOCKET "/run/doorward/socket" /* init listens there for dw */

int init_main(void);
int reaper_main(int argc, char **argv, char **env);
int dw_main(int argc, char **argv);

/* The opening ritual of init and reaper: not dumpable (nobody of the same uid may read or trace it: ptrace(2)), dies
 * with its parent, every signal blocked that would disturb it. A descriptor that reads SIGCHLD, or -errno. */
int inside_begin(void);

/* Starts the worker: the child's half, after vfork, so it runs on the reaper's memory and writes nothing to it but the
 * reason for which it failed. Never returns. */
struct worker_failure {
    int code;  /* errno, 0 = none */
    int stage; /* enum worker_stage */
};
enum worker_stage { WORKER_SESSION, WORKER_DIRECTORY, WORKER_PROGRAM };

struct worker {
    const char *directory;
    char **argv;
    char **env;
    int terminal; /* standard input is a terminal that becomes the controlling one */
    int session;  /* a session of its own */
};
void worker_start(const struct worker *w, volatile struct worker_failure *ret) __attribute__((noreturn));
