/* cmd_artifacts.c: what a run's steps exported, and where it lies.
 * runs in: cli (untrusted input: the journal; holds: nothing) */
#include <errno.h>
#include <string.h>

#include "audit/journal.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "export/blob.h"

static bool as_json;

static const struct cli_option options[] = {
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

struct listing {
    const struct place *place;
    json_t *collected, *others;
};

static const char *text_of(const json_t *body, const char *key) {
    const char *s = json_string_value(json_object_get(body, key));
    return s ? s : "";
}

/* Where the bytes are, from a record that somebody may have changed: only a digest makes a path. */
static json_t *path_of(const struct place *p, const json_t *body) {
    char relative[BLOB_PATH_MAX];
    const char *digest = text_of(body, "digest");
    bool executable = json_is_true(json_object_get(body, "executable"));
    if (!digest_is_hex(digest))
        return json_null();
    return json_sprintf("%s/%s", p->state,
                        blob_path(digest, executable ? BLOB_MODE_EXECUTABLE : BLOB_MODE_PLAIN, relative));
}

static int visit(void *data, const json_t *record) {
    struct listing *l = data;
    const char *type = text_of(record, "type");
    if (strncmp(type, "export.", 7) != 0)
        return 0;
    json_t *row = json_copy(json_object_get(record, "body"));
    if (!strcmp(type, "export.collected")) {
        json_object_set_new(row, "blob", path_of(l->place, row));
        return json_array_append_new(l->collected, row) < 0 ? -ENOMEM : 0;
    }
    json_object_set_new(row, "state", json_string(type + 7));
    return json_array_append_new(l->others, row) < 0 ? -ENOMEM : 0;
}

static void put_name(struct buf *b, const json_t *row) {
    const char *step = text_of(row, "step"), *name = text_of(row, "name");
    str_put_safe(b, step, strlen(step));
    buf_puts(b, ".");
    str_put_safe(b, name, strlen(name));
}

static void put_page(struct buf *b, const struct listing *l) {
    size_t i;
    json_t *row;
    char size[32];
    json_array_foreach(l->collected, i, row) {
        const char *digest = text_of(row, "digest"), *blob = text_of(row, "blob");
        put_name(b, row);
        buf_printf(b, "  %s%s%s\n  sha256:", str_size(size, (uint64_t)json_integer_value(json_object_get(row, "size"))),
                   json_is_true(json_object_get(row, "executable")) ? ", executable" : "",
                   json_is_true(json_object_get(row, "incomplete")) ? ", incomplete: the step did not complete" : "");
        str_put_safe(b, digest, strlen(digest));
        buf_puts(b, "\n  ");
        str_put_safe(b, blob, strlen(blob));
        buf_puts(b, "\n");
    }
    json_array_foreach(l->others, i, row) {
        const char *why = text_of(row, "why");
        put_name(b, row);
        buf_printf(b, "  %s: ", text_of(row, "state"));
        str_put_safe(b, why, strlen(why));
        buf_puts(b, "\n");
    }
    if (b->n == 0)
        buf_puts(b, "no exports\n");
}

static int run_artifacts(const struct cli_words *words, struct error *err) {
    _cleanup_place_ struct place place = PLACE_EMPTY;
    _cleanup_fd_ int dirfd = -1;
    _cleanup_buf_ struct buf page = {0};
    _cleanup_json_ json_t *answer = json_pack("{s:[], s:[]}", "artifacts", "not_collected");
    char run[ULID_TEXT];
    int r = runs_open(&place, words->args[0], run, &dirfd, err);
    if (r < 0)
        return r;
    struct listing l = {&place, json_object_get(answer, "artifacts"), json_object_get(answer, "not_collected")};
    r = journal_walk(dirfd, visit, &l, err);
    if (r < 0)
        return r;
    json_object_set_new(answer, "run", json_string(run));
    if (as_json)
        return output_json(answer, err);
    put_page(&page, &l);
    return output_page(&page, err);
}

const struct verb verb_artifacts = {
    .name = "artifacts",
    .args = "RUN",
    .summary = "list what a run exported: size, digest, and the file that has the bytes",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run_artifacts,
};
