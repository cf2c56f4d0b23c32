/* collect.h: declared exports, from the tree that the worker left.
 *
 * Runs after every process of the step is confirmed gone, so nothing changes under it; the names and types in the tree
 * are still hostile. A path is walked by descriptor without following any link, from a folder that the launcher handed
 * over; only a regular file is read. What it is worth is judged elsewhere.
 * runs in: controller (untrusted input: the finished tree; its bytes are only copied and digested) */
#pragma once

#include "base/digest.h"
#include "export/blob.h"
#include "plan/plan.h"

/* Folders of the finished tree by the place where they stood inside. */
struct collect_place {
    char path[PLAN_PATH_MAX + 1];
    int fd; /* owned */
};

#define COLLECT_PLACES_MAX (PLAN_EXPORTS_MAX + 8) /* one for each export, and those that every sandbox has */

struct collect_space {
    struct collect_place *places[COLLECT_PLACES_MAX];
    size_t n;
    uint32_t owner; /* host id of the worker, whose rights decide what may be collected; 0: our own */
};

/* Takes over `fd`. -E2BIG past COLLECT_PLACES_MAX, -EINVAL for a path that is not canonical. */
int collect_add_place(struct collect_space *s, const char *path, int fd);
void collect_free(struct collect_space *s);
#define _cleanup_collect_ _cleanup_(collect_free)

enum collect_result {
    COLLECT_DONE,
    COLLECT_MISSING,     /* nothing has that name */
    COLLECT_LINK,        /* a symbolic link, there or on the way */
    COLLECT_NOT_REGULAR, /* folder, FIFO, socket, device */
    COLLECT_TOO_LARGE,   /* more than `max`, holes counted as bytes */
    COLLECT_UNREADABLE,  /* the error says why */
    COLLECT_NOT_STORED,  /* our own store failed; the error says why */
    COLLECT_RESULT_N
};

extern const char *const collect_result_names[COLLECT_RESULT_N]; /* "collected", "missing", "link", ... */

struct collected {
    enum collect_result result;
    struct blob blob;            /* of COLLECT_DONE */
    bool made_plain;             /* it had an execute bit that the policy does not allow; the bit is gone */
    bool set_id;                 /* it had a set-id bit; gone in any case */
    char why[ERROR_MESSAGE_MAX]; /* for a person, harmless on a terminal */
};

/* Collects one export. */
void collect_export(const struct collect_space *space, const struct plan_export *e, int state_fd,
                    const char run[ULID_TEXT], struct collected *ret);
