/* helper.h: starts our own helpers.
 *
 * The child shares our memory until it executes (clone(2) with CLONE_VM and CLONE_VFORK), so that a start costs the
 * same however large we are. It gets: a socket as descriptor 3, /dev/null as 0, 1 and 2, nothing else; an empty
 * environment; no argument; no blocked and no ignored signal; and SIGKILL when we die.
 * runs in: controller */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct helper {
    int channel; /* our end of the socket, non-blocking; -1 once closed */
    int pidfd;   /* -1 once reaped */
    pid_t pid;
};

#define HELPER_EMPTY                                                                                                   \
    { -1, -1, 0 }

/* Starts `name` ("doorward-launch"): from the folder of our own executable, from ../libexec/doorward beside it, or
 * from where it was installed. `pass`: descriptors of ours that are not close-on-exec are passed on (the lab, without the
 * wall around descriptors). */
int spawn_helper(const char *name, bool pass, struct helper *ret, struct error *err);

/* Starts a launcher before it is known what for, so that it is there, and has begun what needs no plan, when the first step
 * does; or adopts the one that the program before this exec started. Unused it ends with this process. */
void spawn_early(void);

/* The program before: starts a launcher and leaves it, and word of it in the environment, to what spawn_exec becomes. */
void spawn_for_exec(void);

/* Becomes `name`, looked for like a helper, with this environment. Returns only with an error. */
int spawn_exec(const char *name, char *const argv[], struct error *err);

/* Where `name` stands, looked for like a helper: canonical, owned by the caller. */
int spawn_path(const char *name, char **ret, struct error *err);

/* Waits up to `timeout_ms` for the helper to end, then kills it; reaps it. Its wait status (waitpid(2)), or -1 when it
 * had ended before. */
int spawn_reap(struct helper *h, int timeout_ms);

/* Closes the channel (which tells the helper to end everything), reaps. An empty one is fine. */
void spawn_end(struct helper *h);
#define _cleanup_helper_ _cleanup_(spawn_end)
