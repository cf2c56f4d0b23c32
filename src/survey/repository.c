/* repository.c: what a repository says of its folder, without git: its commit, its index, and which files differ from that.
 *
 * Only files of known form are read: HEAD, a reference, packed-refs, commondir, the index. No setting is, so none can make
 * anything run. What settings change of a file's bytes (line ends, filters) shows as a difference.
 * runs in: surveyor (untrusted input: the repository) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "plan/pointer.h"
#include "survey/survey.h"

enum { SMALL = 8192, PACKED_MAX = 64 << 20, INDEX_MAX = 512 << 20, SHA1 = 20, SHA256 = 32 };

struct repository {
    struct survey *s;
    int top;            /* the folder */
    const char *target; /* where it stands inside */
    char *git, *common; /* inside paths */
    struct stat index;  /* the index file itself */
    size_t oid;
    int folder; /* of the last entry, O_PATH */
    char folder_path[PLAN_PATH_MAX + 1];
    struct buf names; /* every path of the index, NUL behind each, in its order */
    struct buf changes;
};

static int read_at(const struct survey *s, const char *folder, const char *name, size_t max, char **ret,
                   size_t *ret_n) {
    _cleanup_free_ char *path = NULL;
    struct stat st;
    struct error ignored = {0};
    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    _cleanup_fd_ int fd = survey_open(s, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fd;
    return fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? -EINVAL : fd_read_file(fd, max, ret, ret_n, &ignored);
}

/* A small file that names another place. */
static char *read_place(const struct survey *s, const char *folder, const char *name, const char *word) {
    _cleanup_free_ char *bytes = NULL;
    char pointer[PLAN_PATH_MAX + 1];
    size_t n = 0;
    if (read_at(s, folder, name, SMALL, &bytes, &n) < 0 || pointer_read(bytes, n, word, pointer) < 0)
        return NULL;
    return pointer_follow(folder, pointer);
}

/* Where the repository is, as the worker's git finds it. */
static int find_places(struct repository *r) {
    struct stat st;
    if (fstatat(r->top, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode)) {
        if (asprintf(&r->git, "%s/.git", r->target) < 0)
            r->git = NULL;
    } else {
        r->git = read_place(r->s, r->target, ".git", "gitdir: ");
    }
    if (!r->git)
        return -EINVAL;
    r->common = read_place(r->s, r->git, "commondir", "");
    return r->common || (r->common = strdup(r->git)) ? 0 : -ENOMEM;
}

static bool take_commit(struct survey *s, const char *text, size_t n) {
    size_t digits = 0;
    while (digits < n && digits < SURVEY_OID_MAX - 1 && strchr("0123456789abcdef", text[digits]) && text[digits])
        digits++;
    if ((digits != 2 * SHA1 && digits != 2 * SHA256) || (digits < n && text[digits] != '\n' && text[digits] != ' '))
        return false;
    snprintf(s->commit, sizeof(s->commit), "%.*s", (int)digits, text);
    return true;
}

/* "COMMIT NAME" lines. */
static bool find_packed(struct repository *r, const char *ref) {
    _cleanup_free_ char *bytes = NULL;
    size_t n = 0, length = strlen(ref);
    if (read_at(r->s, r->common, "packed-refs", PACKED_MAX, &bytes, &n) < 0)
        return false;
    for (char *line = bytes, *end; line < bytes + n; line = end + 1) {
        end = memchr(line, '\n', (size_t)(bytes + n - line));
        end = end ? end : bytes + n;
        char *space = memchr(line, ' ', (size_t)(end - line));
        if (space && (size_t)(end - space - 1) == length && !memcmp(space + 1, ref, length))
            return take_commit(r->s, line, (size_t)(space - line));
    }
    return false;
}

static void find_commit(struct repository *r) {
    _cleanup_free_ char *head = NULL, *loose = NULL;
    char path[SURVEY_REF_MAX + 1];
    size_t n = 0;
    if (read_at(r->s, r->git, "HEAD", SMALL, &head, &n) < 0) {
        survey_incomplete(r->s, "its HEAD cannot be read: the repository is no input, or none");
        return;
    }
    if (take_commit(r->s, head, n))
        return;
    size_t length = n > 5 && !strncmp(head, "ref: ", 5) ? strcspn(head + 5, "\n") : 0;
    snprintf(path, sizeof(path), "/%.*s", (int)length, length ? head + 5 : "");
    if (length == 0 || length >= SURVEY_REF_MAX || strncmp(path, "/refs/", 6) != 0 || !plan_path_is_canonical(path) ||
        !str_is_utf8(path, strlen(path), NULL)) {
        survey_incomplete(r->s, "its HEAD is none");
        return;
    }
    snprintf(r->s->ref, sizeof(r->s->ref), "%s", path + 1);
    if (read_at(r->s, r->common, r->s->ref, SMALL, &loose, &n) == 0 && take_commit(r->s, loose, n))
        return;
    if (!find_packed(r, r->s->ref))
        survey_incomplete(r->s, "%s names no commit yet, or the repository keeps its references in another way",
                          r->s->ref);
}

/* -- the index beside the folder -- */

/* The folder that holds `path`, kept from one entry to the next. -errno. */
static int folder_of(struct repository *r, const char *path, const char **ret_name) {
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    *ret_name = slash ? slash + 1 : path;
    if (n == 0)
        return r->top;
    if (r->folder < 0 || strlen(r->folder_path) != n || strncmp(r->folder_path, path, n) != 0) {
        r->folder = fd_close(r->folder);
        snprintf(r->folder_path, sizeof(r->folder_path), "%.*s", (int)n, path);
        r->folder = fd_open_beneath(r->top, r->folder_path, O_PATH | O_DIRECTORY, 0);
    }
    return r->folder;
}

static bool same_type(const struct index_entry *e, const struct stat *st) {
    if (!S_ISREG(st->st_mode))
        return (e->mode & S_IFMT) == (st->st_mode & S_IFMT);
    return S_ISREG(e->mode) && !(e->mode & 0100) == !(st->st_mode & 0100);
}

/* Written after the index was, or at the same moment: then its time says nothing. */
static bool is_racy(const struct repository *r, const struct index_entry *e) {
    uint32_t s = (uint32_t)r->index.st_mtim.tv_sec, ns = (uint32_t)r->index.st_mtim.tv_nsec;
    return e->mtime > s || (e->mtime == s && (e->mtime_ns == 0 || e->mtime_ns >= ns));
}

static bool same_bytes(struct repository *r, int dirfd, const char *name, const struct index_entry *e,
                       const struct stat *st) {
    char target[PLAN_PATH_MAX + 1], oid[SURVEY_OID_MAX];
    if (S_ISLNK(st->st_mode)) {
        ssize_t n = readlinkat(dirfd, name, target, sizeof(target));
        return n ==
               (ssize_t)e->size; /* a link of the same length with another time is rare enough to be left at that */
    }
    _cleanup_fd_ int fd = openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && blob_name(fd, (uint64_t)st->st_size, r->oid, oid) == 0 && !strcmp(oid, e->oid);
}

/* As git judges: by size and time; by the bytes where these say nothing. A size of 0 is git's own note to look again. */
static bool differs(struct repository *r, int dirfd, const char *name, const struct index_entry *e,
                    const struct stat *st) {
    bool same_size = e->size == (uint32_t)st->st_size;
    bool untouched = e->mtime == (uint32_t)st->st_mtim.tv_sec && e->mtime_ns == (uint32_t)st->st_mtim.tv_nsec;
    if (!same_type(e, st) || (!same_size && e->size != 0))
        return true;
    return (!same_size || !untouched || is_racy(r, e)) && !same_bytes(r, dirfd, name, e, st);
}

static void take_change(struct repository *r, enum survey_change how, const char *path) {
    char digest[DIGEST_HEX] = "-";
    const char *name;
    int dirfd = how == SURVEY_MODIFIED ? folder_of(r, path, &name) : -1;
    if (dirfd >= 0) {
        _cleanup_fd_ int fd = openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && digest_copy(fd, -1, UINT64_MAX, digest, NULL) < 0)
            snprintf(digest, sizeof(digest), "-");
    }
    buf_printf(&r->changes, "%d %s %s", (int)how, digest, path);
    buf_put(&r->changes, "", 1);
    survey_tell_change(r->s, how, path);
}

static int visit(void *data, const struct index_entry *e) {
    struct repository *r = data;
    struct stat st;
    const char *name;
    if (!survey_goes_on(r->s, r->s->plan.inputs[r->s->index].digest_named))
        return -ECANCELED;
    buf_printf(&r->s->listing, "%06o %s %u %s", (unsigned)e->mode, e->oid, e->stage, e->path);
    buf_put(&r->s->listing, "", 1);
    buf_put(&r->names, e->path, strlen(e->path) + 1);
    r->s->files++;
    if (e->skip)
        return 0;
    int dirfd = e->stage ? -1 : folder_of(r, e->path, &name);
    if (e->stage) {
        take_change(r, SURVEY_UNMERGED, e->path);
    } else if (dirfd < 0 || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        take_change(r, SURVEY_DELETED, e->path);
    } else {
        r->s->bytes += (uint64_t)st.st_size;
        if (differs(r, dirfd, name, e, &st))
            take_change(r, SURVEY_MODIFIED, e->path);
    }
    return r->s->listing.failed || r->names.failed ? -ENOMEM : 0;
}

/* The names that the index has, in its order: where each begins in `bytes`. */
struct tracked {
    const char *bytes;
    size_t *starts;
    size_t n;
};

/* 2: the index has `path` itself; 1: something below it; 0: nothing. */
static int is_tracked(const struct tracked *t, const char *path) {
    size_t length = strlen(path), low = 0, high = t->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(t->bytes + t->starts[middle], path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < t->n && !strcmp(t->bytes + t->starts[low], path))
        return 2;
    for (; low < t->n; low++) {
        const char *name = t->bytes + t->starts[low];
        if (strncmp(name, path, length) != 0)
            return 0;
        if (name[length] >= '/')
            return name[length] == '/';
    }
    return 0;
}

/* What no entry names, a folder standing for all below it. */
static void find_untracked(struct repository *r, const struct tracked *t, int fd, const char *path, unsigned depth) {
    enum { DEPTH_MAX = 200 };
    DIR *dir = fd < 0 || depth > DEPTH_MAX ? NULL : fdopendir(fd);
    if (!dir) {
        fd_close(fd);
        return;
    }
    const bool named = r->s->plan.inputs[r->s->index].digest_named;
    for (struct dirent *e; survey_goes_on(r->s, named) && (e = readdir(dir));) {
        char below[PLAN_PATH_MAX + 1];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(e->d_name, ".git") ||
            snprintf(below, sizeof(below) - 1, "%s%s%s", path, *path ? "/" : "", e->d_name) >= (int)sizeof(below) - 1)
            continue;
        int tracked = is_tracked(t, below);
        if (tracked == 1) {
            find_untracked(r, t, openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), below,
                           depth + 1);
        } else if (tracked == 0) {
            size_t length = strlen(below);
            if (e->d_type == DT_DIR) /* its place was kept free above */
                memcpy(below + length, "/", 2);
            take_change(r, SURVEY_UNTRACKED, below);
        }
    }
    closedir(dir);
}

static int list_untracked(struct repository *r) {
    size_t n = 0;
    for (size_t at = 0; at < r->names.n; at++)
        n += r->names.bytes[at] == 0;
    _cleanup_free_ size_t *starts = calloc(n + 1, sizeof(*starts));
    if (!starts)
        return -ENOMEM;
    struct tracked t = {.bytes = r->names.n ? r->names.bytes : "", .starts = starts};
    for (size_t at = 0; at < r->names.n; at += strlen(r->names.bytes + at) + 1)
        starts[t.n++] = at;
    find_untracked(r, &t, openat(r->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", 0);
    return 0;
}

static void compare(struct repository *r) {
    _cleanup_free_ char *bytes = NULL, *path = NULL;
    struct error ignored = {0};
    size_t n = 0;
    if (asprintf(&path, "%s/index", r->git) < 0) {
        path = NULL;
        return;
    }
    _cleanup_fd_ int fd = survey_open(r->s, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    int e = fd == -ENOENT              ? 0
            : fd < 0                   ? fd
            : fstat(fd, &r->index) < 0 ? -errno
                                       : fd_read_file(fd, INDEX_MAX, &bytes, &n, &ignored);
    if (e == 0 && fd >= 0)
        e = index_each((const unsigned char *)bytes, n, r->oid, visit, r);
    if (e == 0)
        e = list_untracked(r);
    if (e < 0)
        survey_incomplete(r->s, "its index could not be compared: %s",
                          e == -ECANCELED    ? "the step ended before"
                          : e == -EOPNOTSUPP ? "it is a split index"
                          : e == -EBADMSG    ? "it is damaged"
                                             : strerror(-e));
}

void survey_repository(struct survey *s) {
    struct repository r = {.s = s, .top = s->inputs[s->index], .target = s->plan.inputs[s->index].target, .folder = -1};
    int e = find_places(&r);
    if (e < 0)
        survey_incomplete(s, e == -EINVAL ? "its .git is of no known form" : "it has no .git");
    else
        find_commit(&r);
    r.oid = strlen(s->commit) == 2 * SHA256 ? SHA256 : SHA1;
    buf_printf(&s->listing, "%s\n", s->commit);
    if (e == 0 && *s->commit)
        compare(&r);
    buf_put(&s->listing, r.changes.bytes, r.changes.n);
    fd_close(r.folder);
    free(r.git);
    free(r.common);
    buf_free(&r.names);
    buf_free(&r.changes);
}
