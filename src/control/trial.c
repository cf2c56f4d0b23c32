/* trial.c: see trial.h. runs in: controller (untrusted input: none but the launcher's messages) */
#include "control/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "control/helper.h"
#include "control/ids.h"
#include "wire/launch.h"

enum { TRIAL_MS = 30000, SEED = 0x7a1 };

void trial_free(struct trial *t) {
    json_decref(t->enforced);
    *t = (struct trial){0};
}

static int say(const struct helper *h, struct wire_message *m, struct error *err) {
    int r = wire_send(h->channel, m);
    return r < 0 && r != -EPIPE ? error_errno(err, r, "cannot speak to the launcher") : 0; /* -EPIPE: it says why */
}

static int start(const struct helper *h, const struct plan *plan, uint32_t ids, struct wire_message *m,
                 struct error *err) {
    char run[ULID_TEXT];
    _cleanup_buf_ struct buf packed = {0};
    _cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int r = ulid_new(run);
    if (r == 0)
        r = plan_pack(plan, &packed);
    _cleanup_fd_ int fd = r < 0 ? r : fd_sealed("plan", packed.bytes, packed.n);
    if (fd < 0 || null < 0)
        return error_errno(err, fd < 0 ? fd : -EMFILE, "cannot hand over the plan");
    wire_begin(m, LAUNCH_BEGIN);
    wire_put_u32(m, ids);
    if ((r = say(h, m, err)) < 0)
        return r;
    wire_begin(m, LAUNCH_START);
    wire_put_text(m, run);
    wire_put_u32(m, 1);
    wire_put_fd(m, fd);
    for (int i = 0; i < 3; i++)
        wire_put_fd(m, null);
    return say(h, m, err);
}

struct talk {
    const struct helper *helper;
    struct trial *trial;
    struct error *err;
};

/* Each answers 1 when it was the last word, 0 to hear on, or -errno. */
static int on_placed(struct talk *t, struct wire_message *m) {
    wire_drop(m);
    wire_begin(m, LAUNCH_CREATE);
    return say(t->helper, m, t->err);
}

static int on_enforced(struct talk *t, struct wire_message *m) {
    char text[WIRE_BODY_MAX];
    wire_get_text(m, text, sizeof(text));
    if (wire_end(m) < 0)
        return error_set(t->err, -EPROTO, "the launcher sent a broken message");
    return json_read(text, strlen(text), &t->trial->enforced, t->err);
}

static int on_anything(struct talk *t, struct wire_message *m) {
    wire_drop(m);
    return 0;
}

static int on_ended(struct talk *t, struct wire_message *m) {
    struct launch_end end;
    launch_get_end(m, &end);
    if (wire_end(m) < 0)
        return error_set(t->err, -EPROTO, "the launcher sent a broken message");
    t->trial->ran = true;
    return end.reason == LAUNCH_BY_ERROR ? error_set(t->err, -EIO, "%s", end.detail) : 1;
}

static int on_failed(struct talk *t, struct wire_message *m) {
    char text[ERROR_MESSAGE_MAX], safe[ERROR_MESSAGE_MAX];
    int code = wire_get_code(m);
    wire_get_text(m, text, sizeof(text));
    if (wire_end(m) < 0)
        return error_set(t->err, -EPROTO, "the launcher sent a broken message");
    return error_set(t->err, code, "%s", str_safe(safe, sizeof(safe), text));
}

static const struct {
    uint16_t type;
    int (*handle)(struct talk *, struct wire_message *);
} messages[] = {
    {LAUNCH_PLACED, on_placed},    {LAUNCH_ENFORCED, on_enforced}, {LAUNCH_SPACE, on_anything},
    {LAUNCH_STARTED, on_anything}, {LAUNCH_DENIED, on_anything},   {LAUNCH_REFUSAL, on_anything},
    {LAUNCH_ENDED, on_ended},      {LAUNCH_FAILED, on_failed},
};

static int hear(struct talk *t, struct wire_message *m) {
    uint64_t until = clock_monotonic_us() + TRIAL_MS * 1000ULL;
    for (;;) {
        uint64_t now = clock_monotonic_us();
        struct pollfd wait = {t->helper->channel, POLLIN, 0};
        if (now >= until || poll(&wait, 1, (int)((until - now) / 1000 + 1)) == 0)
            return error_set(t->err, -ETIMEDOUT, "the launcher did not answer within %d s", TRIAL_MS / 1000);
        int r = wire_receive(t->helper->channel, m);
        if (r == -EAGAIN)
            continue;
        if (r <= 0)
            return error_set(t->err, r < 0 ? r : -EPIPE, "the launcher ended without a word");
        size_t i = 0;
        while (i < ELEMENTS(messages) && messages[i].type != m->type)
            i++;
        if (i == ELEMENTS(messages))
            return error_set(t->err, -EPROTO, "the launcher said what it may not say");
        if ((r = messages[i].handle(t, m)) != 0)
            return r < 0 ? r : 0;
    }
}

int trial_run(const struct place *place, const struct plan *plan, struct trial *ret, struct error *err) {
    static struct wire_message m;
    _cleanup_helper_ struct helper helper = HELPER_EMPTY;
    _cleanup_ids_ struct ids ids = IDS_EMPTY;
    struct talk talk = {&helper, ret, err};
    *ret = (struct trial){0};
    int r = ids_take(place, SEED, &ids, err);
    if (r == 0)
        r = spawn_helper("doorward-launch", false, &helper, err);
    if (r == 0)
        r = start(&helper, plan, ids.base, &m, err);
    return r < 0 ? r : hear(&talk, &m);
}
