/* journal.c: the writer of a run's journal; see journal.h.
 *
 * Theory: a record is one write(2) at the end of a file that only the lock's holder writes. A process that dies leaves
 * whole records and at most one torn line; a machine that dies leaves what the last fdatasync covered, and may leave
 * NUL bytes behind it. Both are cut off by the next opener, and the cut is itself a record.
 * runs in: controller, cli (untrusted input: an old journal's bytes; holds: nothing) */
#include "audit/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/chain.h"
#include "audit/reader.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

enum {
    YOUNG_S = 10,      /* an empty journal is left to its creator for so long */
    LOCK_TRIES = 1000, /* a creator waits this often 1 ms for somebody who only looks whether it lives */
    TEXT_KEPT = 4096,
};

struct journal {
    int fd;
    int folder; /* the run's folder; its entry must reach the disk with the first record that does */
    bool entry_on_disk;
    uint64_t bytes; /* length of the file: whole records only */
    struct chain chain;
    int failed; /* -errno of the write that failed; nothing is recorded after it */
};

struct journal *journal_close(struct journal *j) {
    if (j) {
        fd_close(j->fd);
        fd_close(j->folder);
        free(j);
    }
    return NULL;
}

const char *journal_head(const struct journal *j) {
    return j->chain.head;
}

uint64_t journal_seq(const struct journal *j) {
    return j->chain.seq;
}

json_t *journal_text(const char *bytes, size_t n) {
    _cleanup_buf_ struct buf b = {0};
    size_t kept = n > TEXT_KEPT ? TEXT_KEPT : n;
    while (kept < n && kept > TEXT_KEPT - 4 && ((unsigned char)bytes[kept] & 0xc0) == 0x80)
        kept--; /* not in the middle of a character */
    if (str_is_utf8(bytes, kept, NULL))
        buf_put(&b, bytes, kept);
    else
        str_put_safe(&b, bytes, kept);
    if (kept < n)
        buf_puts(&b, "...");
    return b.failed ? NULL : json_stringn(b.bytes ? b.bytes : "", b.n);
}

static int new_journal(int fd, int dirfd, struct journal **ret) {
    struct journal *j = calloc(1, sizeof(*j));
    int folder = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
    if (!j || folder < 0) {
        free(j);
        return folder < 0 ? -errno : -ENOMEM;
    }
    *j = (struct journal){.fd = fd, .folder = folder};
    chain_start(&j->chain);
    *ret = j;
    return 0;
}

/* Somebody who asks whether a journal is live holds a shared lock for an instant: a creator waits for that. */
static int lock_new(int fd) {
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
        if (errno != EWOULDBLOCK || i == LOCK_TRIES)
            return -errno;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return 0;
}

int journal_create(int dirfd, const char run[ULID_TEXT], struct journal **ret, struct error *err) {
    struct journal *j;
    _cleanup_fd_ int fd =
        openat(dirfd, JOURNAL_NAME, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, -errno, "journal: cannot create %s of run %s", JOURNAL_NAME, run);
    int r = lock_new(fd);
    if (r == 0)
        r = new_journal(fd, dirfd, &j);
    if (r < 0)
        return error_errno(err, r, "journal: cannot take %s of run %s", JOURNAL_NAME, run);
    TAKE_FD(fd);
    snprintf(j->chain.run, ULID_TEXT, "%s", run);
    *ret = j;
    return 0;
}

/* One fdatasync for the record. The first also carries the file's entry in the run's folder, and that folder's in its
 * parent: a file that reached the disk under no name is lost (fsync(2), NOTES of "the directory containing the file").
 */
static int reach_disk(struct journal *j) {
    if (fdatasync(j->fd) < 0)
        return -errno;
    static const char *const folders[] = {".", ".."};
    for (size_t i = 0; !j->entry_on_disk && i < ELEMENTS(folders); i++) {
        _cleanup_fd_ int folder = openat(j->folder, folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0 || fsync(folder) < 0)
            return -errno;
    }
    j->entry_on_disk = true;
    return 0;
}

/* After a short write the half line is taken away again, so that readers see whole records only. Where that fails too
 * (the answer is of no use: the journal has failed either way) it is a torn line, which the next opener repairs. */
static int write_record(struct journal *j, const struct buf *line, enum journal_sync sync) {
    int r = fd_write_all(j->fd, line->bytes, line->n);
    if (r == 0 && sync == JOURNAL_ON_DISK)
        r = reach_disk(j);
    int cut = r < 0 ? ftruncate(j->fd, (off_t)j->bytes) : 0;
    (void)cut;
    return r;
}

/* Records by which a run closes must find room after others used the budget up. */
static uint64_t budget_of(const char *type) {
    static const char *const closing[] = {"limit.hit", "step.end", "run.end", "run.lost", "journal.repaired"};
    for (size_t i = 0; i < ELEMENTS(closing); i++)
        if (!strcmp(type, closing[i]))
            return JOURNAL_BYTES_MAX;
    return JOURNAL_BYTES_MAX - JOURNAL_RESERVE;
}

int journal_append(struct journal *j, const char *type, json_t *body, enum journal_sync sync, struct error *err) {
    _cleanup_buf_ struct buf line = {0};
    char hash[DIGEST_HEX];
    if (j->failed)
        return error_errno(err, j->failed, "journal: record %s refused, since an earlier one could not be written",
                           type);
    int r = chain_make(&j->chain, type, body, clock_real_us(), &line, hash, err);
    if (r < 0)
        return r;
    if (j->bytes + line.n > budget_of(type))
        return error_set(err, -EDQUOT,
                         "journal: record %s refused: the journal of run %s has used its budget of %u MiB", type,
                         j->chain.run, JOURNAL_BYTES_MAX >> 20);
    r = write_record(j, &line, sync);
    if (r < 0) {
        j->failed = r;
        return error_errno(err, r,
                           "journal: record %s of run %s cannot be written; free some space in doorward's state folder",
                           type, j->chain.run);
    }
    j->bytes += line.n;
    chain_step(&j->chain, type, hash);
    return 0;
}

/* The run's name from its folder's, for a journal of which no record survived. */
static int name_from_folder(int dirfd, char run[ULID_TEXT], struct error *err) {
    char link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = 0;
    const char *slash = strrchr(path, '/');
    if (!slash || !ulid_is_valid(slash + 1))
        return error_set(err, -ENODATA, "journal: no record survives in %s and its folder is not named after a run",
                         JOURNAL_NAME);
    memcpy(run, slash + 1, ULID_TEXT);
    return 0;
}

/* Cuts a torn line off and says so in a record. */
static int repair(struct journal *j, const char *tail, size_t n, struct error *err) {
    char cut[DIGEST_HEX];
    digest_hex(tail, n, cut);
    if (ftruncate(j->fd, (off_t)j->bytes) < 0)
        return error_errno(err, -errno, "journal: cannot cut the torn line of run %s", j->chain.run);
    _cleanup_json_ json_t *body = json_pack("{s:I, s:s}", "cut_bytes", (json_int_t)n, "cut_digest", cut);
    return journal_append(j, "journal.repaired", body, JOURNAL_WRITTEN, err);
}

/* Reads the old records; afterwards the chain stands behind the last one that fits. */
static int take_over(struct journal *j, int dirfd, struct error *err) {
    _cleanup_journal_reader_ struct journal_reader *reader = NULL;
    size_t torn;
    int r = journal_reader_over(j->fd, &reader, err);
    if (r < 0)
        return r;
    do {
        _cleanup_json_ json_t *record = NULL;
        r = journal_reader_next(reader, &record, err);
    } while (r > 0);
    if (r < 0)
        return r;
    j->chain = *journal_reader_chain(reader);
    j->bytes = journal_reader_bytes(reader);
    if (!j->chain.seq && (r = name_from_folder(dirfd, j->chain.run, err)) < 0)
        return r;
    const char *tail = journal_reader_tail(reader, &torn);
    return torn ? repair(j, tail, torn, err) : 0;
}

static bool is_young_and_empty(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size == 0 && time(NULL) - st.st_mtime < YOUNG_S;
}

static int open_existing(int dirfd, int flags, struct error *err) {
    struct stat st;
    _cleanup_fd_ int fd = openat(dirfd, JOURNAL_NAME, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, -errno, "journal: cannot open %s", JOURNAL_NAME);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, -EBADMSG, "journal: %s is not a regular file", JOURNAL_NAME);
    return TAKE_FD(fd);
}

int journal_open(int dirfd, struct journal **ret, struct error *err) {
    _cleanup_journal_ struct journal *j = NULL;
    int fd = open_existing(dirfd, O_RDWR | O_APPEND, err);
    if (fd < 0)
        return fd;
    int r = new_journal(fd, dirfd, &j);
    if (r < 0) {
        fd_close(fd);
        return error_errno(err, r, "journal: cannot open %s", JOURNAL_NAME);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || is_young_and_empty(fd))
        return error_set(err, -EWOULDBLOCK, "journal: a live controller holds it");
    r = take_over(j, dirfd, err);
    if (r == 0)
        *ret = TAKE_PTR(j);
    return r;
}

bool journal_is_live(int dirfd) {
    _cleanup_fd_ int fd = open_existing(dirfd, O_RDONLY, NULL);
    if (fd < 0)
        return false;
    return (flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK) || is_young_and_empty(fd);
}
