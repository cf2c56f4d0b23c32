/* cmd_prune.c: removes the state of ended runs.
 *
 * A run's folder is first renamed from runs/ to pruned/, then emptied; what a killed prune left there, the next one
 * removes. What was removed stays on record in pruned.jsonl, one line a run, with the head of its journal.
 * runs in: cli (untrusted input: the arguments, old journals; holds: nothing) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "audit/journal.h"
#include "audit/store.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/common.h"
#include "cli/output.h"

#define PRUNED_FOLDER "pruned"
#define PRUNED_RECORD "pruned.jsonl"

enum { DEPTH_MAX = 16, NAME_ROOM = 64 };

static bool as_json, dry_run;
static const char *older, *keep;

static const struct cli_option options[] = {
    {"older", 0, CLI_TEXT, &older, "AGE", "only runs that ended at least this long ago: 7d, 12h"},
    {"keep", 0, CLI_TEXT, &keep, "N", "leave the newest N ended runs"},
    {"dry-run", 'n', CLI_FLAG, &dry_run, NULL, "say what would be removed, and remove nothing"},
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

struct pruning {
    struct place place;
    uint64_t ended_before_us, keep;
    int folder; /* pruned/, locked */
    json_t *pruned, *kept;
};

static void free_pruning(struct pruning *p) {
    fd_close(p->folder);
    json_decref(p->pruned);
    json_decref(p->kept);
    place_close(&p->place);
}

static int read_choice(struct pruning *p, struct error *err) {
    uint64_t ms = 0;
    char safe[64];
    p->ended_before_us = clock_real_us();
    if (!older && !keep)
        return error_set(err, -EINVAL, "prune: say which runs may go: --older AGE (7d), --keep N, or both");
    if (older && (str_parse_duration(older, &ms) < 0 || ms > p->ended_before_us / 1000))
        return error_set(err, -EINVAL, "prune: --older \"%s\" is no age; write 90s, 20m, 12h or 7d",
                         str_safe(safe, sizeof(safe), older));
    if (keep && str_parse_count(keep, &p->keep) < 0)
        return error_set(err, -EINVAL, "prune: --keep \"%s\" is no count; write 20 or 2k",
                         str_safe(safe, sizeof(safe), keep));
    p->ended_before_us -= ms * 1000;
    return 0;
}

static int empty_folder(int fd, const char *spare, int depth);

/* Never through a link and never onto another file system. */
static int remove_entry(int dirfd, const char *name, int depth) {
    struct stat st, own;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(st.st_mode))
        return unlinkat(dirfd, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
    if (fstat(dirfd, &own) < 0)
        return -errno;
    if (own.st_dev != st.st_dev)
        return -EXDEV;
    int fd = fd_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    int r = fd < 0 ? fd : empty_folder(fd, NULL, depth + 1);
    if (r < 0)
        return r;
    return unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Empties a folder, whose descriptor is taken over, but for the name `spare`. Goes on behind a name that will not go. */
static int empty_folder(int fd, const char *spare, int depth) {
    int failed = 0;
    DIR *dir = depth > DEPTH_MAX ? NULL : fdopendir(fd);
    if (!dir) {
        int code = depth > DEPTH_MAX ? -ELOOP : -errno;
        fd_close(fd);
        return code;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || (spare && !strcmp(e->d_name, spare)))
            continue;
        int r = remove_entry(dirfd(dir), e->d_name, depth);
        failed = failed ? failed : r;
    }
    closedir(dir);
    return failed;
}

static int write_record(const struct pruning *p, const json_t *entry) {
    _cleanup_free_ char *text = json_dumps(entry, JSON_COMPACT | JSON_SORT_KEYS);
    _cleanup_buf_ struct buf line = {0};
    struct stat st;
    if (!text || buf_puts(&line, text) < 0 || buf_puts(&line, "\n") < 0)
        return -ENOMEM;
    _cleanup_fd_ int fd = fd_open_beneath(p->place.state_fd, PRUNED_RECORD, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    int r = fd_write_all(fd, line.bytes, line.n);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r < 0 && ftruncate(fd, st.st_size) < 0) /* no half line in front of the next one */
        return r;
    return r;
}

static json_t *describe(const char *run, const struct store_run *row) {
    char ended[CLOCK_TEXT], now[CLOCK_TEXT];
    return json_pack("{s:s, s:s?, s:s?, s:s?, s:s}", "run", run, "stop", row->stop[0] ? row->stop : NULL, "ended",
                     row->ended_us ? clock_text(ended, row->ended_us) : NULL, "journal_head",
                     row->journal_head[0] ? row->journal_head : NULL, "pruned", clock_text(now, clock_real_us()));
}

/* Removes a folder of pruned/: all but the journal, the record, then the journal. On a full disk the record finds room
 * only in what the journal held; then it comes last, from memory. */
static int finish_one(struct pruning *p, const char *run, const json_t *entry, struct error *err) {
    int fd = fd_open_beneath(p->folder, run, O_RDONLY | O_DIRECTORY, 0);
    int r = fd < 0 ? fd : empty_folder(fd, JOURNAL_NAME, 0);
    if (r < 0)
        return place_error(err, r, "cannot remove %s/" PRUNED_FOLDER "/%s", p->place.state, run);
    int recorded = write_record(p, entry);
    if (recorded == 0 || recorded == -ENOSPC || recorded == -EDQUOT)
        r = remove_entry(p->folder, run, 0);
    if (r == 0 && (recorded == -ENOSPC || recorded == -EDQUOT))
        recorded = write_record(p, entry);
    if (r < 0)
        return place_error(err, r, "cannot remove %s/" PRUNED_FOLDER "/%s", p->place.state, run);
    return recorded < 0 ? place_error(err, recorded, "cannot record in %s/" PRUNED_RECORD " that run %s was removed",
                                      p->place.state, run)
                        : 0;
}

static int open_folder(struct pruning *p, struct error *err) {
    if (mkdirat(p->place.state_fd, PRUNED_FOLDER, 0700) < 0 && errno != EEXIST)
        return place_error(err, -errno, "cannot make %s/" PRUNED_FOLDER, p->place.state);
    p->folder = fd_open_beneath(p->place.state_fd, PRUNED_FOLDER, O_RDONLY | O_DIRECTORY, 0);
    if (p->folder < 0 || flock(p->folder, LOCK_EX) < 0)
        return place_error(err, p->folder < 0 ? p->folder : -errno, "cannot open %s/" PRUNED_FOLDER, p->place.state);
    return 0;
}

/* Ended runs only: not one that lives or waits, and not one whose journal does not fit, which is evidence. */
static const char *why_kept(const struct pruning *p, int dirfd, const char *run, struct store_run *row) {
    if (journal_is_live(dirfd))
        return "live";
    if (store_read_run(dirfd, run, row, NULL) < 0)
        return "unreadable";
    if (!strcmp(row->stop, STORE_DAMAGED))
        return STORE_DAMAGED;
    if (!row->ended_us)
        return "unfinished";
    if (!strcmp(row->stop, "waiting"))
        return "waiting";
    return row->ended_us > p->ended_before_us ? "young" : NULL;
}

static int prune_one(struct pruning *p, const char *run, uint64_t *newest, struct error *err) {
    struct store_run row = {0};
    char from[NAME_ROOM];
    _cleanup_fd_ int dirfd = place_open_run(&p->place, run, false, NULL);
    const char *why = dirfd < 0 ? "unreadable" : why_kept(p, dirfd, run, &row);
    if ((!why || !strcmp(why, "young")) && (*newest)++ < p->keep)
        why = "newest";
    if (why)
        return json_array_append_new(p->kept, json_pack("{s:s, s:s}", "run", run, "why", why));
    json_t *entry = describe(run, &row);
    if (!entry || json_array_append_new(p->pruned, entry) < 0)
        return error_set(err, -ENOMEM, "out of memory");
    if (dry_run)
        return 0;
    snprintf(from, sizeof(from), "runs/%s", run);
    if (renameat(p->place.state_fd, from, p->folder, run) < 0)
        return place_error(err, -errno, "cannot move %s/%s to " PRUNED_FOLDER, p->place.state, from);
    return finish_one(p, run, entry, err);
}

/* The ULIDs in a folder, sorted; takes the descriptor over. */
static int list_names(int fd, char ***ret) {
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;
    if (!dir) {
        r = fd < 0 ? fd : -errno;
        fd_close(fd);
        return r;
    }
    for (struct dirent *e; r == 0 && (e = readdir(dir));)
        if (ulid_is_valid(e->d_name))
            r = strv_add(ret, e->d_name);
    closedir(dir);
    return r;
}

static int newest_first(const void *a, const void *b) {
    return strcmp(*(char *const *)b, *(char *const *)a);
}

/* What a prune that was killed had begun. Where the journal is gone already the record knows only the run's name: on a
 * full disk it may be the first about this run, else it stands beside the whole one. */
static int finish_begun(struct pruning *p, struct error *err) {
    _cleanup_strv_ char **names = NULL;
    int r = list_names(fd_open_beneath(p->folder, ".", O_RDONLY | O_DIRECTORY, 0), &names);
    if (r < 0)
        return place_error(err, r, "cannot list %s/" PRUNED_FOLDER, p->place.state);
    for (size_t i = 0; names && names[i] && r == 0; i++) {
        struct store_run row = {0};
        _cleanup_fd_ int fd = fd_open_beneath(p->folder, names[i], O_PATH | O_DIRECTORY, 0);
        if (fd >= 0)
            store_read_run(fd, names[i], &row, NULL);
        json_t *entry = describe(names[i], &row);
        if (!entry || json_array_append_new(p->pruned, entry) < 0)
            return error_set(err, -ENOMEM, "out of memory");
        r = finish_one(p, names[i], entry, err);
    }
    return r;
}

static int prune_all(struct pruning *p, struct error *err) {
    _cleanup_strv_ char **names = NULL;
    uint64_t newest = 0;
    int r = list_names(fd_open_beneath(p->place.state_fd, "runs", O_RDONLY | O_DIRECTORY, 0), &names);
    if (r < 0 && r != -ENOENT)
        return place_error(err, r, "cannot list the runs in %s", p->place.state);
    if (names)
        qsort(names, strv_count(names), sizeof(*names), newest_first);
    r = 0;
    for (size_t i = 0; names && names[i] && r == 0; i++)
        r = prune_one(p, names[i], &newest, err);
    return r;
}

static int print_answer(const struct pruning *p, struct error *err) {
    _cleanup_buf_ struct buf page = {0};
    const json_t *entry;
    size_t i;
    if (as_json) {
        _cleanup_json_ json_t *answer =
            json_pack("{s:b, s:O, s:O}", "dry_run", dry_run, "pruned", p->pruned, "kept", p->kept);
        return output_json(answer, err);
    }
    json_array_foreach(p->pruned, i, entry) buf_printf(&page, "%s %s\n", dry_run ? "would remove" : "removed",
                                                       json_string_value(json_object_get(entry, "run")));
    buf_printf(&page, "%zu %s, %zu kept\n", json_array_size(p->pruned), dry_run ? "would go" : "removed",
               json_array_size(p->kept));
    return output_page(&page, err);
}

static int run_prune(const struct cli_words *words, struct error *err) {
    (void)words;
    _cleanup_(free_pruning) struct pruning p = {PLACE_EMPTY, 0, 0, -1, json_array(), json_array()};
    int r = read_choice(&p, err);
    if (r == 0)
        r = cli_open_place(&p.place, err);
    if (r == 0 && !dry_run)
        r = open_folder(&p, err);
    if (r == 0 && !dry_run)
        r = finish_begun(&p, err);
    if (r == 0)
        r = prune_all(&p, err);
    return r < 0 ? r : print_answer(&p, err);
}

const struct verb verb_prune = {
    .name = "prune",
    .args = "",
    .summary = "remove the state of ended runs",
    .options = options,
    .run = run_prune,
};
