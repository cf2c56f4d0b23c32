/* journal_test.c: append, check, repair, and every way of changing a journal that must be noticed. */
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <utime.h>

#include "audit/chain.h"
#include "base/buf.h"
#include "base/fd.h"

static const char run[ULID_TEXT] = "01K0ABCDEFGHJKMNPQRSTVWXYZ";
static const char other_run[ULID_TEXT] = "01K0ABCDEFGHJKMNPQRSTVWXY0";

/* A folder named after the run, gone with its scope. */
struct place {
    char top[64], folder[128], file[192];
    int dirfd;
};

static struct place place_make(const char *name) {
    struct place p = {.dirfd = -1};
    snprintf(p.top, sizeof(p.top), "%s/dw-journal-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(p.top))
        return p;
    snprintf(p.folder, sizeof(p.folder), "%s/%s", p.top, name);
    snprintf(p.file, sizeof(p.file), "%s/%s", p.folder, JOURNAL_NAME);
    if (mkdir(p.folder, 0700) == 0)
        p.dirfd = open(p.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return p;
}

static void place_drop(struct place *p) {
    unlink(p->file);
    rmdir(p->folder);
    rmdir(p->top);
    fd_close(p->dirfd);
}
#define _cleanup_place_ _cleanup_(place_drop)

static int append(struct journal *j, const char *type, json_t *body, struct error *err) {
    int r = journal_append(j, type, body, JOURNAL_WRITTEN, err);
    json_decref(body);
    return r;
}

/* A small run: start, `n` denials, end. */
static bool write_run(int dirfd, int n, bool ended) {
    _cleanup_journal_ struct journal *j = NULL;
    bool fine = journal_create(dirfd, run, &j, NULL) == 0;
    fine = fine && append(j, "run.start", json_pack("{s:s}", "task", "t"), NULL) == 0;
    for (int i = 0; i < n && fine; i++)
        fine = append(j, "door.denied", json_pack("{s:i}", "attempt", i), NULL) == 0;
    return fine && (!ended || append(j, "run.end", json_pack("{s:s}", "stop", "completed"), NULL) == 0);
}

static char *slurp(const struct place *p, size_t *n) {
    char *bytes = NULL;
    int fd = open(p->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fd_read_file(fd, JOURNAL_BYTES_MAX, &bytes, n, NULL) < 0)
        bytes = NULL;
    fd_close(fd);
    return bytes;
}

static bool spill(const struct place *p, const char *bytes, size_t n) {
    int fd = open(p->file, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
    bool fine = fd >= 0 && fd_write_all(fd, bytes, n) == 0;
    fd_close(fd);
    return fine;
}

/* Start of line `i` (0 = first); the end of the bytes for one past the last. */
static const char *line_at(const char *bytes, int i) {
    for (; i > 0; i--)
        bytes = strchr(bytes, '\n') + 1;
    return bytes;
}

TEST(records_chain_and_check) {
    _cleanup_place_ struct place p = place_make(run);
    size_t n;
    struct journal_report report;
    CHECK(write_run(p.dirfd, 5, true));
    _cleanup_free_ char *bytes = slurp(&p, &n);
    journal_check(bytes, n, &report);
    CHECK_STR(report.why, "");
    CHECK_EQ(report.records, 7);
    CHECK(report.first_bad == UINT64_MAX);
    CHECK(report.ended && !report.torn);
    CHECK_STR(report.run, run);
    struct stat st;
    CHECK(stat(p.file, &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0600);
}

/* The form is a promise to other programs: it is computed here without chain.c. */
TEST(form_is_as_documented) {
    _cleanup_place_ struct place p = place_make(run);
    size_t n;
    CHECK(write_run(p.dirfd, 0, false));
    _cleanup_free_ char *bytes = slurp(&p, &n);
    char *cut = strstr(bytes, ",\"hash\":\"");
    CHECK(cut && cut == bytes + 20 && !strncmp(bytes, "{\"body\":{\"task\":\"t\"}", 20));
    char said[DIGEST_HEX], is[DIGEST_HEX];
    memcpy(said, cut + 9, 64);
    said[64] = 0;
    memmove(cut, cut + 9 + 65, strlen(cut + 9 + 65) + 1);
    digest_hex(bytes, strlen(bytes) - 1, is);
    CHECK_STR(is, said);
    CHECK(strstr(bytes, ",\"prev\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"run\":"
                        "\"01K0ABCDEFGHJKMNPQRSTVWXYZ\",\"seq\":0,\"time\":\"2"));
    CHECK(strstr(bytes, "Z\",\"type\":\"run.start\"}\n"));
}

TEST(creating_twice_is_refused) {
    _cleanup_place_ struct place p = place_make(run);
    struct journal *j = NULL;
    struct error err = {0};
    CHECK(write_run(p.dirfd, 0, false));
    CHECK_EQ(journal_create(p.dirfd, run, &j, &err), -EEXIST);
    CHECK(j == NULL && strstr(err.message, run));
}

struct change {
    const char *name;
    uint64_t first_bad;
    const char *why;
};

/* Each change is made to a journal of six records and must be named. */
static size_t change_bytes(const struct change *c, const char *bytes, size_t n, char *to) {
    const char *two = line_at(bytes, 2), *three = line_at(bytes, 3), *four = line_at(bytes, 4);
    struct buf b = {0};
    if (!strcmp(c->name, "cut a line")) {
        buf_put(&b, bytes, (size_t)(two - bytes));
        buf_puts(&b, three);
    } else if (!strcmp(c->name, "cut the first line")) {
        buf_puts(&b, line_at(bytes, 1));
    } else if (!strcmp(c->name, "swap two")) {
        buf_put(&b, bytes, (size_t)(two - bytes));
        buf_put(&b, three, (size_t)(four - three));
        buf_put(&b, two, (size_t)(three - two));
        buf_puts(&b, four);
    } else if (!strcmp(c->name, "repeat one")) {
        buf_put(&b, bytes, (size_t)(three - bytes));
        buf_puts(&b, two);
    } else if (!strcmp(c->name, "add white space")) {
        buf_put(&b, bytes, (size_t)(two - bytes));
        buf_puts(&b, " ");
        buf_puts(&b, two);
    } else if (!strcmp(c->name, "an empty line")) {
        buf_put(&b, bytes, (size_t)(two - bytes));
        buf_puts(&b, "\n");
        buf_puts(&b, two);
    } else {
        buf_put(&b, bytes, n);
        char *at = b.bytes + (two - bytes);
        if (!strcmp(c->name, "a digit of the body"))
            strstr(at, "\"attempt\":1")[10] = '7';
        else if (!strcmp(c->name, "a digit of the hash"))
            strstr(at, "\"hash\":\"")[8] ^= 1;
        else if (!strcmp(c->name, "a bracket"))
            *at = '[';
        else if (!strcmp(c->name, "a byte above 127"))
            at[4] = (char)0xff;
        else if (!strcmp(c->name, "a NUL in the middle"))
            at[4] = 0;
    }
    memcpy(to, b.bytes, b.n);
    n = b.n;
    buf_free(&b);
    return n;
}

TEST(every_change_is_named) {
    static const struct change changes[] = {
        {"cut a line", 2, "removed"},
        {"cut the first line", 0, "removed"},
        {"swap two", 2, "moved"},
        {"repeat one", 3, "numbered 2"},
        {"add white space", 2, "canonical"},
        {"an empty line", 2, "not JSON"},
        {"a digit of the body", 2, "does not match its hash"},
        {"a digit of the hash", 2, "hash"},
        {"a bracket", 2, "not JSON"},
        {"a byte above 127", 2, "not JSON"},
        {"a NUL in the middle", 2, "NUL"},
    };
    _cleanup_place_ struct place p = place_make(run);
    size_t n;
    CHECK(write_run(p.dirfd, 4, true));
    _cleanup_free_ char *bytes = slurp(&p, &n), *changed = malloc(2 * n);
    for (size_t i = 0; i < ELEMENTS(changes); i++) {
        struct journal_report report;
        size_t m = change_bytes(&changes[i], bytes, n, changed);
        CHECK(m != n || memcmp(bytes, changed, n) != 0);
        journal_check(changed, m, &report);
        if (report.first_bad != changes[i].first_bad || !strstr(report.why, changes[i].why))
            printf("# %s: record %" PRIu64 ", %s\n", changes[i].name, report.first_bad, report.why);
        CHECK(report.first_bad == changes[i].first_bad);
        CHECK(strstr(report.why, changes[i].why));
        CHECK(!report.torn && report.records == changes[i].first_bad);
        CHECK(spill(&p, changed, m));
        struct journal *j = NULL;
        CHECK_EQ(journal_open(p.dirfd, &j, NULL), -EBADMSG);
        size_t after;
        _cleanup_free_ char *same = slurp(&p, &after);
        CHECK(after == m && !memcmp(same, changed, m)); /* nothing was written */
    }
}

/* One flipped bit anywhere in any record is noticed. */
TEST(every_flipped_byte_is_noticed) {
    _cleanup_place_ struct place p = place_make(run);
    size_t n;
    CHECK(write_run(p.dirfd, 2, true));
    _cleanup_free_ char *bytes = slurp(&p, &n);
    for (size_t i = 0; i < n; i++) {
        struct journal_report report;
        bytes[i] ^= 1;
        journal_check(bytes, n, &report);
        CHECK(report.first_bad != UINT64_MAX || report.torn);
        bytes[i] ^= 1;
    }
}

/* A record that an attacker appends with a correct hash of its own still has to follow from the one before. */
TEST(records_of_another_journal_do_not_fit) {
    struct chain a, b;
    char hash[DIGEST_HEX], why[256];
    _cleanup_json_ json_t *body = json_object();
    _cleanup_buf_ struct buf line = {0};
    chain_start(&a);
    chain_start(&b);
    memcpy(a.run, run, ULID_TEXT);
    memcpy(b.run, other_run, ULID_TEXT);
    CHECK(chain_make(&b, "run.start", body, 1, &line, hash, NULL) == 0);
    struct chain c = a;
    c.seq = 1;
    CHECK_EQ(chain_read(&c, line.bytes, line.n - 1, NULL, why), -EBADMSG);
    c = a;
    chain_step(&c, "run.start", hash);
    line.n = 0;
    b.seq = 1;
    memcpy(b.head, hash, DIGEST_HEX);
    CHECK(chain_make(&b, "run.end", body, 1, &line, hash, NULL) == 0);
    CHECK_EQ(chain_read(&c, line.bytes, line.n - 1, NULL, why), -EBADMSG);
    CHECK(strstr(why, "another run"));
}

TEST(a_dropped_tail_is_a_run_without_end) {
    _cleanup_place_ struct place p = place_make(run);
    size_t n;
    struct journal_report whole, report;
    CHECK(write_run(p.dirfd, 3, true));
    _cleanup_free_ char *bytes = slurp(&p, &n);
    journal_check(bytes, n, &whole);
    journal_check(bytes, (size_t)(line_at(bytes, 4) - bytes), &report);
    CHECK(report.first_bad == UINT64_MAX && !report.torn);
    CHECK(whole.ended && !report.ended);
    CHECK(strcmp(whole.head, report.head) != 0);
}

/* What a killed writer, or a machine without power, leaves behind the last whole record. */
struct tail {
    const char *bytes;
    size_t n;
};

TEST(torn_tails_are_repaired_by_a_record) {
    static const struct tail tails[] = {
        {"{\"body\":{\"atte", 14},
        {"x", 1},
        {"\0\0\0\0\0\0\0\0", 8},
        {"{\"bo\0\0\0\0", 8},
        {"\0\0\0\0:\"run.end\"}\n", 16},
        {"{\"body\":{}}", 11},
        {"\"", 1},
    };
    _cleanup_place_ struct place p = place_make(run);
    for (size_t i = 0; i < ELEMENTS(tails); i++) {
        _cleanup_journal_ struct journal *j = NULL;
        struct journal_report report;
        struct error err = {0};
        size_t n, m;
        unlink(p.file);
        CHECK(write_run(p.dirfd, 1, false));
        int fd = open(p.file, O_WRONLY | O_APPEND | O_CLOEXEC);
        CHECK(fd_write_all(fd, tails[i].bytes, tails[i].n) == 0);
        fd_close(fd);
        _cleanup_free_ char *torn = slurp(&p, &n);
        journal_check(torn, n, &report);
        CHECK(report.torn && report.first_bad == UINT64_MAX);
        CHECK_EQ(report.torn_bytes, tails[i].n);
        CHECK_EQ(report.records, 2);
        CHECK_EQ(journal_open(p.dirfd, &j, &err), 0);
        CHECK_EQ(journal_seq(j), 3);
        CHECK(append(j, "run.lost", json_object(), NULL) == 0);
        _cleanup_free_ char *mended = slurp(&p, &m);
        journal_check(mended, m, &report);
        CHECK_STR(report.why, "");
        CHECK(report.ended && report.records == 4 && !strcmp(report.head, journal_head(j)));
        char want[256], digest[DIGEST_HEX];
        digest_hex(tails[i].bytes, tails[i].n, digest);
        snprintf(want, sizeof(want), "{\"body\":{\"cut_bytes\":%zu,\"cut_digest\":\"%s\"},", tails[i].n, digest);
        CHECK(!strncmp(line_at(mended, 2), want, strlen(want)));
    }
}

/* A line that ends in a newline reached the file whole: a crash does not change letters in it. */
TEST(a_changed_last_line_is_no_torn_line) {
    _cleanup_place_ struct place p = place_make(run);
    struct journal_report report;
    size_t n;
    CHECK(write_run(p.dirfd, 1, true));
    _cleanup_free_ char *bytes = slurp(&p, &n);
    bytes[n - 2] = ']';
    journal_check(bytes, n, &report);
    CHECK(!report.torn && report.first_bad == 2);
}

TEST(overlong_lines_are_bad) {
    size_t n = JOURNAL_LINE_MAX + 10;
    _cleanup_free_ char *bytes = malloc(n + 1);
    struct journal_report report;
    memset(bytes, 'x', n);
    journal_check(bytes, n, &report);
    CHECK(!report.torn && report.first_bad == 0);
    CHECK(strstr(report.why, "longer"));
    bytes[n - 1] = '\n';
    journal_check(bytes, n, &report);
    CHECK(!report.torn && report.first_bad == 0);
    memset(bytes, 0, n); /* a lost block may be of any size */
    journal_check(bytes, n, &report);
    CHECK(report.torn && report.torn_bytes == n);
}

TEST(empty_file_is_left_to_its_creator_then_taken_over) {
    _cleanup_place_ struct place p = place_make(run);
    struct journal *j = NULL;
    CHECK(spill(&p, "", 0));
    CHECK(journal_is_live(p.dirfd));
    CHECK_EQ(journal_open(p.dirfd, &j, NULL), -EWOULDBLOCK);
    CHECK(utime(p.file, &(struct utimbuf){1, 1}) == 0);
    CHECK(!journal_is_live(p.dirfd));
    CHECK_EQ(journal_open(p.dirfd, &j, NULL), 0);
    CHECK_EQ(journal_seq(j), 0);
    CHECK(append(j, "run.lost", json_object(), NULL) == 0);
    j = journal_close(j);
    size_t n;
    struct journal_report report;
    _cleanup_free_ char *bytes = slurp(&p, &n);
    journal_check(bytes, n, &report);
    CHECK(report.ended && report.records == 1);
    CHECK_STR(report.run, run);
}

TEST(a_torn_first_line_takes_the_name_of_the_folder) {
    _cleanup_place_ struct place p = place_make(run), q = place_make("elsewhere");
    _cleanup_journal_ struct journal *j = NULL;
    struct error err = {0};
    CHECK(spill(&p, "{\"bo", 4));
    CHECK_EQ(journal_open(p.dirfd, &j, NULL), 0);
    CHECK_EQ(journal_seq(j), 1);
    CHECK(spill(&q, "{\"bo", 4));
    struct journal *k = NULL;
    CHECK_EQ(journal_open(q.dirfd, &k, &err), -ENODATA);
    CHECK(strstr(err.message, "not named after a run"));
}

TEST(the_lock_tells_who_lives) {
    _cleanup_place_ struct place p = place_make(run);
    struct journal *j = NULL, *k = NULL;
    CHECK_EQ(journal_create(p.dirfd, run, &j, NULL), 0);
    CHECK(append(j, "run.start", json_object(), NULL) == 0);
    CHECK(journal_is_live(p.dirfd));
    CHECK_EQ(journal_open(p.dirfd, &k, NULL), -EWOULDBLOCK);
    j = journal_close(j);
    CHECK(!journal_is_live(p.dirfd));
    CHECK_EQ(journal_open(p.dirfd, &j, NULL), 0);
    CHECK(journal_is_live(p.dirfd));
    j = journal_close(j);
    unlink(p.file);
    CHECK(!journal_is_live(p.dirfd));
    CHECK_EQ(journal_open(p.dirfd, &j, NULL), -ENOENT);
    CHECK(symlink("/etc/passwd", p.file) == 0);
    CHECK_EQ(journal_open(p.dirfd, &j, NULL), -ELOOP);
    unlink(p.file);
    CHECK(mkfifo(p.file, 0600) == 0);
    CHECK_EQ(journal_open(p.dirfd, &j, NULL), -EBADMSG);
}

/* A writer killed at any moment leaves whole records and at most one torn line. */
TEST(a_killed_writer_leaves_a_journal_that_opens) {
    for (int i = 0; i < 10; i++) {
        _cleanup_place_ struct place p = place_make(run);
        pid_t pid = fork();
        if (pid == 0) {
            struct journal *j;
            if (journal_create(p.dirfd, run, &j, NULL) == 0)
                for (int k = 0; k < 1000000; k++)
                    append(j, "door.denied", json_pack("{s:i}", "attempt", k), NULL);
            _exit(0);
        }
        usleep((useconds_t)(2000 + i * 700));
        kill(pid, SIGKILL);
        CHECK(waitpid(pid, NULL, 0) == pid);
        if (journal_is_live(p.dirfd)) /* it died before its first record */
            utime(p.file, &(struct utimbuf){1, 1});
        _cleanup_journal_ struct journal *j = NULL;
        struct error err = {0};
        int r = journal_open(p.dirfd, &j, &err);
        CHECK(r == 0 || r == -ENOENT);
        CHECK(r < 0 || append(j, "run.lost", json_object(), NULL) == 0);
    }
}

/* Names that would forge a record in a careless log: one event stays one record, and says what it said. */
TEST(foreign_names_cannot_forge) {
    static const char *const names[] = {
        "a\n{\"event\":\"allow\"}",
        "\r\033[2J\033]52;c;aGk=\a",
        "\xff\xfe\x80",
        "{\"body\":{}}",
        "\",\"type\":\"run.end",
        ("\xe2\x80\xae"
         "gnp.exe"),
        "\\u0000",
        "\xed\xa0\x80",
    };
    _cleanup_place_ struct place p = place_make(run);
    struct journal *j = NULL;
    CHECK_EQ(journal_create(p.dirfd, run, &j, NULL), 0);
    for (size_t i = 0; i < ELEMENTS(names); i++)
        CHECK(append(j, "door.denied", json_pack("{s:o}", "object", journal_text(names[i], strlen(names[i]))), NULL) ==
              0);
    CHECK(append(j, "door.denied", json_pack("{s:o}", "object", journal_text("a\0b", 3)), NULL) == 0);
    j = journal_close(j);
    size_t n, lines = 0;
    struct journal_report report;
    _cleanup_free_ char *bytes = slurp(&p, &n);
    for (size_t i = 0; i < n; i++) {
        lines += bytes[i] == '\n';
        CHECK((unsigned char)bytes[i] >= 0x20 || bytes[i] == '\n');
    }
    CHECK_EQ(lines, ELEMENTS(names) + 1);
    journal_check(bytes, n, &report);
    CHECK_STR(report.why, "");
    CHECK(!report.ended && report.records == lines);
    CHECK(strstr(bytes, "\\\\xff\\\\xfe\\\\x80") && strstr(bytes, "a\\\\x00b"));
}

TEST(long_names_are_cut_between_characters) {
    for (size_t shift = 0; shift < 3; shift++) {
        _cleanup_buf_ struct buf name = {0};
        buf_put(&name, "aa", shift);
        while (name.n < 6000)
            buf_puts(&name, "\xe2\x82\xac");
        _cleanup_json_ json_t *text = journal_text(name.bytes, name.n);
        size_t n = json_string_length(text);
        CHECK(n > 4090 && n <= 4099);
        CHECK_STR(json_string_value(text) + n - 6, "\xe2\x82\xac...");
    }
}

TEST(bodies_that_cannot_be_read_back_are_refused) {
    _cleanup_place_ struct place p = place_make(run);
    _cleanup_journal_ struct journal *j = NULL;
    struct error err = {0};
    CHECK_EQ(journal_create(p.dirfd, run, &j, NULL), 0);
    CHECK_EQ(append(j, "door.denied", json_pack("{s:s}", "x", "\xff"), &err), -EINVAL);
    CHECK(strstr(err.message, "not UTF-8"));
    CHECK_EQ(append(j, "door.denied", json_array(), NULL), -EINVAL);
    CHECK_EQ(append(j, "door.denied", json_pack("{s:f}", "x", 0.5), NULL), -EINVAL);
    CHECK_EQ(append(j, "door.denied", json_pack("{s:s%}", "x", "a\0b", (size_t)3), NULL), -EINVAL);
    CHECK_EQ(append(j, "Door", json_object(), NULL), -EINVAL);
    CHECK_EQ(append(j, "door.denied\"", json_object(), NULL), -EINVAL);
    json_t *deep = json_object(), *at = deep;
    for (int i = 0; i < 62; i++) {
        json_object_set_new(at, "x", json_object());
        at = json_object_get(at, "x");
    }
    CHECK_EQ(append(j, "door.denied", json_incref(deep), NULL), 0);
    json_object_set_new(at, "x", json_object());
    CHECK_EQ(append(j, "door.denied", deep, NULL), -EINVAL);
    _cleanup_free_ char *large = calloc(1, JOURNAL_LINE_MAX + 1);
    memset(large, 'x', JOURNAL_LINE_MAX);
    CHECK_EQ(append(j, "door.denied", json_pack("{s:s}", "x", large), NULL), -EMSGSIZE);
    large[JOURNAL_LINE_MAX - 400] = 0;
    CHECK_EQ(append(j, "door.denied", json_pack("{s:s}", "x", large), NULL), 0);
    CHECK_EQ(journal_seq(j), 2);
    size_t n;
    struct journal_report report;
    _cleanup_free_ char *bytes = slurp(&p, &n);
    journal_check(bytes, n, &report);
    CHECK_STR(report.why, "");
    CHECK_EQ(report.records, 2);
}

/* Runs in a child. Fills the place where `dirfd` lies; then not even closing records are taken. */
static int fill_up(int dirfd, int code) {
    struct journal *j;
    struct error err = {0};
    int r = 0;
    if (journal_create(dirfd, run, &j, NULL) < 0)
        return 1;
    while (r == 0 && journal_seq(j) < 10000)
        r = append(j, "door.denied", json_pack("{s:i}", "attempt", 1), &err);
    if (r != code || journal_seq(j) < 20)
        return 2;
    if (append(j, "step.start", json_object(), &err) != code || !strstr(err.message, "an earlier one"))
        return 3;
    if (append(j, "run.end", json_object(), NULL) != code)
        return 4;
    size_t n;
    struct journal_report report;
    _cleanup_free_ char *bytes = NULL;
    _cleanup_fd_ int fd = openat(dirfd, JOURNAL_NAME, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fd_read_file(fd, JOURNAL_BYTES_MAX, &bytes, &n, NULL) < 0)
        return 5;
    journal_check(bytes, n, &report);
    /* The half-written line was taken back. */
    return report.why[0] || report.ended || report.records != journal_seq(j) ? 6 : 0;
}

static int fill_to_a_limit(const struct place *p) {
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){10000, 10000}) < 0)
        return 7;
    return fill_up(p->dirfd, -EFBIG);
}

static bool put_file(const char *path, const char *text) {
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0;
}

/* An ordinary user needs a user namespace for that, with its own ids in it. */
static bool own_mounts(void) {
    char users[32], groups[32];
    uid_t uid = getuid();
    gid_t gid = getgid();
    snprintf(users, sizeof(users), "%u %u 1", uid, uid);
    snprintf(groups, sizeof(groups), "%u %u 1", gid, gid);
    if (uid == 0)
        return unshare(CLONE_NEWNS) == 0;
    return unshare(CLONE_NEWNS | CLONE_NEWUSER) == 0 && put_file("/proc/self/setgroups", "deny") &&
           put_file("/proc/self/gid_map", groups) && put_file("/proc/self/uid_map", users);
}

/* A file system of eight pages, in a mount namespace of the child's own. */
static int fill_a_disk(const struct place *p) {
    if (!own_mounts() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", p->folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=32k,mode=0700") < 0)
        return 8;
    return fill_up(open(p->folder, O_PATH | O_DIRECTORY | O_CLOEXEC), -ENOSPC);
}

TEST(after_a_failed_write_nothing_more_is_recorded) {
    static int (*const ways[])(const struct place *p) = {fill_to_a_limit, fill_a_disk};
    for (size_t i = 0; i < ELEMENTS(ways); i++) {
        _cleanup_place_ struct place p = place_make(run);
        int status;
        pid_t pid = fork();
        if (pid == 0)
            _exit(ways[i](&p));
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    }
}

TEST(closing_records_find_room_in_a_used_up_budget) {
    _cleanup_place_ struct place p = place_make(run);
    _cleanup_journal_ struct journal *j = NULL;
    struct error err = {0};
    _cleanup_free_ char *large = calloc(1, JOURNAL_LINE_MAX);
    memset(large, 'x', JOURNAL_LINE_MAX - 1000);
    _cleanup_json_ json_t *body = json_pack("{s:s}", "x", large);
    CHECK_EQ(journal_create(p.dirfd, run, &j, NULL), 0);
    int r = 0;
    while (r == 0)
        r = journal_append(j, "door.denied", body, JOURNAL_WRITTEN, &err);
    CHECK_EQ(r, -EDQUOT);
    CHECK(strstr(err.message, "budget of 256 MiB"));
    CHECK_EQ(append(j, "run.end", json_object(), NULL), 0);
    struct stat st;
    CHECK(stat(p.file, &st) == 0 && st.st_size > (250 << 20) && st.st_size < (off_t)JOURNAL_BYTES_MAX);
}

TEST(on_disk_records_are_written_too) {
    _cleanup_place_ struct place p = place_make(run);
    _cleanup_journal_ struct journal *j = NULL;
    CHECK_EQ(journal_create(p.dirfd, run, &j, NULL), 0);
    _cleanup_json_ json_t *body = json_object();
    CHECK_EQ(journal_append(j, "export.collected", body, JOURNAL_ON_DISK, NULL), 0);
    CHECK_EQ(journal_append(j, "export.collected", body, JOURNAL_ON_DISK, NULL), 0);
    CHECK_EQ(journal_seq(j), 2);
}

static int count(void *data, const json_t *record) {
    int *left = data;
    return json_is_object(record) && --*left == 0 ? 7 : 0;
}

TEST(walks_visit_in_order_and_stop) {
    _cleanup_place_ struct place p = place_make(run);
    int left = 3;
    CHECK(write_run(p.dirfd, 5, true));
    CHECK_EQ(journal_walk(p.dirfd, count, &left, NULL), 7);
    left = 100;
    CHECK_EQ(journal_walk(p.dirfd, count, &left, NULL), 0);
    CHECK_EQ(left, 93);
}

/* A follower sees a line once it is whole, also when its first half was there before or was cut off meanwhile. */
TEST(a_reader_follows_a_writer) {
    _cleanup_place_ struct place p = place_make(run);
    _cleanup_journal_reader_ struct journal_reader *r = NULL;
    json_t *record = NULL;
    size_t n;
    CHECK(write_run(p.dirfd, 2, true));
    _cleanup_free_ char *bytes = slurp(&p, &n);
    size_t two = (size_t)(line_at(bytes, 2) - bytes);
    CHECK(spill(&p, bytes, two + 20));
    CHECK_EQ(journal_reader_open(p.dirfd, &r, NULL), 0);
    for (int i = 0; i < 2; i++, json_decref(record))
        CHECK_EQ(journal_reader_next(r, &record, NULL), 1);
    CHECK_EQ(journal_reader_next(r, &record, NULL), 0);
    CHECK(journal_reader_report(r)->torn);
    CHECK(truncate(p.file, (off_t)two) == 0);
    CHECK_EQ(journal_reader_next(r, &record, NULL), 0);
    CHECK(!journal_reader_report(r)->torn);
    CHECK(spill(&p, bytes, n));
    for (int i = 0; i < 2; i++, json_decref(record))
        CHECK_EQ(journal_reader_next(r, &record, NULL), 1);
    CHECK_EQ(journal_reader_next(r, &record, NULL), 0);
    CHECK(journal_reader_report(r)->ended);
}

TEST_MAIN()
