/* confine.h: what a process gives up: capabilities, new privileges, limits of its own, its dump.
 * runs in: launcher's children, and any process of ours that confines itself */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Empties the bounding set, where one may: what is dropped here no exec brings back, and children inherit that. What is held
 * now stays. capabilities(7). 0 or -errno. */
int confine_bounding_set(void);

/* Empties every other capability set, the ambient one included, but for `keep` (a CAP_* number, or -1 for
 * none) in the permitted and effective sets. capabilities(7). 0 or -errno. */
int confine_capabilities(int keep);

/* For the lab only: keeps every capability across the next exec of an ordinary uid (ambient set). 0 or -errno. */
int confine_keep_capabilities(void);

/* no_new_privs: set-id and file capabilities do nothing from here on. prctl(2). 0 or -errno. */
int confine_no_new_privileges(void);

/* The RLIMIT_CORE, soft and hard, under which no core dump leaves: one, not zero, since with a core_pattern that pipes to a
 * helper the kernel honours only the value 1 (core(5)), and a file of one byte is never begun. Zero where the caller's
 * hard limit is zero already, which nobody may raise. */
uint64_t confine_core_value(void);

/* Sets it. 0 or -errno. */
int confine_no_core(void);

/* Sets soft and hard limit of RLIMIT_x to `value`. 0 or -errno. */
int confine_limit(int resource, uint64_t value);
