/* str.h: text. Strings of doorward are UTF-8 without NUL; what is shown to a person is
 * neutralised first. runs in: all */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* True when the `n` bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong
 * forms, at most U+10FFFF) without NUL. On false *ret_at (may be NULL) is the offset of the first bad byte. */
bool str_is_utf8(const char *bytes, size_t n, size_t *ret_at);

/* Appends `s` so that it is harmless on a terminal and stays on one line: control
 * bytes (C0, DEL, C1), bidirectional marks and bytes that are not UTF-8 become \xNN or \u{NNNN}. */
int str_put_safe(struct buf *b, const char *s, size_t n);

/* The same into a fixed buffer, cut with "..." when it does not fit; returns `to`. */
const char *str_safe(char *to, size_t room, const char *s);

/* The largest offset up to `n` at which UTF-8 text can be cut without dividing a character. */
size_t str_boundary(const char *s, size_t n);

/* Appends `s` (UTF-8) as a JSON string with its quotes (RFC 8259, section 7), where a whole JSON library is too much. */
int str_put_json(struct buf *b, const char *s);

/* Sizes: "512", "64KiB" "1MiB" "2GiB" "1TiB" (binary) or "500kB" "500KB" "20MB" "2GB" "1TB"
 * (decimal), no sign, no fraction. -EINVAL, or -ERANGE past 2^63-1. */
int str_parse_size(const char *s, uint64_t *ret_bytes);

/* Durations: "500ms" "90s" "20m" "2h" "1d". Milliseconds. -EINVAL or -ERANGE. */
int str_parse_duration(const char *s, uint64_t *ret_ms);

/* Counts: "200", "2k", "2M" (decimal). -EINVAL or -ERANGE. */
int str_parse_count(const char *s, uint64_t *ret);

/* The shortest exact form of a size ("2GiB", "10MB", "1234B"), a duration ("30m", "1500ms"). Returns `to`. */
const char *str_size(char to[32], uint64_t bytes);
const char *str_duration(char to[32], uint64_t ms);

/* NULL-terminated arrays of owned strings. strv_free accepts NULL. */
void strv_free(char **v);
static inline void strv_freep(char ***v) {
    strv_free(*v);
    *v = NULL;
}
#define _cleanup_strv_ _cleanup_(strv_freep)
size_t strv_count(char *const *v);
/* Appends a copy of `s`. 0 or -ENOMEM. */
int strv_add(char ***v, const char *s);
/* A zeroed array for `n` strings, to which strv_add may append later; NULL when out of memory. Arrays allocated in any
 * other way must not be given to strv_add. */
char **strv_new(size_t n);
/* A copy of the whole array, NULL for an empty one. 0 or -ENOMEM. Linear, where repeated strv_add counts each time. */
int strv_copy(char *const *v, char ***ret);
bool strv_contains(char *const *v, const char *s);

/* The word of `words` (NULL-terminated) nearest to `s` by edit distance, when near enough to be a slip; else NULL. */
const char *str_near(const char *s, const char *const *words);
