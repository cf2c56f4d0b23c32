/* sensitive.h: which paths of the host are too precious to be an input unless the policy says that it means it.
 * Private to policy/. runs in: controller, cli */
#pragma once

#include <stdbool.h>

#include "policy/policy.h"

struct sensitive {
    const struct policy_host *host;
    char **linked; /* where the keys of our home really lie, when they are links: path, reason, path, reason ... */
    bool asked;
};

/* The reason why `path` (canonical) is sensitive, or NULL: it is, lies below or holds one of the places. `*ret` is
 * filled with words that follow the path in a sentence. 1: sensitive, 0: not, -ENOMEM. */
int sensitive_find(struct sensitive *s, const char *path, struct buf *ret);

void sensitive_free(struct sensitive *s);
