/* str.c: see str.h. runs in: all */
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Length of the well-formed sequence at s (at most n bytes), 0 when there is none. RFC 3629, section 4. */
static size_t sequence(const unsigned char *s, size_t n, uint32_t *ret) {
    if (s[0] < 0x80) {
        *ret = s[0];
        return 1;
    }
    size_t len = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;
    if (len == 0 || len > n)
        return 0;
    uint32_t c = s[0] & (0xff >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret = c;
    return len;
}

bool str_is_utf8(const char *bytes, size_t n, size_t *ret_at) {
    const unsigned char *s = (const unsigned char *)bytes;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = s[i] ? sequence(s + i, n - i, &c) : 0;
        if (len == 0) {
            if (ret_at)
                *ret_at = i;
            return false;
        }
        i += len;
    }
    return true;
}

/* Characters that move the cursor or reorder what is read: Unicode Standard Annex 9 (bidirectional controls). */
static bool harmful(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

int str_put_safe(struct buf *b, const char *bytes, size_t n) {
    const unsigned char *s = (const unsigned char *)bytes;
    for (size_t i = 0; i < n;) {
        uint32_t c = s[i];
        size_t len = sequence(s + i, n - i, &c);
        if (len == 0 || (len == 1 && harmful(c)))
            buf_printf(b, "\\x%02x", s[i]);
        else if (harmful(c))
            buf_printf(b, "\\u{%04x}", c);
        else
            buf_put(b, s + i, len);
        i += len ? len : 1;
    }
    return b->failed ? -ENOMEM : 0;
}

size_t str_boundary(const char *s, size_t n) {
    while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
        n--;
    return n;
}

const char *str_safe(char *to, size_t room, const char *s) {
    _cleanup_buf_ struct buf b = {0};
    str_put_safe(&b, s, strlen(s));
    snprintf(to, room, "%s", b.bytes ? b.bytes : "");
    if (b.n >= room && room > 3)
        memcpy(to + str_boundary(b.bytes, room - 4), "...", 4);
    return to;
}

int str_put_json(struct buf *b, const char *s) {
    buf_puts(b, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c < 0x20)
            buf_printf(b, "\\u%04x", c);
        else
            buf_put(b, s, 1);
    }
    return buf_puts(b, "\"");
}

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit size_units[] = {
    {"TiB", 1ULL << 40},
    {"GiB", 1ULL << 30},
    {"MiB", 1ULL << 20},
    {"KiB", 1ULL << 10},
    {"TB", 1000000000000ULL},
    {"GB", 1000000000},
    {"MB", 1000000},
    {"kB", 1000},
    {"KB", 1000},
    {"B", 1},
    {"", 1},
};
static const struct unit duration_units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
static const struct unit count_units[] = {{"M", 1000000}, {"k", 1000}, {"", 1}};

static int parse_unit(const char *s, const struct unit *units, size_t n_units, uint64_t *ret) {
    uint64_t v = 0;
    size_t i = 0;
    for (; s[i] >= '0' && s[i] <= '9'; i++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v))
            return -ERANGE;
    if (i == 0)
        return -EINVAL;
    for (size_t u = 0; u < n_units; u++) {
        if (strcmp(s + i, units[u].name) != 0)
            continue;
        if (__builtin_mul_overflow(v, units[u].factor, &v) || v > INT64_MAX)
            return -ERANGE;
        *ret = v;
        return 0;
    }
    return -EINVAL;
}

int str_parse_size(const char *s, uint64_t *ret) {
    return parse_unit(s, size_units, ELEMENTS(size_units), ret);
}

int str_parse_duration(const char *s, uint64_t *ret) {
    return parse_unit(s, duration_units, ELEMENTS(duration_units), ret);
}

int str_parse_count(const char *s, uint64_t *ret) {
    return parse_unit(s, count_units, ELEMENTS(count_units), ret);
}

/* The unit that divides `v` exactly with the smallest figure in front. */
static const char *shortest(char to[32], uint64_t v, const struct unit *units, size_t n_units, const char *plain) {
    const struct unit *best = NULL;
    for (size_t u = 0; u < n_units; u++)
        if (v && units[u].factor > 1 && v % units[u].factor == 0 && (!best || units[u].factor > best->factor))
            best = &units[u];
    snprintf(to, 32, "%llu%s", (unsigned long long)(best ? v / best->factor : v), best ? best->name : plain);
    return to;
}

const char *str_size(char to[32], uint64_t bytes) {
    return shortest(to, bytes, size_units, ELEMENTS(size_units) - 2, "B");
}

const char *str_duration(char to[32], uint64_t ms) {
    return shortest(to, ms, duration_units, ELEMENTS(duration_units), "ms");
}

void strv_free(char **v) {
    for (size_t i = 0; v && v[i]; i++)
        free(v[i]);
    free(v);
}

size_t strv_count(char *const *v) {
    size_t n = 0;
    while (v && v[n])
        n++;
    return n;
}

int strv_add(char ***v, const char *s) {
    size_t n = strv_count(*v);
    char *copy = strdup(s);
    char **more = copy ? realloc(*v, sizeof(char *) * (n + 2)) : NULL; /* whoever made the list, of whatever room */
    if (!copy || !more) {
        free(copy);
        return -ENOMEM;
    }
    *v = more;
    more[n] = copy;
    more[n + 1] = NULL;
    return 0;
}

char **strv_new(size_t n) {
    size_t room = 2;
    while (room < n + 1)
        room *= 2; /* what strv_add would have grown it to */
    return calloc(room, sizeof(char *));
}

int strv_copy(char *const *v, char ***ret) {
    size_t n = strv_count(v);
    _cleanup_strv_ char **copy = n ? strv_new(n) : NULL;
    if (n && !copy)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (!(copy[i] = strdup(v[i])))
            return -ENOMEM;
    *ret = TAKE_PTR(copy);
    return 0;
}

bool strv_contains(char *const *v, const char *s) {
    for (size_t i = 0; v && v[i]; i++)
        if (!strcmp(v[i], s))
            return true;
    return false;
}

/* Levenshtein distance of words up to 32 bytes. */
static size_t distance(const char *a, const char *b) {
    size_t row[33], na = strlen(a), nb = strlen(b);
    if (na > 32 || nb > 32)
        return 99;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            size_t step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < step ? change : step;
        }
    }
    return row[nb];
}

const char *str_near(const char *s, const char *const *words) {
    const char *best = NULL;
    size_t least = strlen(s) / 3 + 1;
    for (size_t i = 0; words[i]; i++) {
        size_t d = distance(s, words[i]);
        if (d <= least && (!best || d < distance(s, best)))
            best = words[i];
    }
    return best;
}
