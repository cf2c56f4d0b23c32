/* sink.h: one of our own output streams, which must never hold us up.
 *
 * A reader may be slow, stopped, or gone. What it does not take at once waits in a bounded buffer; when that is full
 * we stop reading from the worker, who then waits as any program before a full pipe. Our descriptor is shared with
 * other programs, so O_NONBLOCK is never set on it: pipes and terminals are opened anew, sockets are written with
 * MSG_DONTWAIT.
 * runs in: controller (untrusted input: the worker's bytes, never interpreted) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SINK_ROOM (64u << 10) /* one pipe's worth; more would only delay what the worker notices */

enum sink_kind {
    SINK_NONE,   /* closed, or its reader is gone: everything is dropped */
    SINK_FILE,   /* never makes us wait */
    SINK_OWN,    /* a description of our own with O_NONBLOCK */
    SINK_SOCKET, /* MSG_DONTWAIT */
    SINK_SHARED, /* could not be opened anew: small writes, and only when poll says that there is room */
};

struct sink {
    enum sink_kind kind;
    int fd; /* what poll watches and what is written */
    bool owned;
    int failed;       /* errno of the write that ended it; EPIPE is a reader's right */
    uint64_t dropped; /* bytes that it did not take */
    char *bytes;      /* NULL until something had to wait */
    size_t at, n, room;
};

#define SINK_EMPTY                                                                                                     \
    { .kind = SINK_NONE, .fd = -1 }

/* A sink over `fd`, which stays the caller's. `fd` -1 makes one that drops everything. */
void sink_open(struct sink *s, int fd);

/* How many bytes it can take now without losing one. A dead one takes everything. */
size_t sink_room(const struct sink *s);

/* Hands over `n` bytes. More than sink_room() is taken too (the rest of a pipe, once), at the price of memory. */
void sink_put(struct sink *s, const void *bytes, size_t n);

/* True while bytes wait: watch s->fd for POLLOUT and call sink_flush. */
bool sink_waits(const struct sink *s);
void sink_flush(struct sink *s);

/* Waits until everything is taken, as long as the reader takes something at least every `patience_ms`; `stop_fd`
 * (-1: none) becoming readable ends the wait. What is left then counts as dropped. */
void sink_finish(struct sink *s, int patience_ms, int stop_fd);

void sink_close(struct sink *s);
#define _cleanup_sink_ _cleanup_(sink_close)
