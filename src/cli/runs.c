/* runs.c: see runs.h. runs in: cli (untrusted input: the argument; holds: nothing) */
#include "cli/runs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/common.h"

enum { LEAST_CHARACTERS = 4, SHOWN_CHOICES = 4 };

struct search {
    char part[ULID_TEXT]; /* upper case; "" = the newest */
    char found[ULID_TEXT];
    size_t n;
    struct buf choices;
};

static bool matches(const struct search *s, const char *name) {
    size_t n = strlen(s->part);
    return !strncmp(name, s->part, n) || !strcmp(name + strlen(name) - n, s->part);
}

static void look_at(struct search *s, const char *name) {
    if (!matches(s, name))
        return;
    if (s->n < SHOWN_CHOICES && *s->part)
        buf_printf(&s->choices, "%s%s", s->n ? ", " : "", name);
    s->n++;
    if (strcmp(name, s->found) > 0)
        memcpy(s->found, name, ULID_TEXT);
}

static void drop_search(struct search *s) {
    buf_free(&s->choices);
}

static int look_at_all(const struct place *p, struct search *s, struct error *err) {
    int fd = openat(p->state_fd, "runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int code = -errno;
        fd_close(fd);
        return code == -ENOENT ? 0 : place_error(err, code, "cannot list the runs in %s", p->state);
    }
    for (struct dirent *e; (e = readdir(dir));)
        if (ulid_is_valid(e->d_name))
            look_at(s, e->d_name);
    closedir(dir);
    return 0;
}

static int read_word(const char *word, struct search *s, struct error *err) {
    char safe[128];
    size_t n = strlen(word);
    if (!strcmp(word, "last"))
        return 0;
    if (n < LEAST_CHARACTERS || n >= ULID_TEXT)
        return error_set(err, -EINVAL,
                         "\"%s\" is no run: give its name, at least %d of its first or last characters, or \"last\"",
                         str_safe(safe, sizeof(safe), word), LEAST_CHARACTERS);
    for (size_t i = 0; i <= n; i++)
        s->part[i] = (char)toupper((unsigned char)word[i]);
    return 0;
}

int runs_find(const struct place *p, const char *word, char run[ULID_TEXT], struct error *err) {
    _cleanup_(drop_search) struct search s = {0};
    char safe[128];
    int r = read_word(word, &s, err);
    if (r == 0)
        r = look_at_all(p, &s, err);
    if (r < 0)
        return r;
    if (!s.n && !*s.part)
        return error_set(err, -ENOENT, "there is no run yet in %s", p->state);
    if (!s.n)
        return error_set(err, -ENOENT, "no run is named \"%s\"; `doorward ps -a` lists them",
                         str_safe(safe, sizeof(safe), word));
    if (s.n > 1 && *s.part)
        return error_set(err, -EEXIST, "%zu runs match \"%s\" (%s%s); give more of the name", s.n,
                         str_safe(safe, sizeof(safe), word), s.choices.bytes ? s.choices.bytes : "",
                         s.n > SHOWN_CHOICES ? ", ..." : "");
    memcpy(run, s.found, ULID_TEXT);
    return 0;
}

int runs_open(struct place *p, const char *word, char run[ULID_TEXT], int *ret_dirfd, struct error *err) {
    int r = cli_open_place(p, err);
    if (r == 0)
        r = runs_find(p, word, run, err);
    if (r < 0)
        return r;
    int fd = place_open_run(p, run, false, err);
    if (fd < 0)
        return fd;
    *ret_dirfd = fd;
    return 0;
}
