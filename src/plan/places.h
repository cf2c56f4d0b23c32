/* places.h: what stands inside every sandbox before its inputs; private to plan/.
 * runs in: controller, launcher, cli */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    PLACE_CLOSED = 1,   /* no input may stand here or below: doorward's own, or a read-only view of the host */
    PLACE_WRITABLE = 2, /* the worker writes here, in the space */
    PLACE_HOST = 4,     /* the host's tree, so what lies below may exist */
};

struct plan_place {
    const char *path;
    unsigned flags;
};

const struct plan_place *plan_places(size_t *ret_n);

/* True when `path` is `top` or lies below it; both canonical. */
bool plan_path_below(const char *path, const char *top);
