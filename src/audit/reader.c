/* reader.c: reads a journal record by record; see journal.h.
 *
 * Theory: the bytes between `at` and the end of the buffer are what was read behind the last record that fits. At the
 * end of the file they are judged (torn or bad) and forgotten, so that a later call reads them anew: by then a live
 * writer may have finished the line, or an opener may have cut it off.
 * runs in: controller, cli (untrusted input: a journal's bytes, which somebody may have changed; holds: nothing) */
#include "audit/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/fd.h"

enum { CHUNK = 65536 };

struct journal_reader {
    int fd;
    bool owned; /* the descriptor is closed with the reader */
    struct buf buf;
    size_t at;       /* start of the line that comes next */
    size_t searched; /* bytes behind `at` known to hold no newline */
    uint64_t good;   /* offset of `at` in the file */
    bool stale;      /* the end was reached: read again from `good` */
    struct chain chain;
    struct journal_report report;
};

int journal_reader_over(int fd, struct journal_reader **ret, struct error *err) {
    struct journal_reader *r = calloc(1, sizeof(*r));
    if (!r)
        return error_set(err, -ENOMEM, "journal: out of memory");
    r->fd = fd;
    chain_start(&r->chain);
    r->report.first_bad = UINT64_MAX;
    memcpy(r->report.head, r->chain.head, DIGEST_HEX);
    *ret = r;
    return 0;
}

int journal_reader_open(int dirfd, struct journal_reader **ret, struct error *err) {
    struct stat st;
    _cleanup_fd_ int fd = openat(dirfd, JOURNAL_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "journal: cannot open %s", JOURNAL_NAME);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, -EBADMSG, "journal: %s is not a regular file", JOURNAL_NAME);
    int r = journal_reader_over(fd, ret, err);
    if (r == 0) {
        TAKE_FD(fd);
        (*ret)->owned = true;
    }
    return r;
}

struct journal_reader *journal_reader_close(struct journal_reader *r) {
    if (r) {
        if (r->owned)
            fd_close(r->fd);
        buf_free(&r->buf);
        free(r);
    }
    return NULL;
}

const struct journal_report *journal_reader_report(const struct journal_reader *r) {
    return &r->report;
}

const struct chain *journal_reader_chain(const struct journal_reader *r) {
    return &r->chain;
}

uint64_t journal_reader_bytes(const struct journal_reader *r) {
    return r->good;
}

const char *journal_reader_tail(const struct journal_reader *r, size_t *ret_n) {
    *ret_n = r->report.torn ? (size_t)r->report.torn_bytes : 0;
    return *ret_n ? r->buf.bytes + r->at : "";
}

/* Reads one more chunk behind what is there. 1, 0 at the end of the file, or -errno. */
static int fill(struct journal_reader *r) {
    char chunk[CHUNK];
    if (r->at) {
        memmove(r->buf.bytes, r->buf.bytes + r->at, r->buf.n - r->at);
        r->buf.n -= r->at;
        r->at = 0;
    }
    ssize_t k;
    do
        k = pread(r->fd, chunk, sizeof(chunk), (off_t)(r->good + r->buf.n));
    while (k < 0 && errno == EINTR);
    if (k <= 0)
        return k < 0 ? -errno : 0;
    return buf_put(&r->buf, chunk, (size_t)k) < 0 ? -ENOMEM : 1;
}

static int is_bad(struct journal_reader *r, const char *why, struct error *err) {
    r->report.first_bad = r->chain.seq;
    if (why != r->report.why)
        snprintf(r->report.why, sizeof(r->report.why), "%s", why);
    return error_set(err, -EBADMSG, "journal: record %" PRIu64 " does not fit: %s", r->report.first_bad, r->report.why);
}

static int at_end(struct journal_reader *r, struct error *err) {
    size_t n = r->buf.n - r->at;
    r->stale = true;
    if (n && !chain_is_torn(r->buf.bytes + r->at, n))
        return is_bad(r, "its line is longer than a record can be", err);
    r->report.torn = n > 0;
    r->report.torn_bytes = n;
    snprintf(r->report.why, sizeof(r->report.why), "%s", n ? "the last line is torn" : "");
    return 0;
}

/* A line with NUL bytes is torn when nothing comes behind it. */
static int judge_line(struct journal_reader *r, size_t n, struct error *err) {
    if (!memchr(r->buf.bytes + r->at, 0, n))
        return is_bad(r, r->report.why, err);
    int k = r->buf.n - r->at == n + 1 ? fill(r) : 1;
    if (k < 0)
        return error_errno(err, k, "journal: cannot read");
    return k ? is_bad(r, r->report.why, err) : at_end(r, err);
}

static int take_line(struct journal_reader *r, size_t n, json_t **ret, struct error *err) {
    if (chain_read(&r->chain, r->buf.bytes + r->at, n, ret, r->report.why) < 0)
        return judge_line(r, n, err);
    r->at += n + 1;
    r->good += n + 1;
    r->searched = 0;
    r->report.records = r->chain.seq;
    r->report.ended = r->chain.ended;
    memcpy(r->report.run, r->chain.run, ULID_TEXT);
    memcpy(r->report.head, r->chain.head, DIGEST_HEX);
    return 1;
}

int journal_reader_next(struct journal_reader *r, json_t **ret, struct error *err) {
    if (r->report.first_bad != UINT64_MAX)
        return is_bad(r, r->report.why, err);
    if (r->stale)
        r->buf.n = r->at = r->searched = 0;
    r->stale = false;
    for (;;) {
        size_t n = r->buf.n - r->at;
        const char *line = n ? r->buf.bytes + r->at : NULL;
        const char *end = n ? memchr(line + r->searched, '\n', n - r->searched) : NULL;
        if (end)
            return take_line(r, (size_t)(end - line), ret, err);
        r->searched = n;
        if (r->good + n > JOURNAL_BYTES_MAX)
            return is_bad(r, "the journal is larger than its budget", err);
        int k = fill(r);
        if (k < 0)
            return error_errno(err, k, "journal: cannot read");
        if (k == 0)
            return at_end(r, err);
    }
}

int journal_walk(int dirfd, int (*visit)(void *data, const json_t *record), void *data, struct error *err) {
    _cleanup_journal_reader_ struct journal_reader *r = NULL;
    int k = journal_reader_open(dirfd, &r, err);
    while (k >= 0) {
        _cleanup_json_ json_t *record = NULL;
        k = journal_reader_next(r, &record, err);
        int answer = k > 0 ? visit(data, record) : 0;
        if (k <= 0 || answer)
            return k <= 0 ? k : answer;
    }
    return k;
}

uint64_t journal_time(const json_t *record) {
    const char *text = json_string_value(json_object_get(record, "time"));
    struct tm tm = {0};
    unsigned us = 0;
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (!rest || sscanf(rest, ".%6uZ", &us) != 1)
        return 0;
    return (uint64_t)timegm(&tm) * 1000000 + us;
}
