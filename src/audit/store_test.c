/* store_test.c: the index follows the journals, survives damage, and several processes at once. */
#include "base/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "audit/journal.h"
#include "audit/store.h"
#include "base/fd.h"

/* A state folder with runs/, gone with its scope. */
struct state {
    char path[64];
    int fd;
};

static struct state state_make(void) {
    struct state s = {.fd = -1};
    snprintf(s.path, sizeof(s.path), "%s/dw-store-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(s.path))
        s.fd = open(s.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s.fd >= 0 && mkdirat(s.fd, "runs", 0700) < 0)
        s.fd = fd_close(s.fd);
    return s;
}

static void empty_folder(int fd) {
    DIR *dir = fdopendir(fd);
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        int below = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            empty_folder(below);
        unlinkat(fd, e->d_name, below >= 0 ? AT_REMOVEDIR : 0);
    }
    closedir(dir);
}

static void state_drop(struct state *s) {
    empty_folder(openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    rmdir(s->path);
    fd_close(s->fd);
}
#define _cleanup_state_ _cleanup_(state_drop)

static void run_name(char run[ULID_TEXT], int i) {
    snprintf(run, ULID_TEXT, "01K0ABCDEFGHJKMNPQ%08d", i);
}

static int run_folder(const struct state *s, int i) {
    char path[64], run[ULID_TEXT];
    run_name(run, i);
    snprintf(path, sizeof(path), "runs/%s", run);
    mkdirat(s->fd, path, 0700);
    return openat(s->fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool put(struct journal *j, const char *type, json_t *body) {
    int r = journal_append(j, type, body, JOURNAL_WRITTEN, NULL);
    json_decref(body);
    return r == 0;
}

/* A run's journal up to its start, or to its end when `stop` is given. */
static bool make_run(const struct state *s, int i, const char *stop, char head[DIGEST_HEX]) {
    _cleanup_journal_ struct journal *j = NULL;
    _cleanup_fd_ int fd = run_folder(s, i);
    char run[ULID_TEXT];
    run_name(run, i);
    bool fine = fd >= 0 && journal_create(fd, run, &j, NULL) == 0 &&
                put(j, "run.start", json_pack("{s:s, s:s}", "task", "fix-bug", "policy_digest", "abc"));
    if (fine && stop)
        fine = put(j, "run.end", json_pack("{s:s, s:i}", "stop", stop, "exit", 7));
    if (fine && head)
        memcpy(head, journal_head(j), DIGEST_HEX);
    return fine;
}

static int count_rows(void *data, const struct store_run *row) {
    int *n = data;
    *n += row->run[0] != 0;
    return 0;
}

static int rows_of(struct store *s) {
    int n = 0;
    return store_each_run(s, count_rows, &n, NULL) == 0 ? n : -1;
}

static int set_aside_files(const struct state *s) {
    int n = 0;
    DIR *dir = opendir(s->path);
    for (struct dirent *e; (e = readdir(dir));)
        n += !strncmp(e->d_name, STORE_NAME ".damaged-", strlen(STORE_NAME ".damaged-")) &&
             !strstr(e->d_name, "-wal") && !strstr(e->d_name, "-shm");
    closedir(dir);
    return n;
}

TEST(index_follows_the_journals) {
    _cleanup_state_ struct state s = state_make();
    _cleanup_store_ struct store *store = NULL;
    struct store_run row;
    struct error err = {0};
    char run[ULID_TEXT], head[DIGEST_HEX];
    CHECK(make_run(&s, 1, "failed", head) && make_run(&s, 2, NULL, NULL));
    CHECK_EQ(mkdirat(s.fd, "runs/not-a-run", 0700), 0);
    CHECK(run_folder(&s, 3) >= 0); /* its journal is just being made */
    CHECK_EQ(store_open(s.fd, &store, &err), 0);
    CHECK_EQ(store_sync(store, s.fd, &err), 0);
    CHECK_EQ(rows_of(store), 2);
    run_name(run, 1);
    CHECK_EQ(store_find_run(store, run, &row, NULL), 1);
    CHECK_STR(row.task, "fix-bug");
    CHECK_STR(row.stop, "failed");
    CHECK_STR(row.policy_digest, "abc");
    CHECK_STR(row.journal_head, head);
    CHECK_EQ(row.exit_status, 7);
    CHECK(row.started_us > 1700000000000000ull && row.ended_us >= row.started_us);
    CHECK(row.ended_us < clock_real_us() + 1);
    run_name(run, 2);
    CHECK_EQ(store_find_run(store, run, &row, NULL), 1);
    CHECK_STR(row.stop, "");
    CHECK_EQ(row.ended_us, 0);
    run_name(run, 3);
    CHECK_EQ(store_find_run(store, run, &row, NULL), 0);
    struct stat st;
    CHECK(fstatat(s.fd, STORE_NAME, &st, 0) == 0 && (st.st_mode & 07777) == 0600);
}

static int newest(void *data, const struct store_run *row) {
    snprintf(data, ULID_TEXT, "%s", row->run);
    return 9;
}

TEST(newest_comes_first) {
    _cleanup_state_ struct state s = state_make();
    _cleanup_store_ struct store *store = NULL;
    char run[ULID_TEXT], want[ULID_TEXT];
    for (int i = 0; i < 300; i++)
        CHECK(make_run(&s, i, "completed", NULL));
    CHECK_EQ(store_open(s.fd, &store, NULL), 0);
    CHECK_EQ(store_sync(store, s.fd, NULL), 0);
    CHECK_EQ(rows_of(store), 300);
    CHECK_EQ(store_each_run(store, newest, run, NULL), 9);
    run_name(want, 299);
    CHECK_STR(run, want);
}

TEST(open_runs_are_read_again_and_ended_ones_never) {
    _cleanup_state_ struct state s = state_make();
    _cleanup_store_ struct store *store = NULL;
    _cleanup_journal_ struct journal *j = NULL;
    struct store_run row;
    char run[ULID_TEXT], head[DIGEST_HEX];
    CHECK(make_run(&s, 1, NULL, NULL) && make_run(&s, 2, "completed", head));
    CHECK_EQ(store_open(s.fd, &store, NULL), 0);
    CHECK_EQ(store_sync(store, s.fd, NULL), 0);
    _cleanup_fd_ int one = run_folder(&s, 1), two = run_folder(&s, 2);
    CHECK_EQ(journal_open(one, &j, NULL), 0);
    CHECK(put(j, "run.lost", json_object()));
    /* Somebody drops the tail of the ended run: the recorded head stays. */
    int fd = openat(two, JOURNAL_NAME, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK(fd >= 0);
    fd_close(fd);
    CHECK_EQ(store_sync(store, s.fd, NULL), 0);
    run_name(run, 1);
    CHECK_EQ(store_find_run(store, run, &row, NULL), 1);
    CHECK_STR(row.stop, "lost");
    CHECK_EQ(row.exit_status, 125);
    run_name(run, 2);
    CHECK_EQ(store_find_run(store, run, &row, NULL), 1);
    CHECK_STR(row.journal_head, head);
    row.stop[0] = 0;
    row.journal_head[0] = 0;
    CHECK_EQ(store_put_run(store, &row, NULL), 0);
    CHECK_EQ(store_find_run(store, run, &row, NULL), 1);
    CHECK_STR(row.journal_head, head);
}

TEST(changed_journals_are_shown_as_damaged) {
    _cleanup_state_ struct state s = state_make();
    _cleanup_store_ struct store *store = NULL;
    struct store_run row;
    char run[ULID_TEXT];
    CHECK(make_run(&s, 1, "completed", NULL) && make_run(&s, 2, "completed", NULL));
    _cleanup_fd_ int one = run_folder(&s, 1), two = run_folder(&s, 2);
    _cleanup_fd_ int fd = openat(one, JOURNAL_NAME, O_WRONLY | O_CLOEXEC);
    CHECK_EQ(pwrite(fd, "[", 1, 0), 1);
    /* Run 2's folder holds the journal of a third. */
    CHECK(make_run(&s, 3, "completed", NULL));
    _cleanup_fd_ int three = run_folder(&s, 3);
    CHECK_EQ(renameat(three, JOURNAL_NAME, two, JOURNAL_NAME), 0);
    CHECK_EQ(store_open(s.fd, &store, NULL), 0);
    CHECK_EQ(store_sync(store, s.fd, NULL), 0);
    for (int i = 1; i < 3; i++) {
        run_name(run, i);
        CHECK_EQ(store_find_run(store, run, &row, NULL), 1);
        CHECK_STR(row.stop, STORE_DAMAGED);
        CHECK_EQ(row.ended_us, 0);
    }
}

TEST(an_index_in_memory_needs_no_disk) {
    _cleanup_state_ struct state s = state_make();
    _cleanup_store_ struct store *store = NULL;
    CHECK(make_run(&s, 1, "completed", NULL));
    CHECK_EQ(store_open_memory(&store, NULL), 0);
    CHECK_EQ(store_sync(store, s.fd, NULL), 0);
    CHECK_EQ(rows_of(store), 1);
    CHECK(faccessat(s.fd, STORE_NAME, F_OK, 0) < 0);
}

struct damage {
    const char *name;
    int at; /* where the junk goes; -1 = the file holds nothing else */
    const char *junk;
};

static bool do_damage(const struct state *s, const struct damage *d) {
    _cleanup_fd_ int fd = openat(s->fd, STORE_NAME, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char junk[8192];
    for (size_t i = 0; i < sizeof(junk); i++)
        junk[i] = d->junk[i % strlen(d->junk)];
    if (d->at < 0)
        return ftruncate(fd, 0) == 0 && fd_write_all(fd, junk, sizeof(junk)) == 0;
    return pwrite(fd, junk, 3000, d->at) == 3000;
}

TEST(damaged_files_are_set_aside_and_rebuilt) {
    static const struct damage damages[] = {
        {"no database at all", -1, "these are no pages "},
        {"header", 0, "SQLite format 9"},
        {"the pages behind it", 4096, "\377\1"},
    };
    for (size_t i = 0; i < ELEMENTS(damages); i++) {
        _cleanup_state_ struct state s = state_make();
        _cleanup_store_ struct store *store = NULL;
        struct error err = {0};
        for (int k = 0; k < 200; k++)
            CHECK(make_run(&s, k, "completed", NULL));
        CHECK_EQ(store_open(s.fd, &store, &err), 0);
        CHECK_EQ(store_sync(store, s.fd, &err), 0);
        store = store_close(store); /* the last one out moves the log into the file */
        CHECK(do_damage(&s, &damages[i]));
        int r = store_open(s.fd, &store, &err);
        if (r < 0)
            printf("# %s: %s\n", damages[i].name, err.message);
        CHECK_EQ(r, 0);
        CHECK_EQ(set_aside_files(&s), 1);
        CHECK_EQ(rows_of(store), 0);
        CHECK_EQ(store_sync(store, s.fd, &err), 0);
        CHECK_EQ(rows_of(store), 200);
    }
}

TEST(foreign_and_newer_files_are_not_written) {
    _cleanup_state_ struct state s = state_make();
    struct store *store = NULL;
    struct error err = {0};
    char command[256];
    snprintf(
        command, sizeof(command),
        "/usr/bin/python3 -c \"import sqlite3,sys; d=sqlite3.connect(sys.argv[1]); d.execute('create table t(x)'); "
        "d.commit()\" %s/%s",
        s.path, STORE_NAME);
    CHECK_EQ(system(command), 0);
    CHECK_EQ(store_open(s.fd, &store, &err), 0);
    CHECK_EQ(set_aside_files(&s), 1);
    store = store_close(store);
    snprintf(
        command, sizeof(command),
        "/usr/bin/python3 -c \"import sqlite3,sys; d=sqlite3.connect(sys.argv[1]); d.execute('pragma user_version=2')\""
        " %s/%s",
        s.path, STORE_NAME);
    CHECK_EQ(system(command), 0);
    CHECK_EQ(store_open(s.fd, &store, &err), -EPROTONOSUPPORT);
    CHECK(strstr(err.message, "newer doorward"));
    CHECK_EQ(unlinkat(s.fd, STORE_NAME, 0), 0);
    CHECK_EQ(symlinkat("/etc/passwd", s.fd, STORE_NAME), 0);
    CHECK_EQ(store_open(s.fd, &store, &err), 0); /* the link was set aside, what it names was not touched */
    CHECK_EQ(set_aside_files(&s), 2);
    store = store_close(store);
}

/* One of the processes below: opens, brings up to date, writes a row of its own, `rounds` times. */
static int busy_child(const struct state *s, int who, int rounds) {
    for (int i = 0; i < rounds; i++) {
        _cleanup_store_ struct store *store = NULL;
        struct error err = {0};
        struct store_run row = {.task = "own", .stop = "completed", .ended_us = 1};
        run_name(row.run, 1000 + who * 100 + i);
        if (store_open(s->fd, &store, &err) < 0 || store_sync(store, s->fd, &err) < 0 ||
            store_put_run(store, &row, &err) < 0) {
            printf("# process %d, round %d: %s\n", who, i, err.message);
            fflush(stdout);
            return 1;
        }
    }
    return 0;
}

TEST(several_processes_work_at_once) {
    enum { PROCESSES = 6, ROUNDS = 10, RUNS = 60 };
    _cleanup_state_ struct state s = state_make();
    pid_t pids[PROCESSES];
    for (int i = 0; i < RUNS; i++)
        CHECK(make_run(&s, i, i % 2 ? "completed" : NULL, NULL));
    CHECK(do_damage(&s, &(struct damage){"", -1, "junk"})); /* all of them meet a damaged file at first */
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++)
        if ((pids[i] = fork()) == 0)
            _exit(busy_child(&s, i, ROUNDS));
    int bad = 0, status;
    for (int i = 0; i < PROCESSES; i++)
        bad += waitpid(pids[i], &status, 0) != pids[i] || status != 0;
    CHECK_EQ(bad, 0);
    CHECK_EQ(set_aside_files(&s), 1);
    _cleanup_store_ struct store *store = NULL;
    CHECK_EQ(store_open(s.fd, &store, NULL), 0);
    CHECK_EQ(rows_of(store), RUNS + PROCESSES * ROUNDS);
}

TEST_MAIN()
