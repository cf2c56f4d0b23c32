/* cmd_thaw.c: lets a frozen run go on. runs in: cli (untrusted input: the argument; holds: nothing) */
#include <stdio.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/operate.h"
#include "cli/output.h"
#include "cli/words.h"

static bool as_json;

static const struct cli_option options[] = {
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

static int run_thaw(const struct cli_words *words, struct error *err) {
    _cleanup_operated_ struct operated o = OPERATED_EMPTY;
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_buf_ struct buf page = {0};
    int r = operate_open(words->args[0], &o, err);
    if (r == 0)
        r = operate_ask(&o, CONTROL_THAW, false, 0, &answer, err);
    if (r < 0)
        return r;
    if (as_json)
        return output_json(answer, err);
    if (json_is_true(json_object_get(answer, "already"))) {
        buf_printf(&page, "run %s was not frozen\n", o.run);
    } else {
        buf_printf(&page, "run %s goes on after ", o.run);
        words_took(&page, (uint64_t)json_integer_value(json_object_get(answer, "frozen_us")));
        buf_puts(&page, "\n");
    }
    return output_page(&page, err);
}

const struct verb verb_thaw = {
    .name = "thaw",
    .args = "RUN",
    .summary = "let a frozen run go on",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run_thaw,
};
