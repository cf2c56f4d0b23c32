/* control.h: the control socket of a run: who runs doorward asks its controller.
 *
 *   client                       controller
 *   STATUS                  ->   ANSWER (JSON), when the launcher has counted
 *   EVENTS                  ->   ANSWER, then EVENT* (JSON, one for each record from now on) until one side closes
 *   FREEZE (u32 hold clock) ->   ANSWER once every process of the step is confirmed stopped, or REFUSED
 *   THAW                    ->   ANSWER, or REFUSED
 *   STOP (u32 at once)      ->   ANSWER: it is on its way; the run's end is in its journal
 *
 * The socket is `control` in the run's folder, SOCK_SEQPACKET, mode 0600 in a folder of mode 0700, and each peer's
 * credentials are asked of the kernel. One request at a time on a connection. A client that says anything else, sends
 * descriptors, or does not read what it asked for is closed: it is outside, and the step goes on.
 * runs in: controller, cli */
#pragma once

#include "wire/wire.h"

#define CONTROL_SOCKET_NAME "control"

enum control_type {
    /* client -> controller */
    CONTROL_STATUS = 1, /* - */
    CONTROL_EVENTS,     /* - */
    CONTROL_FREEZE,     /* u32 1: the deadline waits until THAW */
    CONTROL_THAW,       /* - */
    CONTROL_STOP,       /* u32 1: without a moment for the worker to put its things in order */

    /* controller -> client */
    CONTROL_ANSWER = 64, /* text JSON object */
    CONTROL_REFUSED,     /* u32 errno, text */
    CONTROL_EVENT,       /* text JSON object {"type":..., "body":{...}}; body null where it does not fit */
};
