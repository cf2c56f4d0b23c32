/* denied.c: system calls that the filter reports.
 *
 * Each is answered with its errno and counted; access is never decided by "continue" (the caller could change what it
 * points at). The one call that goes on is a socket that the worker may have, once the network is up. The
 * first of a kind goes to the record at once, more of it as a count once a second: the worker can make 60,000 a second.
 * runs in: launcher (untrusted input: call numbers of the worker; holds: doorward's own rights) */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "jail/ns.h"
#include "jail/seccomp.h"
#include "launch/launch.h"

enum { KINDS_MAX = 96 };

static struct kind {
    int nr;
    const char *name;
    uint64_t pending;
} kinds[KINDS_MAX];
static size_t n_kinds;

static void tell(struct launch *l, struct kind *k) {
    wire_begin(&l->m, LAUNCH_DENIED);
    wire_put_text(&l->m, k->name);
    wire_put_u64(&l->m, k->pending);
    wire_send(LAUNCH_CHANNEL, &l->m);
    k->pending = 0;
}

static void count(struct launch *l, int nr, const char *name) {
    for (size_t i = 0; i < n_kinds; i++) {
        if (kinds[i].nr == nr) {
            kinds[i].pending++;
            return;
        }
    }
    if (n_kinds == KINDS_MAX)
        return; /* cannot be: there are fewer rows in the table of reported calls */
    kinds[n_kinds] = (struct kind){nr, name, 1};
    tell(l, &kinds[n_kinds++]);
}

/* Not a decision about access, which the filter has made: the call may go on, and finds the network up. Its arguments
 * stand in registers, so what goes on is what was looked at. */
static bool let_socket_go_on(struct launch *l, const struct seccomp_notif *call) {
    if (call->data.nr != SYS_socket || !seccomp_socket_allowed(call->data.args[0], call->data.args[2]))
        return false;
    if (l->loopback >= 0 && ns_loopback_up(l->loopback) < 0)
        return false;
    l->loopback = fd_close(l->loopback);
    struct seccomp_notif_resp answer = {.id = call->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(l->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    return true;
}

void denied_answer(struct launch *l) {
    struct seccomp_notif call = {0};
    if (ioctl(l->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
        return; /* the caller died meanwhile */
    if (let_socket_go_on(l, &call))
        return;
    const struct seccomp_reported *row = seccomp_reported(call.data.nr);
    struct seccomp_notif_resp answer = {.id = call.id, .error = -(row ? row->code : EPERM)};
    ioctl(l->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    count(l, call.data.nr, row ? row->name : "unknown");
}

void denied_flush(struct launch *l) {
    for (size_t i = 0; i < n_kinds; i++)
        if (kinds[i].pending)
            tell(l, &kinds[i]);
}
