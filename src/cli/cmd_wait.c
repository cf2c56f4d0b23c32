/* cmd_wait.c: waits for runs to end. runs in: cli (untrusted input: the arguments; holds: nothing) */
#include <stdio.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/output.h"
#include "cli/runs.h"

static bool as_json;

static const struct cli_option options[] = {
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

/* 0..255: the run's own exit status. */
static int wait_for(const char *word, struct error *err) {
    _cleanup_place_ struct place place = PLACE_EMPTY;
    _cleanup_json_ json_t *end = NULL;
    _cleanup_fd_ int dirfd = -1;
    char run[ULID_TEXT];
    int r = runs_open(&place, word, run, &dirfd, err);
    if (r == 0)
        r = follow_to_end(&place, run, dirfd, &end, err);
    if (r == 0 && as_json)
        r = output_json(end, err);
    if (r < 0)
        return r;
    const json_t *status = json_object_get(end, "exit");
    return json_is_integer(status) ? (int)json_integer_value(status) & 0xff : CLI_EXIT_OWN_ERROR; /* lost */
}

/* All of them; the answer is the first that did not complete, in the order given. */
static int run_wait(const struct cli_words *words, struct error *err) {
    int first = 0;
    for (int i = 0; i < words->n; i++) {
        int r = wait_for(words->args[i], err);
        if (r < 0)
            return r;
        first = first ? first : r;
    }
    return first;
}

const struct verb verb_wait = {
    .name = "wait",
    .args = "RUN...",
    .summary = "wait until runs have ended, and exit as the first that did not complete",
    .options = options,
    .least = 1,
    .most = -1,
    .run = run_wait,
};
