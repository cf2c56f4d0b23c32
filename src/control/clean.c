/* clean.c: see clean.h. runs in: controller, cli */
#include "control/clean.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "control/helper.h"
#include "wire/launch.h"

enum { PATIENCE_MS = 20000 };

/* A path from a journal is acted on by killing: it must be a cgroup folder that only this run can have had. */
static int check_path(const char run[ULID_TEXT], const char *path, struct error *err) {
    char safe[256];
    if (path && !strncmp(path, "/sys/fs/cgroup/", 15) && strstr(path, run) && !strstr(path, "/../"))
        return 0;
    return error_set(err, -EBADMSG, "run %s: %s on record is no control group of this run; look at it by hand", run,
                     str_safe(safe, sizeof(safe), path ? path : "(nothing)"));
}

static int put_request(struct wire_message *m, const char run[ULID_TEXT], const json_t *cgroups, struct error *err) {
    size_t i;
    json_t *path;
    wire_begin(m, LAUNCH_CLEAN);
    wire_put_u32(m, (uint32_t)json_array_size(cgroups));
    json_array_foreach((json_t *)cgroups, i, path) {
        int r = check_path(run, json_string_value(path), err);
        if (r < 0)
            return r;
        wire_put_text(m, json_string_value(path));
    }
    return m->broken ? error_set(err, -EMSGSIZE, "run %s: too many control groups on record", run) : 0;
}

static int await_answer(struct helper *h, struct wire_message *m, const char *run, struct error *err) {
    char text[ERROR_MESSAGE_MAX], safe[ERROR_MESSAGE_MAX / 2];
    struct pollfd p = {h->channel, POLLIN, 0};
    int r = poll(&p, 1, PATIENCE_MS);
    r = r <= 0 ? -ETIMEDOUT : wire_receive(h->channel, m);
    if (r == 1 && m->type == LAUNCH_ENDED) {
        wire_drop(m);
        return 0;
    }
    if (r == 1 && m->type == LAUNCH_FAILED) {
        int code = wire_get_code(m);
        wire_get_text(m, text, sizeof(text));
        wire_drop(m);
        return error_set(err, code, "%s", str_safe(safe, sizeof(safe), text));
    }
    wire_drop(m);
    return error_set(err, r < 0 ? r : -EPROTO, "the launcher that should clean up after run %s gave no answer", run);
}

int clean_cgroups(const char run[ULID_TEXT], const json_t *cgroups, struct error *err) {
    _cleanup_helper_ struct helper h = HELPER_EMPTY;
    if (json_array_size(cgroups) == 0)
        return 0;
    _cleanup_free_ struct wire_message *m = malloc(sizeof(*m));
    if (!m)
        return error_set(err, -ENOMEM, "out of memory");
    int r = put_request(m, run, cgroups, err);
    if (r == 0)
        r = spawn_helper("doorward-launch", false, &h, err);
    if (r < 0)
        return r;
    r = wire_send(h.channel, m);
    return r < 0 ? error_errno(err, r, "cannot reach the launcher") : await_answer(&h, m, run, err);
}
