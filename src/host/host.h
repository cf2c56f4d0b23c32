/* host.h: why this host does not let a wall or a limit stand, and what its owner types to change that.
 *
 * A failure is a door ("userns", "memory": the words of plan_wall_names and plan_limit_names) and an errno. Which of a host's
 * many reasons it was is told by evidence: a file of the host that says so. The table of both is reasons.c; a failing start
 * and `doorward doctor` use the same one, so they say the same words.
 * runs in: launcher, cli */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum host_test {
    HOST_ALWAYS, /* no evidence is needed: the errno says it */
    HOST_IS,     /* the file's first line is the text */
    HOST_HAS,    /* the text stands in the file */
    HOST_LACKS,  /* the file can be read and the text does not stand in it */
    HOST_EXISTS,
};

enum host_who { HOST_ANYBODY, HOST_USER, HOST_ROOT };

enum { HOST_CODES = 3 };

struct host_reason {
    const char *doors;     /* those it explains, parted by spaces; NULL: each */
    int codes[HOST_CODES]; /* negative errnos; none: each */
    enum host_who who;
    enum host_test test;
    const char *file, *text;
    const char *what;   /* one clause: what it is about this host */
    const char *remedy; /* one clause that begins "type: " where a command does it, else "do: " */
};

extern const struct host_reason host_reasons[];
extern const size_t host_n_reasons;

/* True when the file `file` (absolute) below the folder `root` shows it. */
bool host_shows(int root, enum host_test test, const char *file, const char *text);

/* The first reason that explains why `door` ("" where it is not known) failed with `code`, by what stands below the folder
 * `root`, which is the descriptor of "/"; NULL when none does. */
const struct host_reason *host_explain(int root, const char *door, int code, bool superuser);

/* The wall, limit or door that an error of the launcher's is about: what follows the last "wall ",
 * "door " or
 * "limits." that begins a clause, in `to`; "" for none. */
const char *host_door(const char *message, char to[32]);

/* Adds reason and remedy to an error of the launcher's, unless it brought a remedy of its own (it then has a ';' or a '(').
 * Returns err->code. */
int host_add_remedy(struct error *err, bool superuser);

/* The kernel's Landlock ABI, or -errno. */
int host_landlock(void);
