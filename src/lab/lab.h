/* lab.h: the harness of the lab: what an attempt shows, how rows are judged, the plan of a probe, the record.
 *
 * For each row: the control outside, the probe inside, the control again, and the probe with its walls left out. An
 * attempt is judged by its canaries first (bytes a listener heard, files that changed, processes that stayed), then by
 * the kernel's account of its end, and only then by what the probe says of itself.
 * runs in: cli (untrusted input: what a probe prints from inside a sandbox; holds: the lab's made-up secret) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "lab/rows.h"
#include "plan/plan.h"

/* What was seen of one attempt. */
struct lab_attempt {
    bool done;            /* it was made at all */
    bool hung;            /* it did not end within its deadline and was killed */
    bool answered;        /* the probe's JSON line came */
    enum lab_result said; /* what that line says */
    int err;              /* its errno */
    char detail[400];     /* its words, or why there is no answer; any bytes, to be neutralised when shown */
    char stop[24];        /* how the step ended ("completed", "limit:wall", "error"); "" where nothing tells */
    int exit;             /* exit status of the run, 128 + n for signal n */
    bool heard, changed;  /* canaries: a listener got its marker; the stage's files are not what they were */
    int lingering;        /* canary: processes that were there after the end */
    uint64_t ms;
};

enum lab_verdict { LAB_IS_HELD, LAB_IS_OPEN, LAB_IS_BROKEN, LAB_CANNOT_FAIL, LAB_IS_ABSENT, LAB_VERDICT_N };
extern const char *const lab_verdict_names[LAB_VERDICT_N]; /* "held", "open", "broken", "cannot-fail", "absent" */

struct lab_outcome {
    const struct lab_row *row;
    struct lab_attempt before, inside, after, off;
    enum lab_verdict verdict;
    char why[500]; /* one line for a person; any bytes */
};

/* Takes the last JSON line of what a probe wrote. A line that is not exactly a probe's answer, or names another probe,
 * leaves the attempt without an answer. */
void lab_read_answer(const struct lab_row *row, const char *bytes, size_t n, struct lab_attempt *a);

/* What an attempt came to. `outside` for controls. */
enum lab_result lab_attempt_result(const struct lab_row *row, const struct lab_attempt *a, bool outside);

/* Sets verdict and why. `root`: the lab runs as root; `with_off`: the attempts with walls off were made (not in
 * another sandbox, whose walls cannot be taken off). */
void lab_judge(struct lab_outcome *o, bool root, bool with_off);

/* What plans are made from. */
struct lab_scene {
    const char *probe; /* canonical path of doorward-probe outside */
    const char *dir;   /* the stage's folder, canonical */
    char *const *facts;
};

/* The plan that runs one row: `base` (a step's own plan, or the default one) with the probe as its command, its limits
 * tightened where the row tests one, and, when `off`, the row's walls and limit left out. The caller owns *ret. */
int lab_plan(const struct lab_row *row, const struct lab_scene *scene, const struct plan *base, bool off,
             struct plan *ret, struct error *err);

/* "caps+mounts", "memory", "-" for rows without a wall. Returns `to`. */
const char *lab_walls_text(char to[64], const struct lab_row *row);

/* What the record says besides its results; NULL members are left out. */
struct lab_head {
    const char *mode;    /* "root", "user" */
    const char *against; /* the other sandbox's command prefix */
    const char *task, *step;
    const char *policy_digest, *plan_digest;
};

struct lab_counts {
    unsigned of[LAB_VERDICT_N];
};
struct lab_counts lab_count(const struct lab_outcome *o, size_t n);
/* True when every wall held and every probe that has a wall was seen to fail without it. */
bool lab_all_held(const struct lab_counts *c);

/* The whole record. A new reference, NULL when memory ran out. */
json_t *lab_record(const struct lab_head *head, const struct lab_outcome *o, size_t n);
/* The rows as JSON, for --list --json. A new reference. */
json_t *lab_list(void);
/* One line of the table, or its heading with o == NULL; and the summary. */
void lab_put_line(struct buf *b, const struct lab_outcome *o);
void lab_put_summary(struct buf *b, const struct lab_outcome *o, size_t n);
/* The record as a Markdown table, for docs. */
void lab_put_markdown(struct buf *b, const struct lab_head *head, const struct lab_outcome *o, size_t n);
