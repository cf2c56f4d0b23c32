/* json.c: see json.h. runs in: all but init and the probes */
#include "base/json.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

/* jansson's own limit on nesting is 2048; ours keeps every recursive reader shallow. */
bool json_deeper_than(const json_t *j, int depth) {
    const char *key;
    json_t *value;
    size_t i;
    if (depth < 0)
        return true;
    if (json_is_object(j))
        json_object_foreach((json_t *)j, key, value) if (json_deeper_than(value, depth - 1)) return true;
    if (json_is_array(j))
        json_array_foreach(j, i, value) if (json_deeper_than(value, depth - 1)) return true;
    return false;
}

int json_read(const char *bytes, size_t n, json_t **ret, struct error *err) {
    json_error_t e;
    _cleanup_json_ json_t *j = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &e);
    char safe[200]; /* the parser repeats what it stumbled over */
    if (!j)
        return error_set(err, -EINVAL, "line %d, column %d: not JSON: %s", e.line, e.column,
                         str_safe(safe, sizeof(safe), e.text));
    if (json_deeper_than(j, JSON_DEPTH_MAX))
        return error_set(err, -EINVAL, "JSON is nested deeper than %d", JSON_DEPTH_MAX);
    *ret = TAKE_PTR(j);
    return 0;
}

char *json_canonical(const json_t *j) {
    return json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
}

static int member(const json_t *object, const char *path, const char *key, json_type type, const char *what,
                  json_t **ret, struct error *err) {
    json_t *v = json_object_get(object, key);
    if (!v)
        return error_set(err, -EINVAL, "%s.%s is missing", path, key);
    bool fits = type == JSON_TRUE ? json_is_boolean(v) : json_typeof(v) == type;
    if (!fits)
        return error_set(err, -EINVAL, "%s.%s must be %s", path, key, what);
    *ret = v;
    return 0;
}

int json_get_string(const json_t *object, const char *path, const char *key, const char **ret, struct error *err) {
    json_t *v = NULL;
    int r = member(object, path, key, JSON_STRING, "a string", &v, err);
    if (r == 0)
        *ret = json_string_value(v);
    return r;
}

int json_get_u64(const json_t *object, const char *path, const char *key, uint64_t *ret, struct error *err) {
    json_t *v = NULL;
    int r = member(object, path, key, JSON_INTEGER, "a whole number", &v, err);
    if (r < 0)
        return r;
    if (json_integer_value(v) < 0)
        return error_set(err, -EINVAL, "%s.%s must not be negative", path, key);
    *ret = (uint64_t)json_integer_value(v);
    return 0;
}

int json_get_bool(const json_t *object, const char *path, const char *key, bool *ret, struct error *err) {
    json_t *v = NULL;
    int r = member(object, path, key, JSON_TRUE, "true or false", &v, err);
    if (r == 0)
        *ret = json_is_true(v);
    return r;
}

int json_get_array(const json_t *object, const char *path, const char *key, json_t **ret, struct error *err) {
    return member(object, path, key, JSON_ARRAY, "an array", ret, err);
}

int json_get_object(const json_t *object, const char *path, const char *key, json_t **ret, struct error *err) {
    return member(object, path, key, JSON_OBJECT, "an object", ret, err);
}

int json_get_strv(const json_t *object, const char *path, const char *key, char ***ret, struct error *err) {
    _cleanup_strv_ char **v = NULL;
    json_t *array, *item;
    size_t i;
    int r = json_get_array(object, path, key, &array, err);
    if (r < 0)
        return r;
    v = strv_new(json_array_size(array));
    if (!v)
        return error_set(err, -ENOMEM, "out of memory");
    json_array_foreach(array, i, item) {
        if (!json_is_string(item))
            return error_set(err, -EINVAL, "%s.%s[%zu] must be a string", path, key, i);
        if (!(v[i] = strdup(json_string_value(item))))
            return error_set(err, -ENOMEM, "out of memory");
    }
    if (!v[0])
        strv_freep(&v);
    *ret = TAKE_PTR(v);
    return 0;
}

int json_only(const json_t *object, const char *path, const char *const *known, struct error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        bool found = false;
        for (size_t i = 0; known[i] && !found; i++)
            found = !strcmp(known[i], key);
        if (!found)
            return error_set(err, -EINVAL, "%s.%s is not known", path, key);
    }
    return 0;
}
