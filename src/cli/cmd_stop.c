/* cmd_stop.c: ends a run. runs in: cli (untrusted input: the argument; holds: nothing) */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/operate.h"
#include "cli/output.h"

static bool as_json, at_once;

static const struct cli_option options[] = {
    {"now", 0, CLI_FLAG, &at_once, NULL, "without the second that the worker has to put its things in order"},
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

/* The answer is what the run's journal says of its end, not that it was asked for. */
static int run_stop(const struct cli_words *words, struct error *err) {
    _cleanup_operated_ struct operated o = OPERATED_EMPTY;
    _cleanup_json_ json_t *answer = NULL, *end = NULL;
    int r = operate_open(words->args[0], &o, err);
    if (r == 0)
        r = operate_ask(&o, CONTROL_STOP, true, at_once, &answer, err);
    if (r == 0)
        r = follow_to_end(&o.place, o.run, o.dirfd, &end, err);
    if (r < 0)
        return r;
    if (as_json)
        return output_json(end, err);
    printf("run %s has ended: %s\n", o.run, json_string_value(json_object_get(end, "stop")));
    return 0;
}

const struct verb verb_stop = {
    .name = "stop",
    .args = "RUN",
    .summary = "end a run: the worker hears SIGTERM, and is killed a second later",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run_stop,
};
