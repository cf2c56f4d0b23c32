/* relay.h: the worker's standard streams, from the pipes whose far ends it holds to our own.
 *
 * Every byte is counted against the step's `output`; what passes goes to our stream and into a captured copy in the
 * run's folder, made with the first byte. Bytes past the limit are read and thrown away, so that the worker's end is
 * seen. A background child that keeps a pipe open keeps nothing open here: after the step's end the rest in the pipe is
 * taken and the pipe closed.
 * runs in: controller (untrusted input: the worker's bytes, never interpreted) */
#pragma once

#include <poll.h>

#include "control/harmless.h"
#include "control/sink.h"

enum relay_stream { RELAY_OUT, RELAY_ERR, RELAY_STREAM_N };

extern const char *const relay_stream_names[RELAY_STREAM_N]; /* "stdout", "stderr" */

struct relay {
    /* Set by the caller. */
    struct sink *sinks[RELAY_STREAM_N]; /* where it goes; borrowed */
    int run_fd;                         /* the run's folder, for the captured copies */
    const char *step;
    uint64_t most;                /* bytes of both streams together */
    bool guarded[RELAY_STREAM_N]; /* it goes to a terminal: made harmless on its way there, not in the copy */

    struct harmless harmless[RELAY_STREAM_N];
    int from[RELAY_STREAM_N];       /* read ends, or `master` as RELAY_OUT; -1 = finished */
    int master;                     /* of the worker's terminal: its output and its input; -1 = none */
    int copy[RELAY_STREAM_N];       /* captured files, -1 before the first byte */
    uint64_t bytes[RELAY_STREAM_N]; /* that passed */
    uint64_t total;                 /* that the worker wrote, as far as we read */
    bool exceeded;
    int copy_failed; /* errno of the first failure of a captured copy; the run goes on without */

    int input_from; /* our standard input, -1 when not passed or ended */
    int input_to;   /* the worker's pipe, or `master`; -1 = closed */
    char *input;
    size_t input_at, input_n;
};

void relay_init(struct relay *r);

/* Makes the two pipes; the read ends stay here, *ret are the worker's ends. 0 or -errno. */
int relay_pipes(struct relay *r, int ret[RELAY_STREAM_N]);

/* Makes the pipe for input and gives the worker's end. 0 or -errno. */
int relay_input_pipe(struct relay *r, int from, int *ret);

/* The worker has a terminal instead, whose master is `master` (taken over). `from` as above, -1 for no input. */
void relay_terminal(struct relay *r, int master, int from);

#define RELAY_POLLS (2 * RELAY_STREAM_N + 2)
/* Fills RELAY_POLLS entries with what to wait for. */
void relay_poll(const struct relay *r, struct pollfd *p);
/* Acts on what poll found. */
void relay_serve(struct relay *r, const struct pollfd *p);

/* The step has ended: takes what is left in the pipes and closes them. */
void relay_drain(struct relay *r);
void relay_close(struct relay *r);
#define _cleanup_relay_ _cleanup_(relay_close)
