/* collect.c: see collect.h.
 * runs in: controller (untrusted input: the finished tree; its bytes are only copied and digested) */
#include "export/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

const char *const collect_result_names[COLLECT_RESULT_N] = {
    "collected", "missing", "link", "not-regular", "too-large", "unreadable", "not-stored",
};

int collect_add_place(struct collect_space *s, const char *path, int fd) {
    _cleanup_fd_ int owned = fd;
    if (s->n == COLLECT_PLACES_MAX)
        return -E2BIG;
    if (!plan_path_is_canonical(path))
        return -EINVAL;
    struct collect_place *p = malloc(sizeof(*p));
    if (!p)
        return -ENOMEM;
    snprintf(p->path, sizeof(p->path), "%s", path);
    p->fd = TAKE_FD(owned);
    s->places[s->n++] = p;
    return 0;
}

void collect_free(struct collect_space *s) {
    while (s->n) {
        struct collect_place *p = s->places[--s->n];
        fd_close(p->fd);
        free(p);
    }
}

/* The place that covers `path` most closely; *ret_rest is what is left of the path beneath it, "" for the place itself
 * (an input that is a file). */
static const struct collect_place *find_place(const struct collect_space *s, const char *path, const char **ret_rest) {
    const struct collect_place *best = NULL;
    size_t best_n = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t n = strlen(s->places[i]->path);
        if (n <= best_n || strncmp(path, s->places[i]->path, n) != 0 || (path[n] && path[n] != '/'))
            continue;
        best = s->places[i];
        best_n = n;
        *ret_rest = path + n + (path[n] == '/');
    }
    return best;
}

static enum collect_result refuse(struct collected *c, enum collect_result result, const char *why) {
    snprintf(c->why, sizeof(c->why), "%s", why);
    return result;
}

static const struct {
    int code;
    enum collect_result result;
    const char *why;
} codes[] = {
    {-ENOENT, COLLECT_MISSING, "the worker left nothing there"},
    {-ENOTDIR, COLLECT_MISSING, "something on the way to it is not a folder"},
    {-ELOOP, COLLECT_LINK, "a folder on the way to it is a symbolic link"},
    {-ENXIO, COLLECT_NOT_REGULAR, "it is a socket or a FIFO"},
};

/* What a failed open says about the path. */
static enum collect_result judge_errno(struct collected *c, int code) {
    char text[160];
    for (size_t i = 0; i < ELEMENTS(codes); i++)
        if (codes[i].code == code)
            return refuse(c, codes[i].result, codes[i].why);
    snprintf(text, sizeof(text), "it cannot be opened: %s", strerror(-code));
    return refuse(c, COLLECT_UNREADABLE, text);
}

static const struct {
    mode_t type;
    enum collect_result result;
    const char *why;
} types[] = {
    {S_IFLNK, COLLECT_LINK, "it is a symbolic link; export the file itself"},
    {S_IFDIR, COLLECT_NOT_REGULAR, "it is a folder; export one file of it, or an archive"},
    {S_IFIFO, COLLECT_NOT_REGULAR, "it is a FIFO"},
    {S_IFSOCK, COLLECT_NOT_REGULAR, "it is a socket"},
    {S_IFCHR, COLLECT_NOT_REGULAR, "it is a device"},
    {S_IFBLK, COLLECT_NOT_REGULAR, "it is a device"},
};

static enum collect_result judge_type(struct collected *c, const struct stat *st, uint64_t max) {
    char text[128], size[32], most[32];
    for (size_t i = 0; i < ELEMENTS(types); i++)
        if ((st->st_mode & S_IFMT) == types[i].type)
            return refuse(c, types[i].result, types[i].why);
    if ((uint64_t)st->st_size <= max) /* more than one link is fine: build tools make them, and bytes are copied */
        return COLLECT_DONE;
    snprintf(text, sizeof(text), "it has %s, at most %s are allowed; raise the export's max",
             str_size(size, (uint64_t)st->st_size), str_size(most, max));
    return refuse(c, COLLECT_TOO_LARGE, text);
}

/* Beneath the place, without following a link. A place that is the file itself was opened by the launcher as a mount,
 * which the worker could not exchange; it is opened anew by its descriptor. */
static int open_at(int dirfd, const char *rest, int flags) {
    char self[64];
    if (*rest)
        return fd_open_beneath(dirfd, rest, flags | O_NOFOLLOW, 0);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", dirfd);
    int fd = open(self, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Looked at by name first (O_PATH opens nothing: a FIFO would wait, a device would act), then opened; the tree stands
 * still between the two, and the second look is at what was opened. */
static enum collect_result open_regular(int dirfd, const char *rest, uint64_t max, struct collected *c, int *ret,
                                        struct stat *st) {
    _cleanup_fd_ int looked = open_at(dirfd, rest, O_PATH);
    if (looked < 0)
        return judge_errno(c, looked);
    if (fstat(looked, st) < 0)
        return judge_errno(c, -errno);
    enum collect_result result = judge_type(c, st, max);
    if (result != COLLECT_DONE)
        return result;
    _cleanup_fd_ int fd = open_at(dirfd, rest, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return judge_errno(c, fd);
    if (fstat(fd, st) < 0)
        return judge_errno(c, -errno);
    result = judge_type(c, st, max);
    if (result == COLLECT_DONE)
        *ret = TAKE_FD(fd);
    return result;
}

/* The same with the worker's rights: it can rename what it cannot read, an input's file of another owner, to where an export
 * is looked for, and root would read it. setfsuid(2) concerns file access alone and takes the capabilities for it away. */
static enum collect_result open_as_worker(const struct collect_space *s, int dirfd, const char *rest, uint64_t max,
                                          struct collected *c, int *ret, struct stat *st) {
    if (!s->owner)
        return open_regular(dirfd, rest, max, c, ret, st);
    gid_t group = (gid_t)setfsgid(s->owner);
    uid_t user = (uid_t)setfsuid(s->owner);
    /* Neither says whether it worked: asked again with a value that is none. */
    bool worker = (uint32_t)setfsuid((uid_t)-1) == s->owner && (uint32_t)setfsgid((gid_t)-1) == s->owner;
    enum collect_result result =
        worker ? open_regular(dirfd, rest, max, c, ret, st)
               : refuse(c, COLLECT_UNREADABLE, "doorward cannot take the worker's rights, which collecting needs");
    setfsuid(user);
    setfsgid(group);
    return result;
}

static enum collect_result collect(const struct collect_space *space, const struct plan_export *e, int state_fd,
                                   const char run[ULID_TEXT], struct collected *c) {
    struct stat st;
    struct error err = {0};
    _cleanup_fd_ int fd = -1;
    const char *rest = NULL;
    const struct collect_place *p = find_place(space, e->path, &rest);
    if (!p)
        return refuse(c, COLLECT_UNREADABLE, "no folder of the sandbox that covers it was handed over");
    enum collect_result result = open_as_worker(space, p->fd, rest, e->max, c, &fd, &st);
    if (result != COLLECT_DONE)
        return result;
    bool had_x = st.st_mode & 0111;
    c->set_id = st.st_mode & 06000;
    c->made_plain = had_x && !e->executable;
    int r = blob_store(state_fd, run, fd, e->max, had_x && e->executable ? BLOB_MODE_EXECUTABLE : BLOB_MODE_PLAIN,
                       &c->blob, &err);
    return r == 0 ? COLLECT_DONE : refuse(c, COLLECT_NOT_STORED, err.message);
}

void collect_export(const struct collect_space *space, const struct plan_export *e, int state_fd,
                    const char run[ULID_TEXT], struct collected *ret) {
    struct collected c = {0};
    c.result = collect(space, e, state_fd, run, &c);
    *ret = c;
}
