/* cmd_freeze.c: stops every process of a running step, and answers when that is confirmed.
 * runs in: cli (untrusted input: the argument; holds: nothing) */
#include <stdio.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/operate.h"
#include "cli/output.h"
#include "cli/words.h"

static bool as_json, hold_clock;

static const struct cli_option options[] = {
    {"hold-clock", 0, CLI_FLAG, &hold_clock, NULL, "the deadline waits, too; otherwise it goes on"},
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

static void put_answer(struct buf *b, const char *run, const json_t *answer) {
    buf_printf(b, "run %s is frozen", run);
    if (json_is_true(json_object_get(answer, "already"))) {
        buf_puts(b, " already");
    } else {
        buf_printf(b, ": %lld processes confirmed stopped by %s after ",
                   (long long)json_integer_value(json_object_get(answer, "processes")),
                   json_string_value(json_object_get(answer, "by")));
        words_took(b, (uint64_t)json_integer_value(json_object_get(answer, "took_us")));
    }
    buf_printf(b, "; its deadline %s; doorward thaw %s lets it go on\n",
               json_is_true(json_object_get(answer, "clock_held")) ? "waits" : "goes on", run);
}

static int run_freeze(const struct cli_words *words, struct error *err) {
    _cleanup_operated_ struct operated o = OPERATED_EMPTY;
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_buf_ struct buf page = {0};
    int r = operate_open(words->args[0], &o, err);
    if (r == 0)
        r = operate_ask(&o, CONTROL_FREEZE, true, hold_clock, &answer, err);
    if (r < 0)
        return r;
    if (as_json)
        return output_json(answer, err);
    put_answer(&page, o.run, answer);
    return output_page(&page, err);
}

const struct verb verb_freeze = {
    .name = "freeze",
    .args = "RUN",
    .summary = "stop every process of a run, until it is thawed",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run_freeze,
};
