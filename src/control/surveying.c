/* surveying.c: see surveying.h.
 * runs in: controller (untrusted input: what the surveyor says of hostile bytes: bounded, and text only on record) */
#include "control/surveying.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/fd.h"
#include "base/str.h"
#include "wire/survey.h"

enum {
    COUNT_AFTER_MS = 100, /* a step that is over before is not counted */
    CUT_PATIENCE_MS = 200 /* for the surveyor to leave what nobody named */
};

struct surveying {
    struct helper helper;
    bool before, unread;
    uint64_t begin_at; /* 0: not to be begun */
    json_t **rows;     /* by index of the input, NULL: none is wanted or it is on record */
    unsigned secrets;  /* before the start */
    char first[256];   /* of them */
    struct wire_message m;
};

static const char *const change_names[SURVEY_CHANGE_N] = {"modified", "deleted", "unmerged", "untracked"};

static bool is_wanted(const struct plan_input *in, bool before) {
    return before ? in->scan == PLAN_SCAN_REFUSE : in->directory || in->scan == PLAN_SCAN_WARN;
}

static bool any_wanted(const struct plan *p, bool before, bool *ret_more) {
    bool any = false;
    for (size_t i = 0; i < p->n_inputs; i++) {
        const struct plan_input *in = &p->inputs[i];
        any |= is_wanted(in, before);
        *ret_more |= in->digest != PLAN_DIGEST_NONE || in->digest_named || in->scan == PLAN_SCAN_WARN;
    }
    return any;
}

/* -- what it says -- */

static json_t **row_at(struct surveying *y, const struct step *s, uint32_t index) {
    return index < s->plan->n_inputs && y->rows[index] ? &y->rows[index] : NULL;
}

static int on_secret(struct step *s) {
    struct surveying *y = s->surveying;
    char rule[64], path[SURVEY_PATH_MAX], safe[128];
    json_t **row = row_at(y, s, wire_get_u32(&y->m));
    uint64_t line = wire_get_u64(&y->m);
    wire_get_text(&y->m, rule, sizeof(rule));
    wire_get_text(&y->m, path, sizeof(path));
    if (wire_end(&y->m) < 0 || !row)
        return -EPROTO;
    const char *target = json_string_value(json_object_get(*row, "target"));
    if (y->secrets++ == 0)
        snprintf(y->first, sizeof(y->first), "%.100s: %s, line %llu: %s", target, str_safe(safe, sizeof(safe), path),
                 (unsigned long long)line, rule);
    return step_record(s, "input.secret",
                       json_pack("{s:s, s:o, s:I, s:o}", "target", target, "path", journal_text(path, strlen(path)),
                                 "line", (json_int_t)line, "rule", journal_text(rule, strlen(rule))),
                       JOURNAL_WRITTEN);
}

static int on_changed(struct step *s) {
    struct surveying *y = s->surveying;
    char path[SURVEY_PATH_MAX];
    json_t **row = row_at(y, s, wire_get_u32(&y->m));
    uint32_t how = wire_get_u32(&y->m);
    wire_get_text(&y->m, path, sizeof(path));
    if (wire_end(&y->m) < 0 || !row || how >= SURVEY_CHANGE_N)
        return -EPROTO;
    json_t *list = json_object_get(*row, "changed");
    if (json_array_size(list) >= SURVEY_TOLD_MAX)
        return -EPROTO;
    json_array_append_new(list,
                          json_pack("{s:s, s:o}", "how", change_names[how], "path", journal_text(path, strlen(path))));
    return 0;
}

static void put_text(json_t *row, const char *key, const char *text) {
    if (*text)
        json_object_set_new(row, key, journal_text(text, strlen(text)));
}

static int on_surveyed(struct step *s) {
    struct surveying *y = s->surveying;
    char digest[DIGEST_HEX], commit[SURVEY_OID_MAX], ref[SURVEY_REF_MAX], why[SURVEY_WHY_MAX];
    json_t **row = row_at(y, s, wire_get_u32(&y->m));
    uint32_t whole = wire_get_u32(&y->m);
    uint64_t files = wire_get_u64(&y->m), bytes = wire_get_u64(&y->m), changed = wire_get_u64(&y->m);
    wire_get_text(&y->m, digest, sizeof(digest));
    wire_get_text(&y->m, commit, sizeof(commit));
    wire_get_text(&y->m, ref, sizeof(ref));
    wire_get_text(&y->m, why, sizeof(why));
    if (wire_end(&y->m) < 0 || !row || whole > 1 || (*digest && !digest_is_hex(digest)) || files > INT64_MAX ||
        bytes > INT64_MAX || changed > INT64_MAX)
        return -EPROTO;
    json_object_set_new(*row, "complete", json_boolean(whole));
    json_object_set_new(*row, "files", json_integer((json_int_t)files));
    json_object_set_new(*row, "bytes", json_integer((json_int_t)bytes));
    json_object_set_new(*row, "changes", json_integer((json_int_t)changed));
    put_text(*row, "digest", digest);
    put_text(*row, "commit", commit);
    put_text(*row, "ref", ref);
    put_text(*row, "why", why);
    json_t *body = TAKE_PTR(*row);
    if (y->before && whole) { /* what was looked for is on record, or nothing was found */
        json_decref(body);
        return 0;
    }
    y->unread = true;
    return step_record(s, y->before ? "input.unread" : "input.digest", body, JOURNAL_WRITTEN);
}

static const struct {
    uint16_t type;
    int (*handle)(struct step *s);
} messages[] = {{SURVEY_SECRET, on_secret}, {SURVEY_CHANGED, on_changed}, {SURVEY_SURVEYED, on_surveyed}};

/* What is not on record yet never will be complete. */
static void give_up(struct step *s, const char *why) {
    struct surveying *y = s->surveying;
    y->helper.channel = fd_close(y->helper.channel);
    if (y->helper.pidfd >= 0)
        spawn_reap(&y->helper, 0);
    for (size_t i = 0; i < s->plan->n_inputs; i++) {
        if (!y->rows[i])
            continue;
        json_t *body = TAKE_PTR(y->rows[i]);
        y->unread = true;
        json_object_set_new(body, "complete", json_false());
        json_object_set_new(body, "why", json_string(why));
        step_record(s, y->before ? "input.unread" : "input.digest", body, JOURNAL_WRITTEN);
    }
}

/* One message; the end of the channel, or of trust, is the end of the surveyor. */
static void hear(struct step *s) {
    struct surveying *y = s->surveying;
    int r = wire_receive(y->helper.channel, &y->m);
    if (r == -EAGAIN)
        return;
    for (size_t i = 0; r > 0 && i < ELEMENTS(messages); i++)
        if (messages[i].type == y->m.type) {
            if (messages[i].handle(s) == -EPROTO)
                give_up(s, "the surveyor broke its protocol");
            return;
        }
    wire_drop(&y->m);
    give_up(s, r == 0 ? "the surveyor ended early" : "the surveyor broke its protocol");
}

/* -- the life of it -- */

static int send_inputs(struct step *s) {
    struct surveying *y = s->surveying;
    _cleanup_buf_ struct buf packed = {0};
    int r = plan_pack(s->plan, &packed);
    _cleanup_fd_ int plan = r < 0 ? r : fd_sealed("plan", packed.bytes, packed.n);
    if (plan < 0)
        return plan;
    wire_begin(&y->m, SURVEY_START);
    wire_put_u32(&y->m, y->before);
    wire_put_fd(&y->m, plan);
    r = wire_send(y->helper.channel, &y->m);
    for (size_t i = 0; r == 0 && i < s->plan->n_inputs; i++) {
        if (!y->rows[i])
            continue;
        _cleanup_fd_ int fd = open(s->plan->inputs[i].source, O_PATH | O_CLOEXEC);
        if (fd < 0)
            return -errno;
        wire_begin(&y->m, SURVEY_INPUT);
        wire_put_u32(&y->m, (uint32_t)i);
        wire_put_fd(&y->m, fd);
        r = wire_send(y->helper.channel, &y->m);
    }
    wire_begin(&y->m, SURVEY_GO);
    return r < 0 ? r : wire_send(y->helper.channel, &y->m);
}

static int make_rows(struct step *s, bool before) {
    struct surveying *y = s->surveying;
    for (size_t i = 0; i < s->plan->n_inputs; i++) {
        const struct plan_input *in = &s->plan->inputs[i];
        if (!is_wanted(in, before))
            continue;
        y->rows[i] = json_pack("{s:s, s:s, s:s, s:[]}", "target", in->target, "source", in->source, "kind",
                               plan_digest_names[in->digest], "changed");
        if (!y->rows[i])
            return -ENOMEM;
    }
    return 0;
}

static struct surveying *make(const struct step *s) {
    struct surveying *y = calloc(1, sizeof(*y));
    if (!y || !(y->rows = calloc(s->plan->n_inputs + 1, sizeof(json_t *)))) {
        free(y);
        return NULL;
    }
    y->helper = (struct helper)HELPER_EMPTY;
    return y;
}

static void start(struct step *s) {
    struct surveying *y = s->surveying;
    struct error err = {0};
    y->begin_at = 0;
    int r = make_rows(s, y->before);
    if (r == 0)
        r = spawn_helper("doorward-survey", false, &y->helper, &err);
    if (r == 0)
        r = send_inputs(s);
    if (r < 0)
        give_up(s, err.code ? err.message : strerror(-r));
}

void surveying_begin(struct step *s) {
    bool more = false;
    surveying_end(s);
    if (!any_wanted(s->plan, false, &more) || !(s->surveying = make(s)))
        return;
    if (more)
        start(s);
    else
        s->surveying->begin_at = clock_monotonic_us() / 1000 + COUNT_AFTER_MS;
}

struct pollfd surveying_poll(const struct step *s) {
    return (struct pollfd){s->surveying ? s->surveying->helper.channel : -1, POLLIN, 0};
}

uint64_t surveying_at(const struct step *s) {
    return s->surveying ? s->surveying->begin_at : 0;
}

void surveying_serve(struct step *s, const struct pollfd *p) {
    struct surveying *y = s->surveying;
    if (y && p->revents && y->helper.channel >= 0)
        hear(s);
    if (y && y->begin_at && clock_monotonic_us() / 1000 >= y->begin_at)
        start(s);
}

/* An operator does not wait for a digest. */
static bool is_stopped(struct step *s) {
    struct signalfd_siginfo info;
    while (read(s->c->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo != SIGWINCH && info.ssi_signo != SIGCONT)
            return s->c->stopped = true;
    return false;
}

static void wait_for(struct step *s, bool named) {
    struct surveying *y = s->surveying;
    uint64_t until = clock_monotonic_us() / 1000 + CUT_PATIENCE_MS;
    while (y->helper.channel >= 0) {
        uint64_t now = clock_monotonic_us() / 1000;
        struct pollfd p[] = {surveying_poll(s), {s->c->signals, POLLIN, 0}};
        int n = poll(p, ELEMENTS(p), named ? -1 : now < until ? (int)(until - now) : 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            give_up(s, "the step ended before");
        else if (n > 0 && p[1].revents && is_stopped(s))
            give_up(s, "an operator stopped the run");
        else if (n > 0 && p[0].revents)
            hear(s);
    }
}

/* Something that the policy named is still to come. */
static bool is_named(const struct step *s) {
    for (size_t i = 0; i < s->plan->n_inputs; i++)
        if (s->surveying->rows[i] && (s->plan->inputs[i].digest_named || s->plan->inputs[i].scan == PLAN_SCAN_WARN))
            return true;
    return false;
}

void surveying_finish(struct step *s) {
    struct surveying *y = s->surveying;
    if (!y)
        return;
    if (y->begin_at) { /* over before it was counted */
        y->begin_at = 0;
        make_rows(s, false);
        give_up(s, "the step ended before");
    }
    if (y->helper.channel >= 0) {
        wire_begin(&y->m, SURVEY_CUT);
        wire_send(y->helper.channel, &y->m); /* one that is done already does not hear it */
    }
    wait_for(s, is_named(s));
}

int surveying_before(struct step *s) {
    bool more = false;
    if (!any_wanted(s->plan, true, &more))
        return 0;
    if (!(s->surveying = make(s)))
        return error_set(&s->why, -ENOMEM, "out of memory");
    s->surveying->before = true;
    start(s);
    wait_for(s, true);
    const unsigned secrets = s->surveying->secrets;
    char first[sizeof(s->surveying->first)];
    memcpy(first, s->surveying->first, sizeof(first));
    const bool unread = s->surveying->unread;
    surveying_end(s);
    if (secrets)
        return error_set(
            &s->why, -EACCES,
            "step %s: scan refuses an input: %u places look like secrets, the first is %s; leave them out with "
            "`exclude`, or say `scan: warn` where they are meant",
            s->plan->step, secrets, first);
    return unread
               ? error_set(&s->why, -EIO,
                           "step %s: an input with `scan: refuse` could not be read whole, so nothing is known of it; "
                           "the record input.unread says why",
                           s->plan->step)
               : 0;
}

void surveying_end(struct step *s) {
    struct surveying *y = s->surveying;
    if (!y)
        return;
    fd_close(y->helper.channel);
    y->helper.channel = -1;
    if (y->helper.pidfd >= 0)
        spawn_reap(&y->helper, 0);
    for (size_t i = 0; i < s->plan->n_inputs; i++)
        json_decref(y->rows[i]);
    free(y->rows);
    free(y);
    s->surveying = NULL;
}
