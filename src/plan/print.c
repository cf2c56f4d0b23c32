/* print.c: the plan in words. What is printed of names and paths is made harmless; values of variables are not
 * printed, since they may be secrets.
 * runs in: controller, cli */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "plan/plan.h"

static const char *const input_words[] = {
    [PLAN_READ] = "read-only",
    [PLAN_OVERLAY] = "copy-on-write, the original is never written",
    [PLAN_COPY] = "a copy that may be changed",
};
static_assert(ELEMENTS(input_words) == PLAN_INPUT_KIND_N, "words per kind of input");

static const char *const scan_words[] = {
    [PLAN_SCAN_OFF] = "",
    [PLAN_SCAN_WARN] = "; scanned for secrets",
    [PLAN_SCAN_REFUSE] = "; refused where it holds secrets",
};
static_assert(ELEMENTS(scan_words) == PLAN_SCAN_N, "words per scan");

static const char *count_text(char to[32], uint64_t v) {
    const char *unit = v && v % 1000000 == 0 ? "M" : v && v % 1000 == 0 ? "k" : "";
    uint64_t shown = *unit == 'M' ? v / 1000000 : *unit == 'k' ? v / 1000 : v;
    snprintf(to, 32, "%llu%s", (unsigned long long)shown, unit);
    return to;
}

static const char *cpus_text(char to[32], uint64_t thousandths) {
    int n = snprintf(to, 32, "%llu.%03u", (unsigned long long)(thousandths / 1000), (unsigned)(thousandths % 1000));
    while (to[n - 1] == '0')
        to[--n] = 0;
    if (to[n - 1] == '.')
        to[n - 1] = 0;
    return to;
}

/* How each limit is shown and what follows when it is met (policy.md: hard and soft). */
static const struct {
    const char *(*text)(char to[32], uint64_t v);
    const char *meaning;
} limit_words[] = {
    [PLAN_WALL] = {str_duration, "then the step is ended"},
    [PLAN_MEMORY] = {str_size, "no swap; the kernel kills what needs more"},
    [PLAN_PROCESSES] = {count_text, "processes and threads; then fork fails"},
    [PLAN_CPUS] = {cpus_text, "processors"},
    [PLAN_DISK] = {str_size, "of everything the worker writes together; then writes fail"},
    [PLAN_FILES] = {count_text, "files and folders that the worker makes; then creating fails"},
    [PLAN_OUTPUT] = {str_size, "of standard output and error together; then the step is ended"},
    [PLAN_OPEN_FILES] = {count_text, "descriptors per process; then opening fails"},
};
static_assert(ELEMENTS(limit_words) == PLAN_LIMIT_N, "words per limit");

const char *plan_limit_text(char to[32], enum plan_limit limit, uint64_t v) {
    return limit_words[limit].text(to, v);
}

static void put_text(struct buf *b, const char *s) {
    str_put_safe(b, s, strlen(s));
}

/* An argument so that it can be told from its neighbours. */
static void put_argument(struct buf *b, const char *s) {
    bool plain = *s && !strpbrk(s, " \t\n\"'\\$`*?[]{}()<>|&;#~!");
    buf_puts(b, plain ? "" : "'");
    put_text(b, s);
    buf_puts(b, plain ? "" : "'");
}

static void put_label(struct buf *b, const char *label) {
    buf_printf(b, "  %-10s", label);
}

static void put_list(struct buf *b, const char *before, char *const *v) {
    for (size_t i = 0; v && v[i]; i++) {
        buf_puts(b, i ? ", " : before);
        put_text(b, v[i]);
    }
}

static void put_inputs(struct buf *b, const struct plan *p) {
    put_label(b, "sees");
    buf_puts(b, "the host's /usr and a short list of /etc, read-only\n");
    for (size_t i = 0; i < p->n_inputs; i++) {
        const struct plan_input *in = &p->inputs[i];
        put_label(b, "");
        put_text(b, in->target);
        buf_printf(b, ": %s ", in->directory ? "folder" : "file");
        put_text(b, in->source);
        buf_printf(b, ", %s", input_words[in->kind]);
        put_list(b, "; without ", in->exclude);
        put_list(b, "; only ", in->only);
        buf_puts(b, scan_words[in->scan]);
        if (in->directory && in->digest != PLAN_DIGEST_NONE)
            buf_printf(b, "; digest %s", plan_digest_names[in->digest]);
        buf_puts(b, in->private ? "; private: leaves through the exports below and in no other way" : "");
        buf_puts(b, in->sensitive ? "; SENSITIVE, named so by the policy\n" : "\n");
    }
}

static void put_writable(struct buf *b, const struct plan *p) {
    put_label(b, "may write");
    buf_puts(b, "/tmp /home/agent /out /dev/shm");
    for (size_t i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].kind != PLAN_READ) {
            buf_puts(b, " ");
            put_text(b, p->inputs[i].target);
        }
    buf_puts(b, "; all of it is gone afterwards, except exports\n");
}

static void put_limits(struct buf *b, const struct plan *p) {
    for (size_t i = 0; i < PLAN_LIMIT_N; i++) {
        char text[32];
        put_label(b, i ? "" : "limits");
        buf_printf(b, "%-10s %s %s%s\n", plan_limit_names[i], plan_limit_text(text, i, p->limits[i]),
                   limit_words[i].meaning, p->degrade_limit[i] ? " (may be missing on this host)" : "");
    }
}

static void put_exports(struct buf *b, const struct plan *p) {
    if (p->n_exports == 0) {
        put_label(b, "exports");
        buf_puts(b, "nothing\n");
    }
    for (size_t i = 0; i < p->n_exports; i++) {
        const struct plan_export *e = &p->exports[i];
        char text[32];
        put_label(b, i ? "" : "exports");
        buf_printf(b, "%s: file ", e->name);
        put_text(b, e->path);
        buf_printf(b, ", at most %s%s%s\n", str_size(text, e->max), e->required ? ", required" : "",
                   e->executable ? ", may be executable" : "");
    }
}

static void put_walls(struct buf *b, const char *label, const bool *set) {
    bool any = false;
    for (size_t i = 0; i < PLAN_WALL_N; i++) {
        if (!set[i])
            continue;
        if (!any)
            put_label(b, label);
        buf_printf(b, "%s%s", any ? ", " : "", plan_wall_names[i]);
        any = true;
    }
    if (any)
        buf_puts(b, " (named by the policy; every other wall must hold)\n");
}

static void put_variables(struct buf *b, const struct plan *p) {
    put_label(b, "variables");
    for (size_t i = 0; p->env && p->env[i]; i++) {
        buf_puts(b, i ? " " : "");
        str_put_safe(b, p->env[i], strcspn(p->env[i], "="));
    }
    buf_puts(b, "\n");
}

int plan_print_reach(const struct plan *p, struct buf *b) {
    put_label(b, "runs");
    for (size_t i = 0; p->argv && p->argv[i]; i++)
        buf_puts(b, i ? " " : ""), put_argument(b, p->argv[i]);
    buf_puts(b, "\n");
    put_label(b, "as");
    buf_printf(b, "%s in ", plan_user_names[p->user]);
    put_text(b, p->workdir);
    buf_printf(b, "%s%s\n", p->terminal ? ", with a terminal of its own" : "",
               p->input ? ", with doorward's standard input" : "");
    put_inputs(b, p);
    put_writable(b, p);
    put_label(b, "network");
    buf_puts(b, "none\n");
    put_variables(b, p);
    return b->failed ? -ENOMEM : 0;
}

int plan_print(const struct plan *p, struct buf *b) {
    buf_printf(b, "step %s of %s\n", p->step, p->task);
    plan_print_reach(p, b);
    put_limits(b, p);
    put_exports(b, p);
    put_walls(b, "degraded", p->degrade_wall);
    put_walls(b, "LEFT OUT", p->lab_off);
    return b->failed ? -ENOMEM : 0;
}
