/* cmd_show.c: the page of one run. runs in: cli (untrusted input: journal and plan files; holds: nothing) */
#include <errno.h>
#include <stdio.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "cli/story.h"

static bool as_json;

static const struct cli_option options[] = {
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

static int run_show(const struct cli_words *words, struct error *err) {
    _cleanup_place_ struct place place = PLACE_EMPTY;
    _cleanup_story_ struct story story = {0};
    _cleanup_buf_ struct buf page = {0};
    _cleanup_fd_ int dirfd = -1;
    char run[ULID_TEXT];
    int r = runs_open(&place, words->args[0], run, &dirfd, err);
    if (r == 0)
        r = story_read(dirfd, run, &story, err);
    if (r < 0)
        return r;
    if (as_json)
        return output_json(story.json, err);
    story_print(&story, &page);
    return output_page(&page, err);
}

const struct verb verb_show = {
    .name = "show",
    .args = "RUN",
    .summary = "tell the story of a run: what it could reach, what it did, how it ended",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run_show,
};
