/* ending.c: what is made of a step that is over: exports, the stop, the records. See step.h.
 * runs in: controller (untrusted input: the finished tree; claims in launch_end) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/str.h"
#include "control/clean.h"
#include "control/step_room.h"
#include "control/surveying.h"

enum {
    REAP_MS = 10000,       /* for a launcher to go that did its work */
    REAP_BROKEN_MS = 1000, /* for one that did not, to clear up at least; it is killed then, and its sandbox with it */
};

void step_result_free(struct step_result *r) {
    json_decref(r->artifacts);
    json_decref(r->used);
    json_decref(r->denied);
    *r = (struct step_result){0};
}

int step_keep_plan(struct step *s, struct error *err) {
    char name[PLAN_NAME_MAX + 16];
    snprintf(name, sizeof(name), "plan-%s.json", s->plan->step);
    _cleanup_fd_ int fd = openat(s->c->run_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd_write_all(fd, s->text, strlen(s->text));
    return r < 0 ? place_error(err, r, "cannot write runs/%s/%s in the state folder", s->c->run, name) : 0;
}

/* UINT64_MAX stands for "this host keeps no such count". */
static json_t *count_json(uint64_t n) {
    return n == UINT64_MAX ? json_null() : json_integer((json_int_t)n);
}

static json_t *used_json(const struct step *s) {
    const struct launch_end *e = &s->facts.end;
    if (!s->facts.ended)
        return json_pack("{s:I}", "output", (json_int_t)s->relay.total);
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:I}", "wall_us", (json_int_t)e->wall_us, "cpu_us",
                     (json_int_t)e->cpu_us, "memory_peak", count_json(e->memory_peak), "processes_peak",
                     count_json(e->processes_peak), "disk", count_json(e->disk_peak), "files",
                     count_json(e->files_peak), "output", (json_int_t)s->relay.total);
}

static void tell_death(struct step *s, int status) {
    if (WIFSIGNALED(status))
        error_set(&s->why, -EPROTO,
                  "step %s: the launcher was killed by signal %d (%s); nothing of the step is to be trusted",
                  s->plan->step, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WIFEXITED(status))
        error_set(&s->why, -EPROTO,
                  "step %s: the launcher ended with status %d and no word; nothing of the step is to be trusted",
                  s->plan->step, WEXITSTATUS(status));
}

/* The launcher's own end comes after ENDED. When it ended without it, what it left is removed here; only a launcher
 * that could be reaped and groups that are gone make the step's end a fact. */
static void confirm_gone(struct step *s) {
    struct error err = {0};
    s->helper.channel = fd_close(s->helper.channel);
    int status = spawn_reap(&s->helper, s->facts.broken ? REAP_BROKEN_MS : REAP_MS);
    bool clean = (s->facts.ended || s->facts.not_started) && !s->facts.broken;
    if (clean && WIFEXITED(status))
        return;
    if (s->died)
        tell_death(s, status);
    if (clean_cgroups(s->c->run, s->groups, &err) < 0 && !s->facts.broken) {
        s->facts.broken = true;
        s->why = err;
    }
}

static json_t *artifact_json(const struct step *s, const struct plan_export *e, const struct collected *c,
                             bool incomplete) {
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:b, s:b}", "step", s->plan->step, "name", e->name, "path", e->path,
                     "digest", c->blob.digest, "size", (json_int_t)c->blob.size, "executable",
                     c->blob.mode == BLOB_MODE_EXECUTABLE, "incomplete", incomplete);
}

static void record_collected(struct step *s, json_t *artifact, const struct collected *c) {
    json_t *body = json_copy(artifact);
    if (c->made_plain)
        json_object_set_new(body, "execute_bit_removed", json_true());
    if (c->set_id)
        json_object_set_new(body, "set_id_removed", json_true());
    step_record(s, "export.collected", body, JOURNAL_ON_DISK);
}

/* One export: stored, and on record before anybody may use it. */
static void collect_one(struct step *s, const struct plan_export *e, bool incomplete, struct step_result *r) {
    struct collected c;
    collect_export(&s->space, e, s->c->place->state_fd, s->c->run, &c);
    if (c.result == COLLECT_DONE) {
        json_t *artifact = artifact_json(s, e, &c, incomplete);
        record_collected(s, artifact, &c);
        json_array_append_new(r->artifacts, artifact);
        return;
    }
    step_record(s, c.result == COLLECT_MISSING ? "export.missing" : "export.refused",
                json_pack("{s:s, s:s, s:b, s:s, s:s}", "name", e->name, "path", e->path, "required", e->required,
                          "result", collect_result_names[c.result], "why", c.why),
                JOURNAL_WRITTEN);
    if (!e->required || incomplete || s->facts.missing_export)
        return;
    s->facts.missing_export = e->name;
    error_set(&s->why, -ENOENT, "required export %s: %s: %s", e->name, e->path, c.why);
}

static void collect_all(struct step *s, struct step_result *r) {
    struct stop before;
    stop_decide(&s->facts, &before);
    for (size_t i = 0; s->facts.ended && !s->facts.broken && i < s->plan->n_exports; i++)
        collect_one(s, &s->plan->exports[i], before.kind != STOP_COMPLETED, r);
}

static void decide(struct step *s, struct stop *stop) {
    char own[ERROR_MESSAGE_MAX];
    s->facts.output = s->relay.total;
    s->facts.limits = s->plan->limits;
    s->facts.output_exceeded = s->relay.exceeded;
    stop_decide(&s->facts, stop);
    str_safe(own, sizeof(own), s->why.message);
    if (stop->kind == STOP_ERROR && *own)
        snprintf(stop->message, sizeof(stop->message), "%s", own);
    else if (stop->kind == STOP_ERROR && !*stop->message)
        snprintf(stop->message, sizeof(stop->message), "the sandbox's init ended without a report (status %u)",
                 s->facts.end.init_status);
    else if (stop->kind == STOP_REFUSED)
        snprintf(stop->message, sizeof(stop->message), "%s", s->refusal);
    else if (stop->kind == STOP_FAILED && s->facts.missing_export && *own)
        snprintf(stop->message, sizeof(stop->message), "%s", own);
}

static void record_limits(struct step *s, json_t *hits) {
    size_t i;
    json_t *hit;
    json_array_foreach(hits, i, hit) {
        step_record(s, "limit.hit", json_copy(hit), JOURNAL_WRITTEN);
    }
}

static json_t *streams_json(const struct step *s) {
    json_t *streams = json_object();
    for (int i = 0; i < RELAY_STREAM_N; i++) {
        char file[PLAN_NAME_MAX + 32];
        snprintf(file, sizeof(file), "steps/%s/%s", s->plan->step, relay_stream_names[i]);
        json_t *row = json_pack("{s:I, s:o}", "bytes", (json_int_t)s->relay.bytes[i], "file",
                                s->relay.copy[i] < 0 ? json_null() : json_string(file));
        if (s->relay.copy_failed)
            json_object_set_new(row, "copy_failed", json_string(strerror(s->relay.copy_failed)));
        json_object_set_new(streams, relay_stream_names[i], row);
    }
    return streams;
}

static const char *const how_names[LAUNCH_HOW_N] = {"unknown", "exited", "signaled", "not-found", "not-executable"};

static void record_end(struct step *s, struct step_result *r) {
    char name[STOP_NAME_MAX];
    json_t *hits = stop_limits_json(&r->stop);
    record_limits(s, hits);
    json_t *body =
        json_pack("{s:s, s:i, s:s, s:I, s:I, s:O, s:o, s:o, s:s}", "stop", stop_name(&r->stop, name), "exit",
                  r->stop.exit_status, "how", how_names[s->facts.end.how], "value", (json_int_t)s->facts.end.value,
                  "init_status", (json_int_t)s->facts.end.init_status, "used", r->used, "output", streams_json(s),
                  "limits_hit", hits, "message", r->stop.message);
    step_record(s, "step.end", body, JOURNAL_WRITTEN);
}

void step_finish(struct step *s, struct step_result *ret) {
    s->relay.run_fd = s->c->run_fd;
    s->relay.step = s->plan->step;
    s->relay.most = s->plan->lab_limit_off[PLAN_OUTPUT] ? UINT64_MAX : s->plan->limits[PLAN_OUTPUT];
    for (int i = 0; i < RELAY_STREAM_N; i++) {
        s->relay.sinks[i] = s->c->sinks[i];
        s->relay.guarded[i] = s->c->guarded[i] && !s->plan->terminal;
    }
    *ret = (struct step_result){.artifacts = json_array(), .denied = json_incref(s->denied)};
    if (step_keep_plan(s, &s->why) < 0) /* before the record that has its digest; the launcher is still starting */
        s->facts.broken = s->channel_done = true;
    else if (surveying_before(s) < 0) /* nothing is made yet: the launcher waits for its first answer */
        s->facts.not_started = s->channel_done = true;
    step_converse(s);
    /* ENDED says that the kernel confirmed everything gone; the launcher's own exit need not be waited for before that
     * is written down. */
    bool ended = s->facts.ended && !s->facts.broken;
    if (!ended)
        confirm_gone(s);
    surveying_finish(s);
    decide(s, &ret->stop);
    collect_all(s, ret);
    ret->used = used_json(s);
    decide(s, &ret->stop);
    bool was_broken = s->facts.broken;
    record_end(s, ret);
    if (ended)
        spawn_end(&s->helper); /* a host whose process 1 reaps nothing (many containers) would keep it for ever */
    if (s->facts.broken && !was_broken)
        decide(s, &ret->stop); /* the record of the end could not be written */
}
