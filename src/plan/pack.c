/* pack.c: a plan as bytes for the launcher and back; see plan_pack in plan.h.
 *
 * Walks the same rows as encode.c: a member that stands there is packed too. Numbers in native byte order, a text as its
 * length and its bytes, a list as its count and its members.
 * runs in: controller, launcher (untrusted input: none; the launcher still reads it as if it were) */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "plan/fields.h"
#include "plan/plan.h"

#define PACK_MAGIC 0x4c505744u /* "DWPL" */
enum { STRINGS_MAX = 1 << 20 };

static_assert(PLAN_WALL_N <= 32 && PLAN_LIMIT_N <= 32, "a set is one word of bits");

struct reader {
    const char *bytes;
    size_t n, at;
    bool broken;
};

/* -- out -- */

static void put_u32(struct buf *out, uint32_t v) {
    buf_put(out, &v, sizeof(v));
}

static void put_u64(struct buf *out, uint64_t v) {
    buf_put(out, &v, sizeof(v));
}

static void put_text(struct buf *out, const char *s) {
    size_t n = s ? strlen(s) : 0;
    put_u32(out, (uint32_t)n);
    buf_put(out, s, n);
}

static void put_field(const struct field *f, const void *at, struct buf *out) {
    char *const *v = f->type == FIELD_STRINGS ? *(char **const *)at : NULL;
    if (f->type == FIELD_STRING) {
        put_text(out, *(char *const *)at);
    } else if (f->type == FIELD_STRINGS) {
        put_u32(out, (uint32_t)strv_count(v));
        for (size_t i = 0; v && v[i]; i++)
            put_text(out, v[i]);
    } else if (f->type == FIELD_U64) {
        put_u64(out, *(const uint64_t *)at);
    } else {
        put_u32(out, f->type == FIELD_BOOL ? *(const bool *)at : *(const unsigned *)at);
    }
}

static void put_fields(const struct field *fields, const void *object, struct buf *out) {
    for (const struct field *f = fields; f->name; f++)
        put_field(f, field_of(f, object), out);
}

static void put_set(const bool *set, size_t n, struct buf *out) {
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= (uint32_t)set[i] << i;
    put_u32(out, bits);
}

int plan_pack(const struct plan *p, struct buf *out) {
    put_u32(out, PACK_MAGIC);
    put_u32(out, PLAN_VERSION);
    put_fields(plan_fields, p, out);
    put_u32(out, (uint32_t)p->n_inputs);
    for (size_t i = 0; i < p->n_inputs; i++)
        put_fields(plan_input_fields, &p->inputs[i], out);
    put_u32(out, (uint32_t)p->n_exports);
    for (size_t i = 0; i < p->n_exports; i++)
        put_fields(plan_export_fields, &p->exports[i], out);
    buf_put(out, p->limits, sizeof(p->limits));
    put_set(p->degrade_wall, PLAN_WALL_N, out);
    put_set(p->degrade_limit, PLAN_LIMIT_N, out);
    put_set(p->lab_off, PLAN_WALL_N, out);
    put_set(p->lab_limit_off, PLAN_LIMIT_N, out);
    return out->failed ? -ENOMEM : 0;
}

/* -- in -- */

static const char *take(struct reader *r, size_t n) {
    if (r->broken || n > r->n - r->at) {
        r->broken = true;
        return NULL;
    }
    const char *p = r->bytes + r->at;
    r->at += n;
    return p;
}

static uint32_t get_u32(struct reader *r) {
    uint32_t v = 0;
    const char *p = take(r, sizeof(v));
    if (p)
        memcpy(&v, p, sizeof(v));
    return v;
}

static uint64_t get_u64(struct reader *r) {
    uint64_t v = 0;
    const char *p = take(r, sizeof(v));
    if (p)
        memcpy(&v, p, sizeof(v));
    return v;
}

/* An owned text; NULL breaks the reader. */
static char *get_text(struct reader *r) {
    uint32_t n = get_u32(r);
    const char *p = take(r, n);
    char *s = p && !memchr(p, 0, n) ? strndup(p, n) : NULL;
    if (!s)
        r->broken = true;
    return s;
}

static char **get_texts(struct reader *r) {
    _cleanup_strv_ char **v = NULL;
    uint32_t n = get_u32(r);
    if (n > STRINGS_MAX)
        r->broken = true;
    for (uint32_t i = 0; i < n && !r->broken; i++) {
        _cleanup_free_ char *s = get_text(r);
        if (s && strv_add(&v, s) < 0)
            r->broken = true;
    }
    return TAKE_PTR(v);
}

static void get_field(const struct field *f, void *at, struct reader *r) {
    if (f->type == FIELD_STRING) {
        *(char **)at = get_text(r);
    } else if (f->type == FIELD_STRINGS) {
        *(char ***)at = get_texts(r);
    } else if (f->type == FIELD_U64) {
        *(uint64_t *)at = get_u64(r);
    } else {
        uint32_t v = get_u32(r);
        if (v >= (f->type == FIELD_BOOL ? 2 : f->n_words))
            r->broken = true;
        else if (f->type == FIELD_BOOL)
            *(bool *)at = v;
        else
            *(unsigned *)at = v;
    }
}

static void get_fields(const struct field *fields, void *object, struct reader *r) {
    for (const struct field *f = fields; f->name && !r->broken; f++)
        get_field(f, field_of(f, object), r);
}

static void get_list(const struct field *fields, size_t size, size_t most, void **ret, size_t *ret_n,
                     struct reader *r) {
    uint32_t n = get_u32(r);
    if (n > most || r->broken) {
        r->broken = true;
        return;
    }
    if (n == 0)
        return;
    if (!(*ret = calloc(n, size))) {
        r->broken = true;
        return;
    }
    *ret_n = n;
    for (uint32_t i = 0; i < n; i++)
        get_fields(fields, (char *)*ret + i * size, r);
}

static void get_set(bool *set, size_t n, struct reader *r) {
    uint32_t bits = get_u32(r);
    if (bits >> n)
        r->broken = true;
    for (size_t i = 0; i < n; i++)
        set[i] = bits >> i & 1;
}

int plan_unpack(const char *bytes, size_t n, struct plan *ret, struct error *err) {
    struct reader r = {bytes, n, 0, false};
    _cleanup_plan_ struct plan p = {0};
    if (get_u32(&r) != PACK_MAGIC || get_u32(&r) != PLAN_VERSION)
        return error_set(err, -EPROTO, "the packed plan is of another version of doorward: install all of it again");
    get_fields(plan_fields, &p, &r);
    get_list(plan_input_fields, sizeof(*p.inputs), PLAN_INPUTS_MAX, (void **)&p.inputs, &p.n_inputs, &r);
    get_list(plan_export_fields, sizeof(*p.exports), PLAN_EXPORTS_MAX, (void **)&p.exports, &p.n_exports, &r);
    for (size_t i = 0; i < PLAN_LIMIT_N; i++)
        p.limits[i] = get_u64(&r);
    get_set(p.degrade_wall, PLAN_WALL_N, &r);
    get_set(p.degrade_limit, PLAN_LIMIT_N, &r);
    get_set(p.lab_off, PLAN_WALL_N, &r);
    get_set(p.lab_limit_off, PLAN_LIMIT_N, &r);
    if (r.broken || r.at != r.n)
        return error_set(err, -EPROTO, "the packed plan is malformed");
    *ret = p;
    p = (struct plan){0};
    return 0;
}
