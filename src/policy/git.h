/* git.h: where the repository of a folder really lies. A linked worktree and a submodule have a file `.git` that names a
 * folder elsewhere; without that folder, at the path that the file says, git does not work inside.
 * Private to policy/. runs in: controller, cli (untrusted input: the file .git, which anybody may have written) */
#pragma once

#include "policy/policy.h"

#define GIT_FILE_MAX 8192 /* bytes of such a file; a path and a word */

enum git_kind {
    GIT_NONE,     /* there is no .git */
    GIT_WITHIN,   /* the repository lies in the folder itself */
    GIT_WORKTREE, /* a linked worktree: the folder is the repository that it belongs to */
    GIT_MODULE,   /* a submodule: the folder is its part of the outer repository */
    GIT_STRANGE   /* .git is something else, or names a place that git itself would not; `why` says what */
};

struct git_place {
    enum git_kind kind;
    char *outside; /* canonical; of a worktree and a submodule */
    char *inside;  /* where the worker's git looks for it, given the folder's own target */
    char why[ERROR_MESSAGE_MAX];
};

void git_place_free(struct git_place *g);
#define _cleanup_git_place_ _cleanup_(git_place_free)

/* Where the repository of the folder `source`, which stands at `target` inside, lies. What .git says is believed only when
 * the repository says the same of the folder, so that a .git that somebody prepared opens nothing of the user's that it
 * was not made for. 0 or -ENOMEM. */
int git_find(const struct policy_host *host, const char *source, const char *target, struct git_place *ret);
