/* sink.c: see sink.h. runs in: controller (untrusted input: the worker's bytes, never interpreted) */
#include "control/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"

enum { SHARED_CHUNK = 256 }; /* below the room that a terminal (256) or a pipe (PIPE_BUF) has when poll says POLLOUT */

/* A second description of the same pipe or terminal, on which O_NONBLOCK is ours alone. */
static int open_anew(int fd) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void sink_open(struct sink *s, int fd) {
    struct stat st;
    *s = (struct sink)SINK_EMPTY;
    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    s->fd = fd;
    if (S_ISSOCK(st.st_mode)) {
        s->kind = SINK_SOCKET;
    } else if (S_ISREG(st.st_mode) || (S_ISCHR(st.st_mode) && !isatty(fd))) {
        s->kind = SINK_FILE;
    } else {
        int own = open_anew(fd);
        s->kind = own < 0 ? SINK_SHARED : SINK_OWN;
        s->owned = own >= 0;
        s->fd = own < 0 ? fd : own;
    }
}

void sink_close(struct sink *s) {
    if (s->owned)
        fd_close(s->fd);
    free(s->bytes);
    *s = (struct sink)SINK_EMPTY;
}

size_t sink_room(const struct sink *s) {
    return s->n < SINK_ROOM ? SINK_ROOM - s->n : 0;
}

bool sink_waits(const struct sink *s) {
    return s->n > 0;
}

/* The reader is gone, or the disk is full: from now on everything is dropped, and the worker is not disturbed. */
static void die(struct sink *s, int failed) {
    s->failed = failed;
    s->kind = SINK_NONE;
    s->dropped += s->n;
    s->n = 0;
}

static bool has_room(int fd) {
    struct pollfd p = {fd, POLLOUT, 0};
    return poll(&p, 1, 0) == 1 && (p.revents & (POLLOUT | POLLERR | POLLHUP));
}

static ssize_t write_some(struct sink *s, const char *bytes, size_t n) {
    if (s->kind == SINK_SOCKET)
        return send(s->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (s->kind == SINK_SHARED) {
        if (!has_room(s->fd)) {
            errno = EAGAIN;
            return -1;
        }
        n = n < SHARED_CHUNK ? n : SHARED_CHUNK;
    }
    return write(s->fd, bytes, n);
}

/* Writes as much as goes; returns how much. */
static size_t drain(struct sink *s, const char *bytes, size_t n) {
    size_t done = 0;
    while (done < n && s->kind != SINK_NONE) {
        ssize_t w = write_some(s, bytes + done, n - done);
        if (w > 0)
            done += (size_t)w;
        else if (w < 0 && errno == EINTR)
            continue;
        else if (w < 0 && errno == EAGAIN)
            break;
        else
            die(s, w < 0 ? errno : EIO);
    }
    return done;
}

void sink_flush(struct sink *s) {
    if (s->n == 0)
        return;
    size_t done = drain(s, s->bytes + s->at, s->n);
    if (s->kind == SINK_NONE) {
        s->dropped -= done; /* die() counted what was taken just before */
        return;
    }
    s->at += done;
    s->n -= done;
}

static bool reserve(struct sink *s, size_t n) {
    if (s->n)
        memmove(s->bytes, s->bytes + s->at, s->n);
    s->at = 0;
    if (s->n + n <= s->room)
        return true;
    size_t room = s->n + n > SINK_ROOM ? s->n + n : SINK_ROOM;
    char *bytes = realloc(s->bytes, room);
    if (!bytes)
        return false;
    s->bytes = bytes;
    s->room = room;
    return true;
}

void sink_put(struct sink *s, const void *bytes, size_t n) {
    const char *p = bytes;
    size_t done = s->n ? 0 : drain(s, p, n);
    if (done == n)
        return;
    if (s->kind != SINK_NONE && !reserve(s, n - done))
        die(s, ENOMEM);
    if (s->kind == SINK_NONE) {
        s->dropped += n - done;
        return;
    }
    memcpy(s->bytes + s->n, p + done, n - done);
    s->n += n - done;
}

void sink_finish(struct sink *s, int patience_ms, int stop_fd) {
    while (sink_waits(s)) {
        struct pollfd p[2] = {{s->fd, POLLOUT, 0}, {stop_fd, POLLIN, 0}};
        int r = poll(p, 2, patience_ms);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0 || p[1].revents)
            die(s, r == 0 ? ETIMEDOUT : EINTR);
        else
            sink_flush(s);
    }
}
