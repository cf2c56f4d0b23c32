/* stop.h: why a step ended, as a pure function of what is known.
 *
 * The table in stop.c is the last table of policy.md. What the kernel confirmed (an out-of-memory kill, the deadline
 * passed, bytes counted) outranks what init reports of the worker, and that outranks what the worker says of itself.
 * runs in: controller (untrusted input: the numbers in launch_end that are claims) */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "plan/plan.h"
#include "wire/launch.h"

enum stop_kind {
    STOP_COMPLETED,
    STOP_FAILED,
    STOP_LIMIT,
    STOP_REFUSED,
    STOP_WAITING,
    STOP_TRIPWIRE,
    STOP_REVOKED,
    STOP_STOPPED,
    STOP_ERROR,
    STOP_LOST,
    STOP_KIND_N
};

/* What the controller knows once the launcher is gone. */
struct stop_facts {
    bool not_started; /* the launcher said FAILED, or nothing of the step ever ran */
    bool ended;       /* the launcher said ENDED: everything is gone, `end` is filled */
    struct launch_end end;
    bool output_exceeded;       /* counted by us */
    bool operator_asked;        /* a signal or `doorward stop` */
    bool broken;                /* one of our own failed: the journal, the protocol */
    bool refusal;               /* the worker declared one */
    const char *missing_export; /* name of a required export that is not there, or NULL */
    uint64_t output;            /* bytes that the worker wrote */
    const uint64_t *limits;     /* of the plan, by enum plan_limit */
};

struct stop_limit_hit {
    bool hit, hard;
    uint64_t cap, peak; /* peak UINT64_MAX: not known */
};

struct stop {
    enum stop_kind kind;
    enum plan_limit limit;           /* of STOP_LIMIT */
    int exit_status;                 /* of doorward */
    char message[ERROR_MESSAGE_MAX]; /* for a person, "" when there is nothing to add; harmless on a terminal */
    struct stop_limit_hit limits[PLAN_LIMIT_N];
};

void stop_decide(const struct stop_facts *facts, struct stop *ret);

/* "completed", "limit:wall", ... into `to`; returns it. */
#define STOP_NAME_MAX 32
const char *stop_name(const struct stop *s, char to[STOP_NAME_MAX]);

/* The exit status of a stop that has a fixed one; -1 for STOP_FAILED, whose status is the worker's. */
int stop_exit(enum stop_kind kind, enum plan_limit limit);

/* [{"limit","hard","cap","peak","remedy"}], a new reference. */
json_t *stop_limits_json(const struct stop *s);
