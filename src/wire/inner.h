/* inner.h: the channels between the launcher and what runs inside the sandbox.
 *
 * One for each half. While the sandbox is set up both halves are launcher code; after their exec what they say is a claim
 * from the worker's side of the wall: bounded, parsed as hostile bytes, outranked by what the kernel says.
 *
 *   init's half   launcher -> GROUPS                       -> launcher: FAILED, CONFINED; after its exec REFUSAL*
 *   reaper's half launcher -> BUILD, TREES*, GROUPS, GO, SIGNAL*   -> launcher: FAILED, SPACE*, TERMINAL, LISTENER; after its exec ENDED
 *   between them  init's half -> NET; reaper's half -> ENTERED
 *
 * GO is sent when LISTENER and CONFINED are there: no worker runs beside an init that is not confined yet. It may be sent
 * while the reaper's half is still on its way through exec: it waits in the socket.
 * runs in: launcher, init, reaper */
#pragma once

#include "wire/wire.h"

enum inner_type {
    INNER_FAILED = 1, /* u32 errno, text message */
    INNER_GROUPS, /* u32 bits of the walls that stand, u32 the worker's id inside, u32 1: the processes' limit is the halves' own to set; fds: entries of the control groups */
    INNER_BUILD, /* u32 bits: 1 space, 2 devices, 4 program tree are there, u32 bits of the walls that stand, u32 the worker's id
                    inside; fds: plan, stdin, stdout, stderr, program, those three */
    INNER_TREES,   /* u32 n, n x u32 index of an input; fds: their mounts (made by host root) */
    INNER_NET,     /* fds: the network namespace, a socket in it (ns_loopback) */
    INNER_ENTERED, /* the root stands and is entered; fd: the socket that dw connects to */
    INNER_SPACE,   /* fds: the space, then one for each overlay in the order of the plan (user mode; root has them
                         already) */
    INNER_LISTENER, /* the reaper's half is confined; fds: seccomp notifications (none where the lab left the filter out), then
                       that socket (none without a network namespace) */
    INNER_TERMINAL, /* fd: master of the worker's terminal */
    INNER_GO,
    INNER_SIGNAL,   /* u32 signal number */
    INNER_ENDED,    /* u32 enum launch_how, u32 value, text detail (at most 511 bytes) */
    INNER_REFUSAL,  /* text reason (at most INNER_REASON_MAX bytes) */
    INNER_CONFINED, /* init's half is confined */
};

#define INNER_REASON_MAX 4096

/* Descriptors that the programs inside start with. */
enum inner_fd { INNER_CHANNEL = 3, INNER_SOCKET = 4 /* init's, for dw */ };
