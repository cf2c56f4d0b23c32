/* store.c: the index of runs over SQLite; see store.h.
 *
 * Write-ahead log, so that readers and a writer do not wait for each other; opening, checking and setting aside happen
 * under a lock on the state folder, so that of several processes that meet a damaged file one replaces it.
 * runs in: cli, controller (after a run) (untrusted input: a database file, which somebody may have changed) */
#include "audit/store.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"

enum {
    SCHEMA_VERSION = 1,
    APPLICATION_ID = 0x646f6f72, /* "door" */
    BUSY_MS = 10000,
};

enum statement { PUT, FIND, EACH, ENDED, BEGIN, COMMIT, ROLLBACK, STATEMENT_N };

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE run(run TEXT PRIMARY KEY, task TEXT NOT NULL, stop TEXT NOT NULL, exit_status INTEGER NOT NULL,"
    " started_us INTEGER NOT NULL, ended_us INTEGER NOT NULL, policy_digest TEXT NOT NULL, journal_head TEXT NOT NULL)"
    " STRICT, WITHOUT ROWID;"
    "PRAGMA application_id=1685024626; PRAGMA user_version=1;"
    "COMMIT;";
static_assert(APPLICATION_ID == 1685024626 && SCHEMA_VERSION == 1, "the schema's text says so");

#define COLUMNS "run, task, stop, exit_status, started_us, ended_us, policy_digest, journal_head"

/* An ended run's row never changes: its head is what the journal had before somebody could touch it. */
static const char *const statements[STATEMENT_N] = {
    [PUT] = "INSERT INTO run(" COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(run) DO UPDATE SET"
            " task=?2, stop=?3, exit_status=?4, started_us=?5, ended_us=?6, policy_digest=?7, journal_head=?8"
            " WHERE ended_us=0",
    [FIND] = "SELECT " COLUMNS " FROM run WHERE run=?1",
    [EACH] = "SELECT " COLUMNS " FROM run ORDER BY run DESC",
    [ENDED] = "SELECT run FROM run WHERE ended_us<>0 ORDER BY run",
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *prepared[STATEMENT_N];
};

struct store *store_close(struct store *s) {
    if (s) {
        for (size_t i = 0; i < STATEMENT_N; i++)
            sqlite3_finalize(s->prepared[i]);
        sqlite3_close(s->db);
        free(s);
    }
    return NULL;
}

/* SQLite's answers as errno; what is not listed is an input or output error. */
static int code_of(int answer) {
    static const struct {
        int answer, code;
    } codes[] = {
        {SQLITE_NOTADB, -EBADMSG}, {SQLITE_CORRUPT, -EBADMSG}, {SQLITE_FULL, -ENOSPC},     {SQLITE_BUSY, -EAGAIN},
        {SQLITE_NOMEM, -ENOMEM},   {SQLITE_READONLY, -EROFS},  {SQLITE_CANTOPEN, -EACCES}, {SQLITE_PERM, -EACCES},
    };
    for (size_t i = 0; i < ELEMENTS(codes); i++)
        if ((answer & 0xff) == codes[i].answer)
            return codes[i].code;
    return -EIO;
}

static int failed(struct store *s, const char *doing, struct error *err) {
    int code = code_of(sqlite3_errcode(s->db));
    return error_set(err, code, "store: cannot %s %s: %s%s", doing, STORE_NAME, sqlite3_errmsg(s->db),
                     code == -ENOSPC ? "; free some space in doorward's state folder" : "");
}

static int prepare(struct store *s, enum statement i, sqlite3_stmt **ret, struct error *err) {
    if (!s->prepared[i] && sqlite3_prepare_v2(s->db, statements[i], -1, &s->prepared[i], NULL) != SQLITE_OK)
        return failed(s, "use", err);
    sqlite3_reset(s->prepared[i]);
    *ret = s->prepared[i];
    return 0;
}

/* A statement without rows. */
static int execute(struct store *s, enum statement i, struct error *err) {
    sqlite3_stmt *q = NULL;
    int r = prepare(s, i, &q, err);
    if (r == 0 && sqlite3_step(q) != SQLITE_DONE)
        r = failed(s, "change", err);
    if (r == 0)
        sqlite3_reset(q);
    return r;
}

/* The first column of a pragma's first row, as a number; -1 when there is none. */
static int64_t pragma_number(struct store *s, const char *sql) {
    sqlite3_stmt *q = NULL;
    int64_t n = -1;
    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return n;
}

/* Reads every page: a broken one would otherwise show up later, in the middle of an answer. */
static bool is_intact(struct store *s) {
    sqlite3_stmt *q = NULL;
    bool intact = sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &q, NULL) == SQLITE_OK &&
                  sqlite3_step(q) == SQLITE_ROW && !strcmp((const char *)sqlite3_column_text(q, 0), "ok");
    sqlite3_finalize(q);
    return intact;
}

/* An empty file gets the schema; another must be ours and whole. -EBADMSG: neither. */
static int check_or_create(struct store *s, struct error *err) {
    int64_t tables = pragma_number(s, "SELECT count(*) FROM sqlite_schema");
    if (tables < 0 && code_of(sqlite3_errcode(s->db)) != -EBADMSG)
        return failed(s, "read", err);
    if (tables == 0) {
        if (sqlite3_exec(s->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK)
            return failed(s, "create", err);
        return 0;
    }
    int64_t version = pragma_number(s, "PRAGMA user_version");
    if (pragma_number(s, "PRAGMA application_id") != APPLICATION_ID)
        return error_set(err, -EBADMSG, "store: %s is not doorward's", STORE_NAME);
    if (version > SCHEMA_VERSION)
        return error_set(
            err, -EPROTONOSUPPORT,
            "store: %s was made by a newer doorward (schema %lld, this one knows %d): use that one, or move "
            "the file away, and it is rebuilt from the journals",
            STORE_NAME, (long long)version, SCHEMA_VERSION);
    return version == SCHEMA_VERSION && is_intact(s) ? 0 : error_set(err, -EBADMSG, "store: %s is damaged", STORE_NAME);
}

static int open_file(const char *path, int flags, struct store **ret, struct error *err) {
    struct store *s = calloc(1, sizeof(*s));
    if (!s)
        return error_set(err, -ENOMEM, "store: out of memory");
    int r = 0;
    if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | flags, NULL) != SQLITE_OK)
        r = failed(s, "open", err);
    if (r == 0) {
        sqlite3_busy_timeout(s->db, BUSY_MS);
        sqlite3_extended_result_codes(s->db, 1);
        sqlite3_exec(s->db, "PRAGMA synchronous=NORMAL; PRAGMA trusted_schema=OFF", NULL, NULL, NULL);
        r = check_or_create(s, err);
    }
    if (r < 0)
        store_close(s);
    else
        *ret = s;
    return r;
}

int store_open_memory(struct store **ret, struct error *err) {
    return open_file("doorward", SQLITE_OPEN_MEMORY, ret, err);
}

/* Renames what is there; its helper files belong to it and go with it. */
static int set_aside(int dirfd, struct error *err) {
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char ulid[ULID_TEXT];
    int r = ulid_new(ulid);
    for (size_t i = 0; r == 0 && i < ELEMENTS(suffixes); i++) {
        char from[64], to[128];
        snprintf(from, sizeof(from), STORE_NAME "%s", suffixes[i]);
        snprintf(to, sizeof(to), STORE_NAME ".damaged-%s%s", ulid, suffixes[i]);
        if (renameat(dirfd, from, dirfd, to) < 0 && errno != ENOENT)
            r = -errno;
    }
    return r < 0 ? error_errno(err, r, "store: cannot set the damaged %s aside", STORE_NAME) : 0;
}

/* SQLite gives new files the mode 0644 and its helper files that of the database: so the file is made first. */
static int make_file(int dirfd, struct error *err) {
    _cleanup_fd_ int fd = openat(dirfd, STORE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    struct stat st;
    if (fd < 0 && errno == ELOOP)
        return error_set(err, -EBADMSG, "store: %s is a link", STORE_NAME);
    if (fd < 0)
        return error_errno(err, -errno, "store: cannot open %s in doorward's state folder", STORE_NAME);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, -EBADMSG, "store: %s is not a regular file", STORE_NAME);
    return 0;
}

static int open_once(int dirfd, const char *path, struct store **ret, struct error *err) {
    int r = make_file(dirfd, err);
    return r < 0 ? r : open_file(path, SQLITE_OPEN_NOFOLLOW, ret, err);
}

int store_open(int state_dirfd, struct store **ret, struct error *err) {
    char link[64], folder[PATH_MAX], path[PATH_MAX + sizeof(STORE_NAME) + 1];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", state_dirfd);
    ssize_t n = readlink(link, folder, sizeof(folder) - 1);
    if (n < 0)
        return error_errno(err, -errno, "store: cannot tell where doorward's state folder is");
    folder[n] = 0;
    snprintf(path, sizeof(path), "%s/%s", folder, STORE_NAME);
    _cleanup_fd_ int lock = openat(state_dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        return error_errno(err, -errno, "store: cannot lock doorward's state folder");
    int r = open_once(state_dirfd, path, ret, err);
    if (r != -EBADMSG)
        return r;
    r = set_aside(state_dirfd, err);
    return r < 0 ? r : open_once(state_dirfd, path, ret, err);
}

static void bind_text(sqlite3_stmt *q, int i, const char *s) {
    sqlite3_bind_text(q, i, s, -1, SQLITE_STATIC);
}

int store_put_run(struct store *s, const struct store_run *row, struct error *err) {
    sqlite3_stmt *q = NULL;
    int r = prepare(s, PUT, &q, err);
    if (r < 0)
        return r;
    bind_text(q, 1, row->run);
    bind_text(q, 2, row->task);
    bind_text(q, 3, row->stop);
    sqlite3_bind_int(q, 4, row->exit_status);
    sqlite3_bind_int64(q, 5, (sqlite3_int64)row->started_us);
    sqlite3_bind_int64(q, 6, (sqlite3_int64)row->ended_us);
    bind_text(q, 7, row->policy_digest);
    bind_text(q, 8, row->journal_head);
    return execute(s, PUT, err);
}

static void column_text(sqlite3_stmt *q, int i, char *to, size_t room) {
    const unsigned char *text = sqlite3_column_text(q, i);
    snprintf(to, room, "%s", text ? (const char *)text : "");
}

static void read_row(sqlite3_stmt *q, struct store_run *ret) {
    *ret = (struct store_run){
        .exit_status = sqlite3_column_int(q, 3),
        .started_us = (uint64_t)sqlite3_column_int64(q, 4),
        .ended_us = (uint64_t)sqlite3_column_int64(q, 5),
    };
    column_text(q, 0, ret->run, sizeof(ret->run));
    column_text(q, 1, ret->task, sizeof(ret->task));
    column_text(q, 2, ret->stop, sizeof(ret->stop));
    column_text(q, 6, ret->policy_digest, sizeof(ret->policy_digest));
    column_text(q, 7, ret->journal_head, sizeof(ret->journal_head));
}

int store_find_run(struct store *s, const char run[ULID_TEXT], struct store_run *ret, struct error *err) {
    sqlite3_stmt *q = NULL;
    int r = prepare(s, FIND, &q, err);
    if (r < 0)
        return r;
    bind_text(q, 1, run);
    int answer = sqlite3_step(q);
    if (answer != SQLITE_ROW && answer != SQLITE_DONE)
        return failed(s, "read", err);
    if (answer == SQLITE_ROW)
        read_row(q, ret);
    sqlite3_reset(q);
    return answer == SQLITE_ROW;
}

int store_each_run(struct store *s, int (*visit)(void *data, const struct store_run *row), void *data,
                   struct error *err) {
    sqlite3_stmt *q = NULL;
    int answer, r = prepare(s, EACH, &q, err);
    while (r == 0 && (answer = sqlite3_step(q)) != SQLITE_DONE) {
        struct store_run row;
        if (answer != SQLITE_ROW)
            return failed(s, "read", err);
        read_row(q, &row);
        r = visit(data, &row);
    }
    if (r >= 0)
        sqlite3_reset(s->prepared[EACH]);
    return r;
}

/* The names of ended runs, in order, in one block of memory. */
struct names {
    char (*run)[ULID_TEXT];
    size_t n, room;
};

static int add_name(struct names *names, const char *run) {
    if (names->n == names->room) {
        size_t room = names->room ? 2 * names->room : 256;
        void *more = realloc(names->run, room * ULID_TEXT);
        if (!more)
            return -ENOMEM;
        names->run = more;
        names->room = room;
    }
    snprintf(names->run[names->n++], ULID_TEXT, "%s", run);
    return 0;
}

static void free_names(struct names *names) {
    free(names->run);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

static int ended_runs(struct store *s, struct names *ret, struct error *err) {
    sqlite3_stmt *q = NULL;
    int answer, r = prepare(s, ENDED, &q, err);
    while (r == 0 && (answer = sqlite3_step(q)) != SQLITE_DONE) {
        if (answer != SQLITE_ROW)
            return failed(s, "read", err);
        if (add_name(ret, (const char *)sqlite3_column_text(q, 0)) < 0)
            r = error_set(err, -ENOMEM, "store: out of memory");
    }
    if (r == 0)
        sqlite3_reset(q);
    return r;
}

/* The folders below runs/ that are named after a run and are not in `ended`. None when there is no runs/ yet. */
static int open_runs(int state_dirfd, const struct names *ended, struct names *ret, struct error *err) {
    int fd = openat(state_dirfd, "runs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int code = -errno;
        fd_close(fd);
        return fd < 0 && code == -ENOENT
                   ? 0
                   : error_errno(err, code, "store: cannot list runs/ in doorward's state folder");
    }
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(dir));)
        if (ulid_is_valid(e->d_name) &&
            (!ended->n || !bsearch(e->d_name, ended->run, ended->n, ULID_TEXT, compare_names)))
            r = add_name(ret, e->d_name);
    closedir(dir);
    return r < 0 ? error_set(err, r, "store: out of memory") : 0;
}

/* Reads `n` journals and puts them in one transaction. The reading comes first, so that nobody waits for it. */
static int sync_some(struct store *s, int runs_fd, char (*run)[ULID_TEXT], size_t n, struct error *err) {
    enum { BATCH = 128 };
    struct store_run rows[BATCH];
    size_t found = 0;
    for (size_t i = 0; i < n && i < BATCH; i++) {
        _cleanup_fd_ int fd = openat(runs_fd, run[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? -errno : store_read_run(fd, run[i], &rows[found], err);
        if (r == 0)
            found++;
        else if (r != -ENOENT && r != -ENOTDIR && r != -ELOOP) /* just being made, or no run */
            return r == -ENOMEM || fd >= 0 ? r : error_errno(err, r, "store: cannot open the folder of run %s", run[i]);
    }
    int r = found ? execute(s, BEGIN, err) : 0;
    for (size_t i = 0; i < found && r == 0; i++)
        r = store_put_run(s, &rows[i], err);
    if (r == 0 && found)
        r = execute(s, COMMIT, err);
    if (r < 0 && !sqlite3_get_autocommit(s->db))
        execute(s, ROLLBACK, NULL);
    return r < 0 ? r : (int)(n < BATCH ? n : BATCH);
}

int store_sync(struct store *s, int state_dirfd, struct error *err) {
    _cleanup_(free_names) struct names ended = {0}, fresh = {0};
    int r = ended_runs(s, &ended, err);
    if (r == 0)
        r = open_runs(state_dirfd, &ended, &fresh, err);
    if (r < 0 || !fresh.n)
        return r;
    _cleanup_fd_ int runs = openat(state_dirfd, "runs", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (runs < 0)
        return error_errno(err, -errno, "store: cannot open runs/ in doorward's state folder");
    for (size_t i = 0; i < fresh.n; i += (size_t)r)
        if ((r = sync_some(s, runs, fresh.run + i, fresh.n - i, err)) < 0)
            return r;
    return 0;
}
