/* landlock.h: Landlock as a second layer under the mount namespace.
 * runs in: launcher's children */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum landlock_access {
    LANDLOCK_SEE,   /* read files, list folders, execute */
    LANDLOCK_USE,   /* the same, and write to devices and ask them things (ioctl) */
    LANDLOCK_CHANGE /* everything: make, remove, rename between folders (REFER), truncate */
};

struct landlock_rule {
    int fd; /* O_PATH */
    enum landlock_access access;
};

/* The kernel's ABI version, or -ENOSYS / -EOPNOTSUPP where there is none. */
int landlock_abi(void);

/* Confines the calling thread, for good, to the rules; with `scope` it can reach no abstract socket and signal no
 * process outside its own domain (ABI 6; on older kernels the namespaces alone do that). no_new_privs must be set or
 * CAP_SYS_ADMIN held. 0 or -errno. Source: Documentation/userspace-api/landlock.rst. */
int landlock_confine(const struct landlock_rule *rules, size_t n, bool scope, struct error *err);
