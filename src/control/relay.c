/* relay.c: see relay.h. runs in: controller (untrusted input: the worker's bytes, never interpreted) */
#include "control/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

enum {
    CHUNK = 64 << 10,
    INPUT_ROOM = 16 << 10,
    END_OF_INPUT = 4, /* the VEOF character that a fresh terminal has (termios(3)) */
};

const char *const relay_stream_names[RELAY_STREAM_N] = {"stdout", "stderr"};

void relay_init(struct relay *r) {
    *r = (struct relay){
        .run_fd = -1, .from = {-1, -1}, .copy = {-1, -1}, .master = -1, .input_from = -1, .input_to = -1};
}

/* The terminal's master stays open for the others that use it: closing it hangs the worker up. */
static void finish_stream(struct relay *r, int stream) {
    if (r->from[stream] != r->master)
        fd_close(r->from[stream]);
    r->from[stream] = -1;
}

static void finish_input(struct relay *r) {
    if (r->input_to != r->master)
        fd_close(r->input_to);
    r->input_from = r->input_to = -1;
    r->input_n = 0;
}

void relay_close(struct relay *r) {
    finish_input(r);
    for (int i = 0; i < RELAY_STREAM_N; i++) {
        finish_stream(r, i);
        r->copy[i] = fd_close(r->copy[i]);
    }
    r->master = fd_close(r->master);
    free(r->input);
    r->input = NULL;
}

static int not_blocking(int fd) {
    return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int relay_pipes(struct relay *r, int ret[RELAY_STREAM_N]) {
    for (int i = 0; i < RELAY_STREAM_N; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            return -errno;
        r->from[i] = ends[0];
        ret[i] = ends[1];
        int e = not_blocking(ends[0]);
        if (e < 0)
            return e;
    }
    return 0;
}

int relay_input_pipe(struct relay *r, int from, int *ret) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    r->input_from = from;
    r->input_to = ends[1];
    *ret = ends[0];
    return not_blocking(ends[1]);
}

/* The captured copy of a stream, made with its first byte: a silent step costs no file. */
static int open_copy(struct relay *r, int stream) {
    char path[160];
    if (mkdirat(r->run_fd, "steps", 0700) < 0 && errno != EEXIST)
        return -errno;
    snprintf(path, sizeof(path), "steps/%s", r->step);
    if (mkdirat(r->run_fd, path, 0700) < 0 && errno != EEXIST)
        return -errno;
    snprintf(path, sizeof(path), "steps/%s/%s", r->step, relay_stream_names[stream]);
    int fd = fd_open_beneath(r->run_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);
    r->copy[stream] = fd;
    return fd < 0 ? fd : 0;
}

/* A copy that cannot be kept whole (a full disk) is given up, with the space it took: the journal needs that more. */
static void give_up_copies(struct relay *r, int failed) {
    r->copy_failed = -failed;
    for (int i = 0; i < RELAY_STREAM_N; i++)
        if (r->copy[i] >= 0 && ftruncate(r->copy[i], 0) < 0)
            r->copy_failed = errno;
}

static void keep_copy(struct relay *r, int stream, const char *bytes, size_t n) {
    if (r->copy_failed)
        return;
    int e = r->copy[stream] < 0 ? open_copy(r, stream) : 0;
    if (e == 0)
        e = fd_write_all(r->copy[stream], bytes, n);
    if (e < 0)
        give_up_copies(r, e);
}

/* Without memory the bytes are dropped, never passed as they are. */
static void put(struct relay *r, int stream, const char *bytes, size_t n) {
    if (!r->guarded[stream]) {
        sink_put(r->sinks[stream], bytes, n);
        return;
    }
    _cleanup_buf_ struct buf text = {0};
    int e = bytes ? harmless_put(&r->harmless[stream], &text, bytes, n) : harmless_end(&r->harmless[stream], &text);
    if (e == 0 && text.n > 0)
        sink_put(r->sinks[stream], text.bytes, text.n);
}

/* Counts `n` bytes that the worker wrote and passes on what the limit allows. */
static void pass(struct relay *r, int stream, const char *bytes, size_t n) {
    uint64_t left = r->total < r->most ? r->most - r->total : 0;
    r->total += n;
    if (n > left) {
        r->exceeded = true;
        n = (size_t)left;
    }
    if (n == 0)
        return;
    r->bytes[stream] += n;
    keep_copy(r, stream, bytes, n);
    put(r, stream, bytes, n);
}

/* One read. True when there may be more. */
static bool take(struct relay *r, int stream, size_t most) {
    char bytes[CHUNK];
    ssize_t n = read(r->from[stream], bytes, most < CHUNK ? most : CHUNK);
    if (n > 0) {
        pass(r, stream, bytes, (size_t)n);
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    finish_stream(r, stream); /* end of file; a terminal without users says EIO */
    return false;
}

/* Our standard input has ended: a pipe is closed, a terminal is told by a character (when it takes it: a worker that
 * never reads does not miss it). */
static void end_input(struct relay *r) {
    static const char end = END_OF_INPUT;
    r->input_from = -1;
    if (r->master < 0)
        finish_input(r);
    else if (write(r->master, &end, 1) < 0)
        r->input_to = -1;
}

void relay_terminal(struct relay *r, int master, int from) {
    not_blocking(master);
    r->master = r->from[RELAY_OUT] = r->input_to = master;
    r->input_from = from;
    if (from < 0)
        end_input(r);
}

static void read_input(struct relay *r) {
    if (!r->input && !(r->input = malloc(INPUT_ROOM))) {
        finish_input(r);
        return;
    }
    ssize_t n = read(r->input_from, r->input, INPUT_ROOM);
    if (n > 0) {
        r->input_at = 0;
        r->input_n = (size_t)n;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        end_input(r);
    }
}

static void write_input(struct relay *r) {
    ssize_t n = write(r->input_to, r->input + r->input_at, r->input_n);
    if (n >= 0) {
        r->input_at += (size_t)n;
        r->input_n -= (size_t)n;
    } else if (errno != EAGAIN && errno != EINTR) { /* the worker closed its end */
        finish_input(r);
    }
}

void relay_poll(const struct relay *r, struct pollfd *p) {
    for (int i = 0; i < RELAY_STREAM_N; i++) {
        bool room = r->exceeded || sink_room(r->sinks[i]) > 0;
        p[2 * i] = (struct pollfd){room ? r->from[i] : -1, POLLIN, 0};
        p[2 * i + 1] = (struct pollfd){sink_waits(r->sinks[i]) ? r->sinks[i]->fd : -1, POLLOUT, 0};
    }
    struct pollfd *input = p + 2 * RELAY_STREAM_N;
    input[0] = (struct pollfd){r->input_n == 0 && r->input_to >= 0 ? r->input_from : -1, POLLIN, 0};
    input[1] = (struct pollfd){r->input_n > 0 ? r->input_to : -1, POLLOUT, 0};
}

void relay_serve(struct relay *r, const struct pollfd *p) {
    for (int i = 0; i < RELAY_STREAM_N; i++) {
        if (p[2 * i + 1].revents)
            sink_flush(r->sinks[i]);
        if (p[2 * i].revents && r->from[i] >= 0)
            take(r, i, r->exceeded ? CHUNK : sink_room(r->sinks[i]));
    }
    const struct pollfd *input = p + 2 * RELAY_STREAM_N;
    if (input[0].revents && r->input_from >= 0)
        read_input(r);
    if (r->input_n > 0 && r->input_to >= 0)
        write_input(r);
}

/* Everything of the step is gone, so what is in the pipe is all there will be, at most its size; the bound is for a
 * write end that somebody of ours kept by mistake. */
void relay_drain(struct relay *r) {
    enum { REST_MOST = 2 << 20 };
    finish_input(r);
    for (int i = 0; i < RELAY_STREAM_N; i++) {
        for (size_t done = 0; r->from[i] >= 0 && done < REST_MOST; done += CHUNK)
            if (!take(r, i, CHUNK))
                break;
        finish_stream(r, i);
        if (r->guarded[i])
            put(r, i, NULL, 0);
    }
}
