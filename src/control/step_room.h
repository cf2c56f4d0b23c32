/* step_room.h: one step, as step.c (the conversation) and ending.c (what is made of it) see it.
 * runs in: controller */
#pragma once

#include "control/helper.h"
#include "control/step.h"
#include "export/collect.h"
#include "wire/launch.h"

struct surveying;

/* What each state allows is the table `messages` in step.c. */
enum step_state {
    STEP_STARTING, /* the launcher has the plan; nothing is made on the host */
    STEP_PLACED,   /* the folders that it will make are on record; it makes them, and the walls */
    STEP_ENFORCED, /* what is in force is on record; the worker may start at any moment */
    STEP_RUNNING,  /* the worker runs */
    STEP_OVER,     /* the launcher says that everything is gone, or that nothing ever ran */
};

struct step {
    struct step_context *c;
    const struct plan *plan;
    unsigned number;
    char *text; /* the plan's canonical form */
    char digest[DIGEST_HEX];
    enum step_state state;
    struct helper helper;
    bool channel_done;            /* the channel is of no more use: closed, or not to be trusted */
    bool died;                    /* it closed the channel without a last word */
    bool killed;                  /* KILL was sent */
    uint64_t kill_at, give_up_at; /* CLOCK_MONOTONIC milliseconds, 0 = not set */
    int given[4];                 /* descriptors that the launcher gets, until they are sent */
    struct relay relay;
    struct collect_space space;
    json_t *groups, *denied;
    struct surveying *surveying;                        /* NULL: nothing is surveyed */
    bool frozen, asked_frozen, asked_thaw, asked_count; /* asked: the launcher has not answered yet */
    bool hold_clock;
    uint32_t freezer;  /* uid who asked */
    char refusal[512]; /* harmless on a terminal */
    struct stop_facts facts;
    struct error why; /* of what failed */
    struct wire_message in, out;
};

/* Appends a record about this step; takes `body` over (NULL: memory ran out). A failure breaks the step. */
int step_record(struct step *s, const char *type, json_t *body, enum journal_sync sync);

/* Writes plan-STEP.json into the run's folder. */
int step_keep_plan(struct step *s, struct error *err);

/* Tells the launcher; 0 or -errno. */
int step_tell(struct step *s, uint16_t type);
int step_tell_u32(struct step *s, uint16_t type, uint32_t v);
/* An operator asks for the end, by a signal or by the control socket; `now`: without a moment for the worker. */
void step_ask_to_stop(struct step *s, int number, bool now);
/* The deadline is the launcher's; this one is for a launcher that does not act, and stands still while the clock is held. */
void step_set_deadline(struct step *s);
int step_broken_by(struct step *s, const char *what);

/* switching.c: the launcher's answers to what the switch asked of it. */
int step_on_frozen(struct step *s, struct wire_message *m);
int step_on_thawed(struct step *s, struct wire_message *m);
int step_on_undone(struct step *s, struct wire_message *m);
int step_on_figures(struct step *s, struct wire_message *m);

/* Talks to the launcher until the step is over, or the channel is of no more use. */
void step_converse(struct step *s);
