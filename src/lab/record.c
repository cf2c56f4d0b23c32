/* record.c: the record of a lab run: JSON, a table for the terminal, a table for docs. See lab.h. runs in: cli */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/str.h"
#include "lab/lab.h"

const char *lab_walls_text(char to[64], const struct lab_row *row) {
    size_t n = 0;
    to[0] = '\0';
    for (int w = 0; w < PLAN_WALL_N; w++)
        if (row->off >> w & 1)
            n += (size_t)snprintf(to + n, 64 - n, "%s%s", n ? "+" : "", plan_wall_names[w]);
    if (row->limit != LAB_NO_LIMIT)
        snprintf(to + n, 64 - n, "%s%s", n ? "+" : "", plan_limit_names[row->limit]);
    if (!to[0])
        snprintf(to, 64, "-");
    return to;
}

static json_t *attempt_json(const struct lab_row *row, const struct lab_attempt *a, bool outside) {
    if (!a->done)
        return json_null();
    char detail[500];
    return json_pack("{s:s s:i s:s s:s s:i s:b s:b s:b s:i s:I}", "result",
                     lab_result_names[lab_attempt_result(row, a, outside)], "errno", a->err, "detail",
                     str_safe(detail, sizeof(detail), a->detail), "stop", a->stop, "exit", a->exit, "hung", a->hung,
                     "heard", a->heard, "changed", a->changed, "lingering", a->lingering, "ms", (json_int_t)a->ms);
}

static json_t *row_json(const struct lab_row *row) {
    char walls[64];
    return json_pack("{s:s s:s s:s s:s s:s s:i}", "probe", row->name, "case", row->case_id, "kind",
                     lab_kind_names[row->kind], "walls", lab_walls_text(walls, row), "must", row->must, "deadline_ms",
                     (int)row->deadline_ms);
}

static json_t *outcome_json(const struct lab_outcome *o) {
    char why[600];
    json_t *j = row_json(o->row);
    uint64_t ms = o->before.ms + o->inside.ms + o->after.ms + o->off.ms;
    if (!j)
        return NULL;
    json_object_set_new(j, "verdict", json_string(lab_verdict_names[o->verdict]));
    json_object_set_new(j, "why", json_string(str_safe(why, sizeof(why), o->why)));
    json_object_set_new(j, "ms", json_integer((json_int_t)ms));
    json_object_set_new(j, "control_before", attempt_json(o->row, &o->before, true));
    json_object_set_new(j, "inside", attempt_json(o->row, &o->inside, false));
    json_object_set_new(j, "control_after", attempt_json(o->row, &o->after, true));
    json_object_set_new(j, "without_wall", attempt_json(o->row, &o->off, false));
    return j;
}

static json_t *counts_json(const struct lab_outcome *o, size_t n) {
    struct lab_counts c = lab_count(o, n);
    json_t *j = json_object();
    for (int v = 0; v < LAB_VERDICT_N; v++)
        json_object_set_new(j, lab_verdict_names[v], json_integer(c.of[v]));
    json_object_set_new(j, "all_held", json_boolean(lab_all_held(&c)));
    return j;
}

static void put_known(json_t *j, const char *key, const char *value) {
    if (value)
        json_object_set_new(j, key, json_string(value));
}

json_t *lab_record(const struct lab_head *head, const struct lab_outcome *o, size_t n) {
    struct utsname u = {0};
    uname(&u);
    json_t *results = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(results, outcome_json(&o[i]));
    json_t *j =
        json_pack("{s:i s:s s:s s:s s:s s:o s:o}", "version", 1, "kernel", u.release, "machine", u.machine, "runtime",
                  DOORWARD_VERSION, "mode", head->mode, "results", results, "summary", counts_json(o, n));
    if (!j)
        return NULL;
    put_known(j, "against", head->against);
    put_known(j, "task", head->task);
    put_known(j, "step", head->step);
    put_known(j, "policy_digest", head->policy_digest);
    put_known(j, "plan_digest", head->plan_digest);
    return j;
}

json_t *lab_list(void) {
    json_t *j = json_array();
    for (size_t i = 0; i < lab_n_rows; i++)
        json_array_append_new(j, row_json(&lab_rows[i]));
    return j;
}

/* "held EPERM", "open", "works", "-". */
static const char *cell(char to[48], const struct lab_row *row, const struct lab_attempt *a, bool outside) {
    if (!a->done)
        return "-";
    enum lab_result r = lab_attempt_result(row, a, outside);
    const char *name = r == LAB_HELD && a->err > 0 ? strerrorname_np(a->err) : NULL;
    if (row->kind == LAB_USABLE)
        return r == LAB_HELD ? "works" : r == LAB_OPEN ? "fails" : lab_result_names[r];
    if (r == LAB_HELD && !strncmp(a->stop, "limit:", 6))
        name = a->stop;
    snprintf(to, 48, "%s%s%s", lab_result_names[r], name ? " " : "", name ? name : "");
    return to;
}

void lab_put_line(struct buf *b, const struct lab_outcome *o) {
    if (!o) {
        buf_printf(b, "%-20s %-22s %-20s %s\n", "probe", "wall", "with wall", "without wall");
        return;
    }
    char walls[64], with[48], without[48];
    const char *mark = o->verdict == LAB_IS_HELD ? "" : lab_verdict_names[o->verdict];
    buf_printf(b, "%-20s %-22s %-20s %-14s%s", o->row->name,
               o->row->kind == LAB_WALL ? lab_walls_text(walls, o->row) : lab_kind_names[o->row->kind],
               cell(with, o->row, &o->inside, false), cell(without, o->row, &o->off, false), mark);
    if (o->verdict != LAB_IS_HELD) {
        buf_puts(b, ": ");
        str_put_safe(b, o->why, strlen(o->why));
    }
    while (b->n && b->bytes[b->n - 1] == ' ')
        b->bytes[--b->n] = '\0';
    buf_puts(b, "\n");
}

void lab_put_summary(struct buf *b, const struct lab_outcome *o, size_t n) {
    struct lab_counts c = lab_count(o, n);
    buf_printf(b, "%zu probes:", n);
    for (int v = 0; v < LAB_VERDICT_N; v++)
        if (c.of[v] || v == LAB_IS_HELD)
            buf_printf(b, " %u %s,", c.of[v], lab_verdict_names[v]);
    if (b->n)
        b->bytes[--b->n] = '\0';
    buf_puts(b, "\n");
}

/* A cell of a Markdown table: neutralised, and without the character that ends a cell. */
static void put_cell(struct buf *b, const char *s) {
    _cleanup_buf_ struct buf safe = {0};
    str_put_safe(&safe, s, strlen(s));
    for (size_t i = 0; i < safe.n; i++)
        buf_printf(b, safe.bytes[i] == '|' ? "\\%c" : "%c", safe.bytes[i]);
}

void lab_put_markdown(struct buf *b, const struct lab_head *head, const struct lab_outcome *o, size_t n) {
    struct utsname u = {0};
    uname(&u);
    /* Of the kernel only its version: what a builder appended to it says more of a machine than of the result. */
    buf_printf(b, "kernel %.*s, as %s, probes of doorward %s.\n\n", (int)strcspn(u.release, "-"), u.release,
               !strcmp(head->mode, "root") ? "root" : "an ordinary user", DOORWARD_VERSION);
    if (head->against) {
        buf_puts(b, "The sandbox: `");
        put_cell(b, head->against);
        buf_puts(b, "`\n\n");
    }
    buf_puts(b, "| probe | what must hold | case | result | what was seen |\n| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < n; i++) {
        buf_printf(b, "| %s | ", o[i].row->name);
        put_cell(b, o[i].row->must);
        const char *verdict = o[i].row->kind == LAB_USABLE && o[i].verdict == LAB_IS_HELD ? "works"
                              : o[i].row->kind == LAB_USABLE && o[i].verdict == LAB_IS_OPEN
                                  ? "**fails**"
                                  : lab_verdict_names[o[i].verdict];
        buf_printf(b, " | %s | %s%s%s | ", o[i].row->case_id,
                   o[i].verdict == LAB_IS_OPEN && verdict[0] != '*' ? "**" : "", verdict,
                   o[i].verdict == LAB_IS_OPEN && verdict[0] != '*' ? "**" : "");
        put_cell(b, o[i].why);
        buf_puts(b, " |\n");
    }
    buf_puts(b, "\n");
    lab_put_summary(b, o, n);
}
