/* model.h: a policy in memory, as the tables of keys.c fill it. Private to policy/.
 *
 * All memory is the tree's arena; text points into the tree. Nothing here was yet compared with the host.
 * runs in: controller, cli */
#pragma once

#include "plan/plan.h"
#include "policy/policy.h"
#include "policy/tree.h"

struct list {
    void *items;
    size_t n;
};

/* What an entry of a map with free keys begins with. */
struct named {
    const char *name;
    const struct node *node; /* its value, for the place of messages */
};

struct policy_pair { /* env, accept */
    struct named is;
    const char *value;
};

enum { LABEL_PUBLIC, LABEL_PRIVATE }; /* the order of `labels` in keys.c */

enum { DIGEST_UNSAID }; /* the first of `digests` */

struct policy_input {
    struct named is;                     /* the name is the target */
    const char *from[PLAN_INPUT_KIND_N]; /* exactly one is set: read, overlay or copy */
    char **exclude, **only;
    bool sensitive, git;
    unsigned label, digest, scan; /* digest: DIGEST_UNSAID, or one more than the plan's */
};

struct policy_export {
    struct named is;
    unsigned type; /* only "file" so far */
    const char *path;
    uint64_t max; /* 0: as much as `disk` */
    bool required, executable;
};

struct policy_step {
    struct named is;
    char **run; /* one of both */
    const char *shell;
    struct list inputs;  /* struct policy_input */
    unsigned root;       /* only "host" so far */
    const char *workdir; /* NULL: /work where something stands there, else / */
    struct list env;     /* struct policy_pair */
    char **pass_env;
    uint64_t limits[PLAN_LIMIT_N];
    struct list exports; /* struct policy_export */
    const char *after;   /* NULL: the step above */
    unsigned user, boundary;
    char **degrade;
};

struct policy {
    struct tree tree;
    const char *base; /* the folder that host paths are relative to */
    uint64_t version;
    const char *task, *purpose;
    struct list steps;              /* struct policy_step, as in the file */
    struct list accept;             /* struct policy_pair: finding and reason */
    size_t order[POLICY_STEPS_MAX]; /* steps in the order they run */
    bool input, terminal;           /* of the run, see policy_attach */
};

static inline const struct policy_step *policy_step_at(const struct policy *p, size_t i) {
    return (const struct policy_step *)p->steps.items + p->order[i];
}

/* Fills p from p->tree by the tables and checks what concerns several keys (order of steps). */
int policy_read(struct policy *p, struct error *err);

/* Puts the steps in order; cycles and unknown names in `after` are errors. */
int policy_order(struct policy *p, struct error *err);
