/* operate.h: asking a live run's controller, for the verbs that do. runs in: cli (untrusted input: the argument) */
#pragma once

#include "base/clock.h"
#include "base/json.h"
#include "control/ask.h"
#include "control/place.h"

/* A run that was found, and the connection to its controller. */
struct operated {
    struct place place;
    char run[ULID_TEXT];
    int dirfd, socket;
};

#define OPERATED_EMPTY                                                                                                 \
    { .place = PLACE_EMPTY, .dirfd = -1, .socket = -1 }

void operate_close(struct operated *o);
#define _cleanup_operated_ _cleanup_(operate_close)

/* Finds the run that `word` names and connects. -ESRCH, with the run found and *ret filled, when it does not live. */
int operate_open(const char *word, struct operated *ret, struct error *err);

/* One request with its answer; errors name the run. */
int operate_ask(struct operated *o, uint16_t request, bool has_argument, uint32_t argument, json_t **ret,
                struct error *err);
