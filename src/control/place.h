/* place.h: where doorward keeps its state, its sockets and its configuration.
 *
 * state    $XDG_STATE_HOME/doorward, else ~/.local/state/doorward; root: /var/lib/doorward
 * runtime  $XDG_RUNTIME_DIR/doorward, else STATE/run; root: /run/doorward
 * config   $XDG_CONFIG_HOME/doorward, else ~/.config/doorward; root: /etc/doorward
 * A folder of ours belongs to us and is closed to everybody else, or nothing starts.
 * runs in: controller, cli (untrusted input: environment variables, as far as the caller's user is trusted) */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/error.h"

struct place {
    char *state, *runtime, *config; /* absolute paths, owned */
    int state_fd;                   /* the state folder; -1 until place_open */
    bool root;                      /* effective uid 0 */
};

#define PLACE_EMPTY                                                                                                    \
    { NULL, NULL, NULL, -1, false }

void place_close(struct place *p);
#define _cleanup_place_ _cleanup_(place_close)

/* The three paths; nothing is made, nothing is opened. -EINVAL when a variable is missing or no absolute path. */
int place_find(struct place *ret, struct error *err);

/* Makes the state folder where it is missing (0700, and its parents), checks owner and mode, opens it. Afterwards
 * p->state is its canonical path. */
int place_open(struct place *p, struct error *err);

/* The same for the runtime folder; returns its descriptor, owned by the caller, or -errno. */
int place_open_runtime(const struct place *p, struct error *err);

/* The folder of one run, opened O_PATH; -ENOENT when there is none. With `make` it is made (0700), and must be new. */
int place_open_run(const struct place *p, const char run[ULID_TEXT], bool make, struct error *err);

/* error_errno, followed by what the user can do about this errno (a full disk, no descriptors left, ...). */
int place_error(struct error *err, int code, const char *format, ...) _printf_(3, 4);
