/* story.h: the story of one run, gathered from its journal and its stored plans.
 * runs in: cli (untrusted input: journal and plan files, which somebody may have changed; holds: nothing) */
#pragma once

#include "audit/journal.h"
#include "base/buf.h"
#include "plan/plan.h"

#define STORY_STEPS_MAX 64

struct story_step {
    json_t *json; /* borrowed from the story's array "steps" */
    struct plan plan;
    bool has_plan; /* plan-STEP.json is there and has the digest that the journal names */
};

struct story {
    json_t *json; /* the object that `doorward show --json` prints; docs/json.md */
    struct story_step steps[STORY_STEPS_MAX];
    size_t n_steps;
};

void story_free(struct story *s);
#define _cleanup_story_ _cleanup_(story_free)

/* Reads the run. A journal that does not fit its chain is no error: what fits is told, and "journal" says where it
 * breaks. */
int story_read(int run_dirfd, const char run[ULID_TEXT], struct story *ret, struct error *err);

/* The object "journal" of a report: records, head, state (`whole`, `torn`, `damaged`), first_bad, why. A new reference.
 */
json_t *story_journal(const struct journal_report *report);

/* What a run is doing: "running", "unfinished" (no end on record and no live controller), STORE_DAMAGED, or its stop.
 */
const char *story_state(int run_dirfd, const char *stop, bool ended);

/* The page for a person. */
void story_print(const struct story *s, struct buf *out);
