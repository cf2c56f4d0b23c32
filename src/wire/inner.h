/* inner.h: the channels between the launcher and what runs inside the sandbox.
 *
 * Two while it is set up, when both halves are still launcher code; init's stays. From GO on, what init says is a claim from
 * the worker's side of the wall: bounded, parsed as hostile bytes, outranked by what the kernel says.
 *
 *   init's half   launcher -> GROUPS, GO, SIGNAL*                -> launcher: FAILED, or READY, RUNNING, REFUSAL*, ENDED
 *   reaper's half launcher -> BUILD, TREES*                      -> launcher: FAILED, or SPACE*, TERMINAL, LISTENER; ends at its exec
 *   between them  init's half -> NET; reaper's half -> ENTERED
 *
 * init and the reaper speak the same messages over a second pair: GO and SIGNAL down, READY, RUNNING and ENDED up.
 * runs in: launcher, init, reaper */
#pragma once

#include "wire/wire.h"

enum inner_type {
    INNER_FAILED = 1, /* u32 errno, text message */
    INNER_GROUPS, /* u32 bits of the walls that stand, u32 the worker's id inside; fds: entries of the control groups */
    INNER_BUILD, /* u32 bits: 1 space, 2 devices, 4 program tree are there, 8 processes are to be limited by rlimit, u32 bits of the walls that stand, u32 the worker's id inside; fds: plan, stdin, stdout, stderr, program, those three,
                         then entries of the control groups */
    INNER_TREES, /* u32 n, n x u32 index of an input; fds: their mounts (made by host root) */
    INNER_NET,   /* fd: the network namespace */
    INNER_ENTERED,  /* the root stands and is entered; fd: the socket that dw connects to */
    INNER_SPACE,    /* fds: the space, then one for each overlay in the order of the plan (user mode; root has them
                         already) */
    INNER_LISTENER, /* fd: seccomp notifications */
    INNER_TERMINAL, /* fd: master of the worker's terminal */
    INNER_READY,    /* everything is confined; the worker may be started */
    INNER_GO,
    INNER_SIGNAL,  /* u32 signal number */
    INNER_RUNNING, /* the worker's program is executing */
    INNER_ENDED,   /* u32 enum launch_how, u32 value, text detail (at most 511 bytes) */
    INNER_REFUSAL, /* text reason (at most INNER_REASON_MAX bytes) */
};

#define INNER_REASON_MAX 4096

/* Descriptors that the programs inside start with. */
enum inner_fd { INNER_CHANNEL = 3, INNER_SECOND = 4, INNER_FDS_END };
