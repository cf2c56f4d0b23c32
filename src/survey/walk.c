/* walk.c: every name of an input that the worker sees, folders before what they hold, names in the order of their bytes.
 * runs in: surveyor (untrusted input: names and bytes below the input) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "plan/ignore.h"
#include "survey/survey.h"

enum { DEPTH_MAX = 200, SCAN_BYTES_MAX = 1 << 20, TEXT_PROBE = 8000 };

struct walk {
    struct survey *s;
    const struct plan_input *in;
    bool full, scan, named;
    const char *path; /* of the file that is scanned */
};

static void on_secret(void *data, uint64_t line, const char *rule) {
    const struct walk *w = data;
    survey_tell_secret(w->s, line, rule, w->path);
}

/* The beginning of a text; of larger files, and of what has a NUL early, nothing is to be expected. */
static void scan_file(struct walk *w, int fd) {
    _cleanup_free_ char *bytes = malloc(SCAN_BYTES_MAX);
    ssize_t n = bytes ? pread(fd, bytes, SCAN_BYTES_MAX, 0) : -1;
    const char *slash = strrchr(w->path, '/');
    const char *rule = scan_name(slash ? slash + 1 : w->path);
    if (rule)
        survey_tell_secret(w->s, 0, rule, w->path);
    if (n < 0)
        survey_incomplete(w->s, "a file could not be read: %s", strerror(errno));
    else if (!memchr(bytes, 0, n < TEXT_PROBE ? (size_t)n : TEXT_PROBE))
        scan_text(bytes, (size_t)n, on_secret, w);
}

/* TYPE MODE SIZE DIGEST PATH NUL; docs/journal.md tells how to make it again. */
static void list(struct walk *w, char type, const struct stat *st, const char *digest, const char *path) {
    buf_printf(&w->s->listing, "%c %04o %llu %s %s", type, (unsigned)st->st_mode & 07777,
               type == 'd' ? 0ULL : (unsigned long long)st->st_size, digest, path);
    buf_put(&w->s->listing, "", 1);
}

static void read_file(struct walk *w, int dirfd, const char *name, const char *path, const struct stat *st) {
    char digest[DIGEST_HEX] = "-", safe[200];
    w->s->files++;
    w->s->bytes += (uint64_t)st->st_size;
    if (!w->full && !w->scan)
        return;
    _cleanup_fd_ int fd = openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 ? -errno : 0;
    w->path = path;
    if (r == 0 && w->scan)
        scan_file(w, fd);
    if (r == 0 && w->full)
        r = digest_copy(fd, -1, UINT64_MAX, digest, NULL);
    if (r < 0)
        survey_incomplete(w->s, "%s cannot be read: %s", str_safe(safe, sizeof(safe), path), strerror(-r));
    if (w->full)
        list(w, 'f', st, digest, path);
}

static void read_link(struct walk *w, int dirfd, const char *name, const char *path, const struct stat *st) {
    char target[PLAN_PATH_MAX + 1], digest[DIGEST_HEX] = "-";
    ssize_t n = readlinkat(dirfd, name, target, sizeof(target));
    if (n >= 0)
        digest_hex(target, (size_t)n, digest);
    w->s->files++;
    list(w, 'l', st, digest, path);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(int fd, char ***ret, size_t *ret_n) {
    DIR *dir = fdopendir(fd);
    size_t room = 0, n = 0;
    char **names = NULL;
    int r = dir ? 0 : -errno;
    if (!dir)
        fd_close(fd);
    for (struct dirent *e; dir && r == 0 && (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (n + 1 >= room) {
            char **more = realloc(names, (room = 2 * room + 16) * sizeof(char *));
            if (!more)
                r = -ENOMEM;
            else
                names = more;
        }
        if (r == 0 && !(names[n++] = strdup(e->d_name)))
            r = -ENOMEM;
    }
    if (dir)
        closedir(dir);
    if (names)
        names[n] = NULL;
    if (n > 1)
        qsort(names, n, sizeof(*names), by_name);
    *ret = names;
    *ret_n = n;
    return r;
}

static void walk_folder(struct walk *w, int fd, const char *path, bool within, unsigned depth);

static void walk_name(struct walk *w, int dirfd, const char *name, const char *path, bool within, unsigned depth) {
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return; /* gone since the folder was read */
    bool folder = S_ISDIR(st.st_mode);
    if (w->in->exclude && ignore_matches(w->in->exclude, path, folder))
        return;
    bool shown = !w->in->only || within || ignore_matches(w->in->only, path, folder);
    if (shown && S_ISREG(st.st_mode))
        read_file(w, dirfd, name, path, &st);
    else if (shown && S_ISLNK(st.st_mode))
        read_link(w, dirfd, name, path, &st);
    else if (shown && w->full)
        list(w, folder ? 'd' : 'o', &st, "-", path);
    if (folder)
        walk_folder(w, openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), path, within || shown,
                    depth + 1);
}

/* Takes `fd` over. */
static void walk_folder(struct walk *w, int fd, const char *path, bool within, unsigned depth) {
    _cleanup_strv_ char **names = NULL;
    _cleanup_fd_ int dirfd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    size_t n = 0;
    char safe[200];
    int r = fd < 0 ? -errno : depth > DEPTH_MAX ? -ELOOP : list_names(fd, &names, &n);
    if (fd >= 0 && depth > DEPTH_MAX)
        fd_close(fd);
    if (r < 0)
        survey_incomplete(w->s, "the folder %s cannot be read: %s", str_safe(safe, sizeof(safe), *path ? path : "."),
                          strerror(-r));
    for (size_t i = 0; i < n && survey_goes_on(w->s, w->named); i++) {
        char below[PLAN_PATH_MAX + 1];
        if (snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "", names[i]) >= (int)sizeof(below))
            survey_incomplete(w->s, "a path has more than %d bytes", PLAN_PATH_MAX);
        else
            walk_name(w, dirfd, names[i], below, within, depth);
        w->path = NULL; /* `below` ends here */
    }
}

void survey_walk(struct survey *s) {
    const struct plan_input *in = &s->plan.inputs[s->index];
    struct walk w = {.s = s, .in = in, .full = in->digest == PLAN_DIGEST_FULL && !s->before};
    struct stat st;
    w.scan = in->scan == (s->before ? PLAN_SCAN_REFUSE : PLAN_SCAN_WARN);
    w.named = w.scan || in->digest_named;
    int folder = s->inputs[s->index];
    if (in->directory) {
        walk_folder(&w, openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", false, 0);
        return;
    }
    /* A file is opened anew by its descriptor. Its name is the one inside: a stored file's own is its digest. */
    char self[64];
    const char *name = strrchr(in->target, '/') + 1;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", folder);
    if (stat(self, &st) < 0)
        survey_incomplete(s, "it cannot be read: %s", strerror(errno));
    else {
        _cleanup_fd_ int fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        w.path = name;
        s->files++;
        s->bytes += (uint64_t)st.st_size;
        if (fd < 0)
            survey_incomplete(s, "it cannot be read: %s", strerror(errno));
        else if (w.scan)
            scan_file(&w, fd);
    }
}
