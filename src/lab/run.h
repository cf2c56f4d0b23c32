/* run.h: the harness's hands: the stage, and attempts as children with a deadline.
 *
 * How a probe is run inside is given by the caller (the controller's API, or another sandbox's command prefix): the
 * room knows no controller. An attempt is a child of ours in a process group of its own; one that does not end in its
 * time is killed and counts as a failure.
 * runs in: cli (untrusted input: what probes print; holds: the lab's made-up secret) */
#pragma once

#include <sys/types.h>

#include "lab/lab.h"

struct lab_stage {
    pid_t pid;
    int to, from;  /* its standard input and output */
    char dir[256]; /* its folder; it removes it */
    char **facts;  /* KEY=VALUE for probes */
    char *secret;  /* in clear: goes into the environment of attempts, as a controller's secret would */
    int terminal;  /* master side of the terminal that LAB_TTY rows start under */
    char slave[64];
};

/* Starts `probe` as stage in a fresh folder below `parent` ("/tmp"). `own_network`: this process is in a network
 * namespace of the lab's own, where the stage may add addresses. 0 or -errno; the caller ends it. */
int lab_stage_start(const char *probe, const char *parent, bool own_network, struct lab_stage *ret, struct error *err);
/* Ends it, and with it everything that it laid out. */
void lab_stage_end(struct lab_stage *s);
#define _cleanup_stage_ _cleanup_(lab_stage_end)

/* Runs one row inside, in a child made for it: stdout is what is read for the answer. May write the name of the step's
 * stop to `status_fd`. Its return value is the child's exit status. */
typedef int (*lab_inside_fn)(void *data, const struct lab_row *row, bool off, int status_fd);

struct lab_bench {
    const char *probe;
    struct lab_stage *stage;
    lab_inside_fn inside;
    void *data;
    bool root;    /* the lab runs as root */
    bool can_off; /* walls can be left out: it is our own sandbox */
};

/* Makes all attempts of a row and judges them. */
void lab_run_row(const struct lab_bench *b, const struct lab_row *row, struct lab_outcome *ret);
