/* inside.h: the programs that live in the sandbox, one binary, three names.
 *
 *   init    process 1: speaks with the launcher, listens for dw, ends when the reaper ends
 *   reaper  process 1 of the worker's own pid namespace: starts the worker, reaps, ends with it
 *   dw      the worker's helper: `dw refuse REASON`
 * runs in: sandbox (untrusted input: everything the worker sends; holds: nothing) */
#pragma once

#include <signal.h>

#include "wire/inner.h"

#define INSIDE_SOCKET      "/run/doorward/socket" /* init listens there for dw */
#define INSIDE_LISTENER_FD 5

int init_main(void);
int reaper_main(int argc, char **argv, char **env);
int dw_main(int argc, char **argv);

/* The opening ritual of init and reaper: not dumpable (nobody of the same uid may read or trace it: ptrace(2)), dies
 * with its parent, every signal blocked that would disturb it. A descriptor that reads SIGCHLD, or -errno. */
int inside_begin(void);

/* Starts the worker: the child's half, after fork. Reports on `report_fd` (struct worker_failure) and never returns. */
struct worker_failure {
    int code;  /* errno */
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
void worker_start(const struct worker *w, int report_fd) __attribute__((noreturn));
