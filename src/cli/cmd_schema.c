/* cmd_schema.c: `doorward schema`: the JSON Schema of the policy file, for editors.
 * runs in: cli */
#include <errno.h>
#include <stdio.h>

#include "cli/cli.h"
#include "policy/policy.h"

static bool as_json;

static const struct cli_option options[] = {
    CLI_JSON_OPTION(&as_json), /* the answer is JSON either way */
    {.kind = CLI_END},
};

static int run(const struct cli_words *words, struct error *err) {
    (void)words;
    _cleanup_json_ json_t *schema = policy_schema();
    if (!schema)
        return error_set(err, -ENOMEM, "out of memory");
    if (json_dumpf(schema, stdout, JSON_SORT_KEYS | (as_json ? JSON_COMPACT : JSON_INDENT(2))) < 0 ||
        putchar('\n') == EOF)
        return error_errno(err, -errno, "cannot write standard output");
    return 0;
}

const struct verb verb_schema = {
    .name = "schema",
    .args = "",
    .summary = "Print the JSON Schema of the policy file",
    .options = options,
    .least = 0,
    .most = 0,
    .run = run,
};
