/* inner.h: the channel between the launcher and what runs inside the sandbox.
 *
 * The set-up child, the reaper (both still launcher code then) and init share one end. Until READY the speaker is our
 * own code; from GO on, init's messages are claims from the worker's side of the wall: bounded, parsed as
 * hostile bytes, outranked by what the kernel says.
 *
 *   set-up child -> launcher: SPACE, or FAILED; reaper -> launcher: LISTENER, TERMINAL; init -> launcher: READY
 *   launcher -> init: GO, SIGNAL*;  init -> launcher: RUNNING, REFUSAL*, ENDED
 *
 * init and the reaper speak the same messages over a second pair: GO and SIGNAL down, READY, RUNNING and ENDED up.
 * runs in: launcher, init, reaper */
#pragma once

#include "wire/wire.h"

enum inner_type {
    INNER_FAILED = 1, /* u32 errno, text message */
    INNER_SPACE,      /* fds: the space, then one for each overlay in the order of the plan (user mode; root has them
                         already) */
    INNER_LISTENER,   /* fd: seccomp notifications */
    INNER_TERMINAL,   /* fd: master of the worker's terminal */
    INNER_READY,      /* everything is confined; the worker may be started */
    INNER_GO,
    INNER_SIGNAL,  /* u32 signal number */
    INNER_RUNNING, /* the worker's program is executing */
    INNER_ENDED,   /* u32 enum launch_how, u32 value, text detail (at most 511 bytes) */
    INNER_REFUSAL, /* text reason (at most INNER_REASON_MAX bytes) */
};

#define INNER_REASON_MAX 4096

/* Descriptors that the programs inside start with. */
enum inner_fd { INNER_CHANNEL = 3, INNER_SECOND = 4, INNER_FDS_END };
