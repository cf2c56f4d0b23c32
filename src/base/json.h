/* json.h: JSON in and out, over jansson.
 *
 * Canonical form: keys sorted, no white space, UTF-8. A digest is always taken of that.
 * Readers are told the path of what they read, so that an error can name it.
 * runs in: all but init and the probes */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define _cleanup_json_ _cleanup_(json_decrefp)

#define JSON_DEPTH_MAX 64

/* True when values are nested deeper than `depth` (an empty array at the top has depth 0). */
bool json_deeper_than(const json_t *j, int depth);

/* Parses `n` bytes; duplicate keys, trailing bytes and depth past JSON_DEPTH_MAX are errors. The caller owns *ret. */
int json_read(const char *bytes, size_t n, json_t **ret, struct error *err);

/* The canonical text (owned by the caller), or NULL when memory ran out. */
char *json_canonical(const json_t *j);

/* Typed readers of an object's member. `path` names the object in messages ("plan.limits").
 * A missing or mistyped member is -EINVAL. Strings stay owned by the object. */
int json_get_string(const json_t *object, const char *path, const char *key, const char **ret, struct error *err);
int json_get_u64(const json_t *object, const char *path, const char *key, uint64_t *ret, struct error *err);
int json_get_bool(const json_t *object, const char *path, const char *key, bool *ret, struct error *err);
int json_get_array(const json_t *object, const char *path, const char *key, json_t **ret, struct error *err);
int json_get_object(const json_t *object, const char *path, const char *key, json_t **ret, struct error *err);
/* An array of strings as an owned strv (NULL for an empty one). */
int json_get_strv(const json_t *object, const char *path, const char *key, char ***ret, struct error *err);
/* -EINVAL with the name when the object has a member that `known` (NULL-terminated) does not list. */
int json_only(const json_t *object, const char *path, const char *const *known, struct error *err);
