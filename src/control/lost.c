/* lost.c: runs whose controller died. See control.h.
 *
 * A controller that dies takes its sandbox with it (the launcher gets SIGKILL, and with it the namespaces go). What can
 * be left is control groups, a half-written blob, and a journal without an end. Of a lost run nothing is collected.
 * runs in: controller, cli (untrusted input: an old journal) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/journal.h"
#include "base/fd.h"
#include "control/clean.h"
#include "control/control.h"
#include "control/live.h"
#include "control/stop.h"
#include "export/blob.h"
#include "wire/control.h"

struct found {
    bool ended;
    char step[PLAN_NAME_MAX + 1]; /* the step that had not ended, "" for none */
    json_t *groups;               /* of that step */
};

/* Reads the journal: where the run was when it ended. */
static int visit(void *data, const json_t *record) {
    struct found *f = data;
    const char *type = json_string_value(json_object_get(record, "type"));
    json_t *body = json_object_get(record, "body");
    if (!type || !body)
        return 0;
    f->ended = !strcmp(type, "run.end") || !strcmp(type, "run.lost");
    if (!strcmp(type, "step.plan")) {
        const char *step = json_string_value(json_object_get(body, "step"));
        snprintf(f->step, sizeof(f->step), "%s", step ? step : "");
        json_decref(f->groups);
        f->groups = json_incref(json_object_get(body, "groups"));
    } else if (!strcmp(type, "step.end")) {
        f->step[0] = 0;
        json_decref(f->groups);
        f->groups = NULL;
    }
    return 0;
}

static int record_loss(struct journal *j, const struct found *f, const struct error *failed, struct error *err) {
    static const char why[] = "its controller died; what it ran was ended with it, and nothing was collected";
    _cleanup_json_ json_t *body = json_pack("{s:s, s:s, s:i, s:s?, s:O?, s:s?}", "why", why, "stop", "lost", "exit",
                                            stop_exit(STOP_LOST, 0), "step", f->step[0] ? f->step : NULL, "groups",
                                            f->groups, "not_removed", failed->code ? failed->message : NULL);
    return journal_append(j, "run.lost", body, JOURNAL_WRITTEN, err);
}

/* A run that died before its first record: nothing of it ever ran. */
static bool forget_unborn(const struct place *p, int run_fd, const char *run) {
    struct stat st;
    char name[64];
    bool journal = fstatat(run_fd, JOURNAL_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (journal && st.st_size > 0)
        return false;
    snprintf(name, sizeof(name), "runs/%s", run);
    unlinkat(run_fd, "policy.yaml", 0);
    unlinkat(run_fd, CONTROL_SOCKET_NAME, 0);
    unlinkat(run_fd, JOURNAL_NAME, 0);
    unlinkat(p->state_fd, name, AT_REMOVEDIR);
    return true;
}

static int lose(const struct place *p, int run_fd, const char *run, struct error *err) {
    _cleanup_journal_ struct journal *j = NULL;
    struct found f = {0};
    struct error failed = {0};
    int r = journal_open(run_fd, &j, err);
    if (r == -EWOULDBLOCK)
        return 0;
    if (r == 0)
        r = journal_walk(run_fd, visit, &f, err);
    if (r == 0 && !f.ended) {
        unlinkat(run_fd, CONTROL_SOCKET_NAME, 0);
        clean_cgroups(run, f.groups, &failed);
        r = record_loss(j, &f, &failed, err);
    }
    json_decref(f.groups);
    if (r == 0 && failed.code)
        r = error_set(err, failed.code, "%s", failed.message);
    return r;
}

int control_lose(const struct place *p, const char run[ULID_TEXT], struct error *err) {
    struct error missing = {0};
    _cleanup_fd_ int run_fd = place_open_run(p, run, false, &missing);
    blob_sweep(p->state_fd, run);
    if (run_fd == -ENOENT)
        return 0;
    if (run_fd < 0) {
        *err = missing;
        return run_fd;
    }
    int r = lose(p, run_fd, run, err);
    return r < 0 ? error_wrap(err, "run %s", run) : 0;
}

struct sweep {
    const struct place *place;
    void (*tell)(const char run[ULID_TEXT], const struct error *err);
};

/* The slot's lock is ours now, so no controller of this run lives. */
static int sweep_one(void *data, const char run[ULID_TEXT]) {
    const struct sweep *s = data;
    struct error err = {0};
    _cleanup_fd_ int run_fd = place_open_run(s->place, run, false, NULL);
    if (run_fd >= 0 && forget_unborn(s->place, run_fd, run)) {
        blob_sweep(s->place->state_fd, run);
        return 0;
    }
    int r = control_lose(s->place, run, &err);
    if (s->tell && (run_fd >= 0 || r < 0))
        s->tell(run, &err);
    return r == -EBADMSG ? 0 : r; /* a journal that was changed is for `verify`; asking again changes nothing */
}

int control_sweep_lost(const struct place *p, void (*tell)(const char run[ULID_TEXT], const struct error *err),
                       struct error *err) {
    struct sweep s = {p, tell};
    return live_each_dead(p, sweep_one, &s, err);
}
