/* ignore.c: gitignore(5) patterns; see ignore.h.
 *
 * Bytes are compared, as git does: "?" and a bracket match one byte. Matching remembers one "*" (which may grow
 * within its folder) and one "**" (which may grow across folders) to go back to. Nothing earlier can matter:
 * a later "**" can take whatever an earlier one could have taken, and a "*" never leaves its folder. So the
 * cost is bounded by pattern times path squared, whatever the pattern.
 * runs in: controller, launcher, cli (untrusted input: patterns of a policy, names of files; holds: nothing) */
#include "plan/ignore.h"

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

struct text {
    const char *bytes;
    size_t n;
};

/* -- brackets -- */

static int is_blank_byte(int c) {
    return c == ' ' || c == '\t';
}

/* POSIX classes in the C locale, whatever locale the process has: bytes past 127 are in none. */
static const struct {
    const char *name;
    int (*holds)(int c);
} classes[] = {
    {"alnum", isalnum}, {"alpha", isalpha}, {"blank", is_blank_byte}, {"cntrl", iscntrl},
    {"digit", isdigit}, {"graph", isgraph}, {"lower", islower},       {"print", isprint},
    {"punct", ispunct}, {"space", isspace}, {"upper", isupper},       {"xdigit", isxdigit},
};

/* Reads "[:name:]" at p[i]. Returns the bytes it takes; 0 when it is no class; SIZE_MAX when the bracket can match
 * nothing: the name is unknown or the bracket does not end. */
static size_t read_class(struct text p, size_t i, unsigned char c, bool *matched) {
    size_t end = i + 2;
    while (end < p.n && p.bytes[end] != ']')
        end++;
    if (end == p.n)
        return SIZE_MAX;
    if (end == i + 2 || p.bytes[end - 1] != ':')
        return 0;
    struct text name = {p.bytes + i + 2, end - i - 3};
    for (size_t k = 0; k < ELEMENTS(classes); k++)
        if (strlen(classes[k].name) == name.n && !memcmp(classes[k].name, name.bytes, name.n)) {
            if (c < 0x80 && classes[k].holds(c))
                *matched = true;
            return end + 1 - i;
        }
    return SIZE_MAX;
}

/* One element of a bracket: a class, an escaped or plain byte, or a range, at p[*i]; moves *i behind it.
 * False when the bracket can match nothing. */
static bool read_element(struct text p, size_t *i, unsigned char c, bool *matched) {
    if (p.bytes[*i] == '[' && *i + 1 < p.n && p.bytes[*i + 1] == ':') {
        size_t n = read_class(p, *i, c, matched);
        if (n == SIZE_MAX)
            return false;
        *i += n;
        if (n)
            return true;
    }
    if (p.bytes[*i] == '\\' && ++*i == p.n)
        return false;
    unsigned char low = (unsigned char)p.bytes[(*i)++], high = low;
    if (*i + 1 < p.n && p.bytes[*i] == '-' && p.bytes[*i + 1] != ']') {
        *i += 1;
        if (p.bytes[*i] == '\\' && ++*i == p.n)
            return false;
        high = (unsigned char)p.bytes[(*i)++];
    }
    /* A range always counts its first byte, also when it runs backwards ("[z-a]" holds "z"), as in git. */
    if (c == low || (c >= low && c <= high))
        *matched = true;
    return true;
}

/* Does the bracket that begins at p[i] match `c`? Returns the index behind it; 0 for no. */
static size_t match_bracket(struct text p, size_t i, unsigned char c) {
    bool matched = false;
    bool negated = ++i < p.n && (p.bytes[i] == '!' || p.bytes[i] == '^');
    i += negated;
    for (bool first = true;; first = false) { /* a "]" that comes first is a member */
        if (i >= p.n)
            return 0;
        if (p.bytes[i] == ']' && !first)
            break;
        if (!read_element(p, &i, c, &matched))
            return 0;
    }
    return matched != negated ? i + 1 : 0;
}

/* -- one pattern against one text -- */

/* Matches one byte of text with what stands at p[i], which is no star. Returns the index behind it; 0 for no. */
static size_t match_one(struct text p, size_t i, char c, bool paths) {
    bool slash = paths && c == '/';
    switch (p.bytes[i]) {
    case '?':
        return slash ? 0 : i + 1;
    case '[':
        return slash ? 0 : match_bracket(p, i, (unsigned char)c);
    case '\\':
        return i + 1 < p.n && p.bytes[i + 1] == c ? i + 2 : 0;
    default:
        return p.bytes[i] == c ? i + 1 : 0;
    }
}

struct star {
    bool set;
    size_t p, t; /* where to go on: pattern behind the stars, text not yet taken by them */
    bool fresh;  /* nothing was tried yet but that "**" and the "/" behind it stand for no folder at all */
};

/* Where does a run of stars at p[i] end, and may it cross folders? "**" does so when it stands between "/" or the
 * ends of the pattern; any other run is one "*". Without paths every star takes everything. */
static size_t read_stars(struct text p, size_t i, bool paths, bool *ret_across) {
    size_t end = i;
    while (end < p.n && p.bytes[end] == '*')
        end++;
    bool before = i == 0 || p.bytes[i - 1] == '/';
    bool after = end == p.n || p.bytes[end] == '/' || (end + 1 < p.n && !memcmp(p.bytes + end, "\\/", 2));
    *ret_across = !paths || (end - i > 1 && before && after);
    return end;
}

/* Lets the nearest star take one byte more. False when none can. */
static bool grow(struct star *one, struct star *across, struct text t) {
    if (one->set && one->t < t.n && t.bytes[one->t] != '/') {
        one->t++;
        return true;
    }
    one->set = false;
    if (!across->set || (across->t >= t.n && !across->fresh))
        return false;
    across->t += !across->fresh;
    across->fresh = false;
    return true;
}

static bool match(struct text p, struct text t, bool paths) {
    struct star one = {0}, across = {0};
    size_t i = 0, j = 0;
    for (;;) {
        if (i < p.n && p.bytes[i] == '*') {
            bool far;
            i = read_stars(p, i, paths, &far);
            struct star *s = far ? &across : &one;
            *s = (struct star){true, i, j, far && paths && i < p.n && p.bytes[i] == '/'};
            one.set = !far;
            i += s->fresh;
            continue;
        }
        if (i == p.n && j == t.n)
            return true;
        size_t next = i < p.n && j < t.n ? match_one(p, i, t.bytes[j], paths) : 0;
        if (next) {
            i = next;
            j++;
            continue;
        }
        if (!grow(&one, &across, t))
            return false;
        struct star *s = one.set ? &one : &across;
        i = s->p;
        j = s->t;
    }
}

/* -- one line of gitignore(5) -- */

struct pattern {
    struct text text;
    bool negated, folders_only, anchored;
};

/* Trailing spaces do not count unless a backslash stands before the first of them. */
static size_t without_spaces(const char *s) {
    size_t keep = 0;
    for (size_t i = 0; s[i]; i++) {
        if (s[i] == '\\' && s[i + 1])
            i++;
        else if (s[i] == ' ')
            continue;
        keep = i + 1;
    }
    return keep;
}

/* False for what matches nothing: comments, empty lines. */
static bool read_pattern(const char *line, struct pattern *ret) {
    struct pattern r = {0};
    struct text p = {line, without_spaces(line)};
    if (p.n == 0 || *p.bytes == '#')
        return false;
    if (*p.bytes == '!') {
        r.negated = true;
        p.bytes++;
        p.n--;
    }
    if (p.n && p.bytes[p.n - 1] == '/') {
        r.folders_only = true;
        p.n--;
    }
    r.anchored = memchr(p.bytes, '/', p.n) != NULL;
    if (p.n && *p.bytes == '/') {
        p.bytes++;
        p.n--;
    }
    r.text = p;
    *ret = r;
    return p.n > 0;
}

/* git compares what stands before the first special character on its own, so that "**" behind it counts as standing
 * at the start of a pattern: "a**" "/b" matches "ax/y/b". */
static bool match_path(struct text p, struct text path) {
    size_t n = 0;
    while (n < p.n && !strchr("*?[\\", p.bytes[n]))
        n++;
    if (n > path.n || memcmp(p.bytes, path.bytes, n) != 0)
        return false;
    return match((struct text){p.bytes + n, p.n - n}, (struct text){path.bytes + n, path.n - n}, true);
}

bool ignore_matches(char *const *patterns, const char *path, bool directory) {
    const char *slash = strrchr(path, '/');
    struct text whole = {path, strlen(path)};
    struct text name = slash ? (struct text){slash + 1, strlen(slash + 1)} : whole;
    bool matched = false;
    for (size_t i = 0; patterns && patterns[i]; i++) {
        struct pattern p;
        if (!read_pattern(patterns[i], &p) || (p.folders_only && !directory) || matched == !p.negated)
            continue; /* the last match counts, and this one could not change it */
        if (p.anchored ? match_path(p.text, whole) : match(p.text, name, false))
            matched = !p.negated;
    }
    return matched;
}

bool ignore_is_pattern(const char *line) {
    struct pattern p;
    if (strchr(line, '\n') || !read_pattern(line, &p))
        return false;
    for (size_t i = 0; i < p.text.n; i++) /* a backslash with nothing behind it matches nothing */
        if (p.text.bytes[i] == '\\' && ++i == p.text.n)
            return false;
    return true;
}
