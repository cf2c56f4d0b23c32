/* encode.c: a plan as canonical JSON and back; see plan.h.
 *
 * The flat members are rows of a table (fields.c); only the lists of inputs, limits, exports and walls have code.
 * runs in: controller, launcher, cli (untrusted input: none; the launcher still reads a plan as if it were) */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "plan/fields.h"
#include "plan/plan.h"

/* -- out: a NULL anywhere means memory ran out, and travels up -- */

static json_t *put_string(const struct field *f, const void *at) {
    const char *s = *(char *const *)at;
    return json_string(s ? s : "");
}

static json_t *put_strings(const struct field *f, const void *at) {
    char *const *v = *(char **const *)at;
    json_t *array = json_array();
    for (size_t i = 0; array && v && v[i]; i++)
        if (json_array_append_new(array, json_string(v[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *put_bool(const struct field *f, const void *at) {
    return json_boolean(*(const bool *)at);
}

static json_t *put_u64(const struct field *f, const void *at) {
    return json_integer((json_int_t) * (const uint64_t *)at);
}

static json_t *put_word(const struct field *f, const void *at) {
    unsigned word = *(const unsigned *)at;
    return word < f->n_words ? json_string(f->words[word]) : json_null();
}

/* -- in -- */

static int get_string(const json_t *o, const char *path, const struct field *f, void *at, struct error *err) {
    const char *s;
    int r = json_get_string(o, path, f->name, &s, err);
    if (r < 0)
        return r;
    char *copy = strdup(s);
    if (!copy)
        return error_set(err, -ENOMEM, "out of memory");
    *(char **)at = copy;
    return 0;
}

static int get_strings(const json_t *o, const char *path, const struct field *f, void *at, struct error *err) {
    return json_get_strv(o, path, f->name, at, err);
}

static int get_bool(const json_t *o, const char *path, const struct field *f, void *at, struct error *err) {
    return json_get_bool(o, path, f->name, at, err);
}

static int get_u64(const json_t *o, const char *path, const struct field *f, void *at, struct error *err) {
    return json_get_u64(o, path, f->name, at, err);
}

static int get_word(const json_t *o, const char *path, const struct field *f, void *at, struct error *err) {
    const char *s;
    int r = json_get_string(o, path, f->name, &s, err);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < f->n_words; i++)
        if (!strcmp(f->words[i], s)) {
            *(unsigned *)at = i;
            return 0;
        }
    char shown[80];
    return error_set(err, -EINVAL, "%s.%s: \"%s\" is not known", path, f->name, str_safe(shown, sizeof(shown), s));
}

static const struct {
    json_t *(*put)(const struct field *f, const void *at);
    int (*get)(const json_t *o, const char *path, const struct field *f, void *at, struct error *err);
} field_ops[] = {
    [FIELD_STRING] = {put_string, get_string}, [FIELD_STRINGS] = {put_strings, get_strings},
    [FIELD_BOOL] = {put_bool, get_bool},       [FIELD_U64] = {put_u64, get_u64},
    [FIELD_WORD] = {put_word, get_word},
};
static_assert(ELEMENTS(field_ops) == FIELD_TYPE_N, "a reader and a writer per type");

static json_t *put_fields(const struct field *fields, const void *object) {
    json_t *o = json_object();
    for (const struct field *f = fields; o && f->name; f++)
        if (json_object_set_new(o, f->name, field_ops[f->type].put(f, field_of(f, object))) < 0) {
            json_decref(o);
            return NULL;
        }
    return o;
}

static json_t *put_list(const struct field *fields, const void *objects, size_t n, size_t size) {
    json_t *array = json_array();
    for (size_t i = 0; array && i < n; i++)
        if (json_array_append_new(array, put_fields(fields, (const char *)objects + i * size)) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

/* The words whose flag is set. */
static json_t *put_set(const bool *set, const char *const *words, size_t n) {
    json_t *array = json_array();
    for (size_t i = 0; array && i < n; i++)
        if (set[i] && json_array_append_new(array, json_string(words[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *put_sets(const bool *walls, const bool *limits) {
    return json_pack("{s:o, s:o}", "walls", put_set(walls, plan_wall_names, PLAN_WALL_N), "limits",
                     put_set(limits, plan_limit_names, PLAN_LIMIT_N));
}

static json_t *put_limits(const uint64_t *limits) {
    json_t *o = json_object();
    for (size_t i = 0; o && i < PLAN_LIMIT_N; i++)
        if (json_object_set_new(o, plan_limit_names[i], json_integer((json_int_t)limits[i])) < 0) {
            json_decref(o);
            return NULL;
        }
    return o;
}

char *plan_encode(const struct plan *p) {
    _cleanup_json_ json_t *o = put_fields(plan_fields, p);
    if (!o)
        return NULL;
    const struct {
        const char *name;
        json_t *value;
    } rest[] = {
        {"version", json_integer(PLAN_VERSION)},
        {"inputs", put_list(plan_input_fields, p->inputs, p->n_inputs, sizeof(*p->inputs))},
        {"exports", put_list(plan_export_fields, p->exports, p->n_exports, sizeof(*p->exports))},
        {"limits", put_limits(p->limits)},
        {"degrade", put_sets(p->degrade_wall, p->degrade_limit)},
        {"lab", put_sets(p->lab_off, p->lab_limit_off)},
    };
    int failed = 0;
    for (size_t i = 0; i < ELEMENTS(rest); i++) /* each value is given away, also after a failure */
        failed |= json_object_set_new(o, rest[i].name, rest[i].value) < 0;
    return failed ? NULL : json_canonical(o);
}

int plan_digest(const struct plan *p, char ret[DIGEST_HEX]) {
    _cleanup_free_ char *text = plan_encode(p);
    if (!text)
        return -ENOMEM;
    digest_hex(text, strlen(text), ret);
    return 0;
}

/* Refuses members that neither the table nor `more` names. */
static int only(const json_t *o, const char *path, const struct field *fields, const char *const *more,
                struct error *err) {
    const char *known[32];
    size_t n = 0;
    for (const struct field *f = fields; f->name; f++)
        known[n++] = f->name;
    for (size_t i = 0; more && more[i]; i++)
        known[n++] = more[i];
    known[n] = NULL;
    return json_only(o, path, known, err);
}

static int get_fields(const json_t *o, const char *path, const struct field *fields, void *object, struct error *err) {
    int r = 0;
    for (const struct field *f = fields; f->name && r == 0; f++)
        r = field_ops[f->type].get(o, path, f, field_of(f, object), err);
    return r;
}

static int get_list(const json_t *o, const char *key, const struct field *fields, size_t size, size_t most, void **ret,
                    size_t *ret_n, struct error *err) {
    json_t *array;
    int r = json_get_array(o, "plan", key, &array, err);
    if (r < 0)
        return r;
    size_t n = json_array_size(array);
    if (n > most)
        return error_set(err, -EINVAL, "plan.%s has %zu entries, more than %zu", key, n, most);
    if (n == 0)
        return 0;
    if (!(*ret = calloc(n, size)))
        return error_set(err, -ENOMEM, "out of memory");
    *ret_n = n;
    for (size_t i = 0; i < n && r == 0; i++) {
        char path[64];
        const json_t *item = json_array_get(array, i);
        snprintf(path, sizeof(path), "plan.%s[%zu]", key, i);
        if (!json_is_object(item))
            return error_set(err, -EINVAL, "%s must be an object", path);
        r = only(item, path, fields, NULL, err);
        if (r == 0)
            r = get_fields(item, path, fields, (char *)*ret + i * size, err);
    }
    return r;
}

static int get_set(const json_t *o, const char *path, const char *key, const char *const *words, size_t n, bool *set,
                   struct error *err) {
    _cleanup_strv_ char **v = NULL;
    int r = json_get_strv(o, path, key, &v, err);
    for (size_t i = 0; r == 0 && v && v[i]; i++) {
        size_t w = 0;
        while (w < n && strcmp(words[w], v[i]) != 0)
            w++;
        char shown[80];
        if (w == n || set[w])
            return error_set(err, -EINVAL, "%s.%s: \"%s\" is %s", path, key, str_safe(shown, sizeof(shown), v[i]),
                             w == n ? "not known" : "there twice");
        set[w] = true;
    }
    return r;
}

static int get_sets(const json_t *o, const char *key, bool *walls, bool *limits, struct error *err) {
    static const char *const known[] = {"walls", "limits", NULL};
    char path[32];
    json_t *sets;
    snprintf(path, sizeof(path), "plan.%s", key);
    int r = json_get_object(o, "plan", key, &sets, err);
    if (r == 0)
        r = json_only(sets, path, known, err);
    if (r == 0)
        r = get_set(sets, path, "walls", plan_wall_names, PLAN_WALL_N, walls, err);
    if (r == 0)
        r = get_set(sets, path, "limits", plan_limit_names, PLAN_LIMIT_N, limits, err);
    return r;
}

static int get_limits(const json_t *o, uint64_t *limits, struct error *err) {
    json_t *object;
    int r = json_get_object(o, "plan", "limits", &object, err);
    for (size_t i = 0; i < PLAN_LIMIT_N && r == 0; i++)
        r = json_get_u64(object, "plan.limits", plan_limit_names[i], &limits[i], err);
    if (r == 0 && json_object_size(object) != PLAN_LIMIT_N)
        r = error_set(err, -EINVAL, "plan.limits has a member that is not known");
    return r;
}

static int get_version(const json_t *o, struct error *err) {
    static const char *const known[] = {"version", "inputs", "exports", "limits", "degrade", "lab", NULL};
    uint64_t version = 0;
    int r = json_is_object(o) ? json_get_u64(o, "plan", "version", &version, err)
                              : error_set(err, -EINVAL, "the plan must be an object");
    if (r == 0 && version != PLAN_VERSION)
        r = error_set(err, -EINVAL, "plan.version is %llu, this doorward knows %d", (unsigned long long)version,
                      PLAN_VERSION);
    return r < 0 ? r : only(o, "plan", plan_fields, known, err);
}

static int get_plan(const json_t *o, struct plan *p, struct error *err) {
    int r = get_version(o, err);
    if (r == 0)
        r = get_fields(o, "plan", plan_fields, p, err);
    if (r == 0)
        r = get_list(o, "inputs", plan_input_fields, sizeof(*p->inputs), PLAN_INPUTS_MAX, (void **)&p->inputs,
                     &p->n_inputs, err);
    if (r == 0)
        r = get_list(o, "exports", plan_export_fields, sizeof(*p->exports), PLAN_EXPORTS_MAX, (void **)&p->exports,
                     &p->n_exports, err);
    if (r == 0)
        r = get_limits(o, p->limits, err);
    if (r == 0)
        r = get_sets(o, "degrade", p->degrade_wall, p->degrade_limit, err);
    if (r == 0)
        r = get_sets(o, "lab", p->lab_off, p->lab_limit_off, err);
    return r < 0 ? r : plan_check(p, err);
}

int plan_decode(const char *bytes, size_t n, struct plan *ret, struct error *err) {
    _cleanup_json_ json_t *o = NULL;
    _cleanup_plan_ struct plan p = {0};
    if (n > PLAN_ENCODED_MAX)
        return error_set(err, -EFBIG, "the plan has %zu bytes, more than %u", n, PLAN_ENCODED_MAX);
    int r = json_read(bytes, n, &o, err);
    if (r == 0)
        r = get_plan(o, &p, err);
    if (r < 0)
        return r;
    *ret = p;
    p = (struct plan){0};
    return 0;
}
