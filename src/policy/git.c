/* git.c: see git.h. runs in: controller, cli (untrusted input: the files .git, gitdir and commondir) */
#include "policy/git.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "plan/pointer.h"

#define UP "../"

void git_place_free(struct git_place *g) {
    free(g->outside);
    free(g->inside);
    *g = (struct git_place){0};
}

static int strange(struct git_place *g, const char *format, ...) _printf_(2, 3);
static int strange(struct git_place *g, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(g->why, sizeof(g->why), format, args);
    va_end(args);
    g->kind = GIT_STRANGE;
    return 0;
}

static size_t count_ups(const char *pointer) {
    size_t n = 0;
    for (; !strncmp(pointer, UP, strlen(UP)); pointer += strlen(UP))
        n++;
    return n;
}

/* Where the last `n` parts of a path begin; NULL when it has fewer. */
static const char *last_parts(const char *path, size_t n) {
    const char *at = path + strlen(path);
    for (; n && at > path; n--)
        do
            at--;
        while (at > path && *at != '/');
    return n ? NULL : at;
}

/* What a small file of the repository says; -EINVAL where it is no path. */
static int read_pointer(const struct policy_host *host, const char *folder, const char *name, const char *word,
                        char ret[PLAN_PATH_MAX + 1]) {
    _cleanup_free_ char *bytes = NULL;
    size_t n;
    struct error ignored = {0};
    int r = host->read(host->data, folder, name, GIT_FILE_MAX, &bytes, &n, &ignored);
    return r < 0 ? r : pointer_read(bytes, n, word, ret);
}

static int same_place(const struct policy_host *host, const char *base, const char *pointer, const char *want) {
    _cleanup_free_ char *path = pointer_follow(base, pointer), *real = NULL;
    enum policy_type type;
    struct error ignored = {0};
    return path && host->resolve(host->data, "/", path, &real, &type, &ignored) == 0 && !strcmp(real, want);
}

/* NAME below worktrees/ of a repository, which says the same of this folder. */
static int find_worktree(const struct policy_host *host, const char *source, const char *named, struct git_place *g) {
    char back[PLAN_PATH_MAX + 1], common[PLAN_PATH_MAX + 1], safe[512];
    _cleanup_free_ char *git_file = NULL;
    if (asprintf(&git_file, "%s/.git", source) < 0) {
        git_file = NULL;
        return -ENOMEM;
    }
    str_safe(safe, sizeof(safe), named);
    if (read_pointer(host, named, "gitdir", "", back) < 0 || !same_place(host, named, back, git_file))
        return strange(g,
                       ".git names %s, and what is there does not name this folder as its worktree: `git worktree "
                       "repair` in the main repository mends a worktree that was moved",
                       safe);
    if (read_pointer(host, named, "commondir", "", common) < 0 || strcmp(common, "../..") != 0)
        return strange(g, ".git names %s, which is no linked worktree's place as git makes it", safe);
    g->kind = GIT_WORKTREE;
    return 0;
}

/* A part of .git/modules of a repository around this folder; the way back from there must lead here inside too. */
static int find_module(const char *source, const char *target, size_t ups, struct git_place *g) {
    const char *outside = last_parts(source, ups), *inside = last_parts(target, ups);
    char safe[512];
    if (!outside || !inside || strcmp(outside, inside) != 0)
        return strange(
            g,
            "a submodule finds its repository by the folders around it, so it must stand at a path that ends "
            "with %s, as /work%s does",
            str_safe(safe, sizeof(safe), outside ? outside : source), safe);
    g->kind = GIT_MODULE;
    return 0;
}

/* The last two parts of a linked worktree's place are worktrees/NAME. */
static size_t without_worktree(const char *path) {
    const char *tail = last_parts(path, 2);
    return tail && tail > path && !strncmp(tail, "/worktrees/", 11) ? (size_t)(tail - path) : 0;
}

static int settle(const struct policy_host *host, const char *source, const char *target, const char *pointer,
                  struct git_place *g) {
    _cleanup_free_ char *named = pointer_follow(source, pointer), *inside = pointer_follow(target, pointer);
    const size_t ups = count_ups(pointer);
    enum policy_type type = POLICY_OTHER;
    struct error ignored = {0};
    char safe[512];
    str_safe(safe, sizeof(safe), pointer);
    if (!named || !inside)
        return strange(g, ".git names %s, which leads past / from here", safe);
    size_t n = without_worktree(named), n_inside = without_worktree(inside);
    bool module = ups > 0 && !strncmp(pointer + ups * strlen(UP), ".git/modules/", 13);
    int r = n && n_inside ? find_worktree(host, source, named, g)
            : module      ? find_module(source, target, ups, g)
                          : strange(g,
                                    ".git names %s, neither a linked worktree's place nor a submodule's: name that folder "
                                         "as an input of its own, at the same path, if it is meant",
                                    safe);
    if (r < 0 || g->kind == GIT_STRANGE)
        return r;
    if (n && n_inside)
        named[n] = inside[n_inside] = 0;
    if (host->resolve(host->data, "/", named, &g->outside, &type, &ignored) < 0 || type != POLICY_FOLDER)
        return strange(g, ".git names %s, which is not there", safe);
    g->inside = TAKE_PTR(inside);
    return 0;
}

int git_find(const struct policy_host *host, const char *source, const char *target, struct git_place *ret) {
    _cleanup_git_place_ struct git_place g = {.kind = GIT_WITHIN};
    _cleanup_free_ char *there = NULL;
    enum policy_type type = POLICY_OTHER;
    struct error ignored = {0};
    char pointer[PLAN_PATH_MAX + 1];
    int r = 0;
    if (host->resolve(host->data, source, ".git", &there, &type, &ignored) < 0)
        g.kind = GIT_NONE;
    else if (type == POLICY_FILE && read_pointer(host, source, ".git", "gitdir: ", pointer) < 0)
        r = strange(&g, ".git is a file that does not say \"gitdir: PATH\"");
    else if (type == POLICY_FILE)
        r = settle(host, source, target, pointer, &g);
    else if (type != POLICY_FOLDER)
        r = strange(&g, ".git is neither a folder nor a file");
    if (r < 0)
        return r;
    *ret = g;
    g = (struct git_place){0};
    return 0;
}
