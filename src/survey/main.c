/* main.c: the surveyor: takes its inputs, gives everything else up, reads. See survey.h.
 * runs in: surveyor (untrusted input: everything below the inputs; holds: descriptors of the inputs, for reading) */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/confine.h"
#include "jail/landlock.h"
#include "jail/seccomp.h"
#include "survey/survey.h"

enum { EXIT_BROKEN = 1, LOOK_EVERY = 64 };

void survey_incomplete(struct survey *s, const char *format, ...) {
    va_list args;
    if (*s->why)
        return;
    va_start(args, format);
    vsnprintf(s->why, sizeof(s->why), format, args);
    va_end(args);
}

bool survey_goes_on(struct survey *s, bool named) {
    struct pollfd channel = {SURVEY_CHANNEL, POLLIN, 0};
    if (s->looked++ % LOOK_EVERY == 0 && !s->cut && poll(&channel, 1, 0) > 0) {
        if (wire_receive(SURVEY_CHANNEL, &s->m) <= 0 || s->m.type != SURVEY_CUT)
            exit(EXIT_BROKEN);
        s->cut = true;
    }
    if (!s->cut || named)
        return true;
    survey_incomplete(s, "the step ended before");
    return false;
}

/* --- what is told --- */

static void say(struct survey *s) {
    if (wire_send(SURVEY_CHANNEL, &s->m) < 0)
        exit(EXIT_BROKEN);
}

void survey_tell_change(struct survey *s, enum survey_change how, const char *path) {
    if (s->changed++ >= SURVEY_TOLD_MAX)
        return;
    wire_begin(&s->m, SURVEY_CHANGED);
    wire_put_u32(&s->m, (uint32_t)s->index);
    wire_put_u32(&s->m, how);
    wire_put_text(&s->m, path);
    say(s);
}

void survey_tell_secret(struct survey *s, uint64_t line, const char *rule, const char *path) {
    if (s->secrets++ >= SURVEY_TOLD_MAX)
        return;
    wire_begin(&s->m, SURVEY_SECRET);
    wire_put_u32(&s->m, (uint32_t)s->index);
    wire_put_u64(&s->m, line);
    wire_put_text(&s->m, rule);
    wire_put_text(&s->m, path);
    say(s);
}

static void tell_surveyed(struct survey *s) {
    const struct plan_input *in = &s->plan.inputs[s->index];
    char digest[DIGEST_HEX] = "";
    bool whole = !*s->why && !s->listing.failed;
    if (whole && in->directory && in->digest != PLAN_DIGEST_NONE && !s->before)
        digest_hex(s->listing.bytes ? s->listing.bytes : "", s->listing.n, digest);
    wire_begin(&s->m, SURVEY_SURVEYED);
    wire_put_u32(&s->m, (uint32_t)s->index);
    wire_put_u32(&s->m, whole);
    wire_put_u64(&s->m, s->files);
    wire_put_u64(&s->m, s->bytes);
    wire_put_u64(&s->m, s->changed);
    wire_put_text(&s->m, digest);
    wire_put_text(&s->m, s->commit);
    wire_put_text(&s->m, s->ref);
    wire_put_text(&s->m, s->why);
    say(s);
}

/* --- the inputs --- */

int survey_open(const struct survey *s, const char *path, int flags) {
    const struct plan_input *in = plan_input_at(&s->plan, path);
    if (!in || !in->directory || s->inputs[in - s->plan.inputs] < 0)
        return -ENOENT;
    size_t n = strlen(in->target);
    return fd_open_beneath(s->inputs[in - s->plan.inputs], path[n] ? path + n + 1 : "", flags, 0);
}

static void survey_input(struct survey *s, size_t index) {
    const struct plan_input *in = &s->plan.inputs[index];
    enum plan_scan scan = s->before ? PLAN_SCAN_REFUSE : PLAN_SCAN_WARN;
    s->index = index;
    s->files = s->bytes = s->changed = s->secrets = 0;
    *s->why = *s->commit = *s->ref = 0;
    bool repository = in->directory && in->digest == PLAN_DIGEST_GIT && !s->before;
    if (repository)
        survey_repository(s);
    if (!repository || in->scan == scan) {
        uint64_t files = s->files, bytes = s->bytes;
        survey_walk(s);
        if (repository) {
            s->files = files;
            s->bytes = bytes;
        }
    }
    tell_surveyed(s);
    buf_free(&s->listing);
}

static void take_plan(struct survey *s) {
    struct error err = {0};
    char *bytes = NULL;
    size_t n = 0;
    if (wire_receive(SURVEY_CHANNEL, &s->m) <= 0 || s->m.type != SURVEY_START)
        exit(EXIT_BROKEN);
    s->before = wire_get_u32(&s->m) == 1;
    _cleanup_fd_ int fd = wire_take_fd(&s->m);
    if (wire_end(&s->m) < 0 || lseek(fd, 0, SEEK_SET) < 0 || fd_read_file(fd, PLAN_ENCODED_MAX, &bytes, &n, &err) < 0 ||
        plan_unpack(bytes, n, &s->plan, &err) < 0 || plan_check(&s->plan, &err) < 0)
        exit(EXIT_BROKEN);
    free(bytes);
    s->inputs = malloc((s->plan.n_inputs + 1) * sizeof(int));
    if (!s->inputs)
        exit(EXIT_BROKEN);
    for (size_t i = 0; i < s->plan.n_inputs; i++)
        s->inputs[i] = -1;
}

static void take_inputs(struct survey *s) {
    while (wire_receive(SURVEY_CHANNEL, &s->m) > 0 && s->m.type == SURVEY_INPUT) {
        uint32_t index = wire_get_u32(&s->m);
        int fd = wire_take_fd(&s->m);
        if (wire_end(&s->m) < 0 || index >= s->plan.n_inputs || s->inputs[index] >= 0)
            exit(EXIT_BROKEN);
        s->inputs[index] = fd;
    }
    if (s->m.type != SURVEY_GO || wire_end(&s->m) < 0)
        exit(EXIT_BROKEN);
}

/* Reading below the inputs is all that is left. Without the filter nothing is read; where the kernel has no Landlock the
 * filter alone lets nothing be opened for writing, and no path but through the inputs is ever used. */
static void confine(struct survey *s) {
    struct landlock_rule *rules = calloc(s->plan.n_inputs + 1, sizeof(*rules));
    struct error err = {0};
    size_t n = 0;
    for (size_t i = 0; rules && i < s->plan.n_inputs; i++)
        if (s->inputs[i] >= 0)
            rules[n++] = (struct landlock_rule){s->inputs[i], LANDLOCK_SEE};
    if (!rules || confine_no_core() < 0 || confine_bounding_set() < 0 ||
        confine_capabilities(geteuid() == 0 ? CAP_DAC_READ_SEARCH : -1) < 0 || confine_no_new_privileges() < 0 ||
        (landlock_abi() > 0 && landlock_confine(rules, n, true, &err) < 0) ||
        seccomp_install(&seccomp_survey, NULL) < 0)
        exit(EXIT_BROKEN);
    free(rules);
}

int main(void) {
    static struct survey s;
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return EXIT_BROKEN;
    take_plan(&s);
    take_inputs(&s);
    confine(&s);
    for (size_t i = 0; i < s.plan.n_inputs; i++)
        if (s.inputs[i] >= 0)
            survey_input(&s, i);
    return 0;
}
