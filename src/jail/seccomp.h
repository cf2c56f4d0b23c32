/* seccomp.h: installs a filter that was compiled when doorward was built (seccomp_gen.c).
 * runs in: launcher's children, and any process of ours that confines itself */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct seccomp_filter {
    const struct sock_filter *code;
    unsigned short n;
};

extern const struct seccomp_filter seccomp_worker; /* seccomp_worker.calls */
extern const struct seccomp_filter seccomp_survey; /* seccomp_survey.calls */
extern const struct seccomp_filter seccomp_init;   /* seccomp_init.calls */

/* Puts the calling thread under `filter` for good. With `ret_listener` not NULL, calls that the filter reports wait
 * there for the supervisor's answer (seccomp_unotify(2)); the caller sends that descriptor away and closes it before
 * anything hostile runs. 0 or -errno. */
int seccomp_install(const struct seccomp_filter *filter, int *ret_listener);

/* 0 where this kernel can filter system calls and report them, else -errno. */
int seccomp_missing(void);

/* What the supervisor answers to a reported call: the name for the record and the errno for the caller. */
struct seccomp_reported {
    int nr;
    int code; /* errno */
    const char *name;
};

/* True when a reported socket(2) is one that the worker may have: it was reported only so that the network is there when it
 * is first asked for. `family` and `protocol` are the call's arguments, which stand in registers and cannot change. */
bool seccomp_socket_allowed(uint64_t family, uint64_t protocol);

/* The row of a reported call, or NULL (then EPERM is the answer). */
const struct seccomp_reported *seccomp_reported(int nr);
