/* harmless.c: see harmless.h. runs in: controller (untrusted input: the worker's bytes) */
#include "control/harmless.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

enum { ESC = 0x1b, MORE = 0, PARAMETERS_MAX = 16 };

struct range {
    unsigned first, last;
};

/* Select Graphic Rendition, without 5 and 6 (blinking) and 8 (concealed). 38, 48 and 58 take a colour, see skip_colour. */
static const struct range allowed[] = {{0, 4},   {7, 7},   {9, 9},   {21, 27}, {29, 49},
                                       {53, 53}, {55, 55}, {58, 59}, {90, 97}, {100, 107}};

static bool is_allowed(unsigned code) {
    for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
        if (code >= allowed[i].first && code <= allowed[i].last)
            return true;
    return false;
}

/* How many parameters behind 38, 48 or 58 belong to it: 5;N or 2;R;G;B. -1: neither. */
static int skip_colour(const unsigned *codes, size_t n) {
    int takes = n > 0 && codes[0] == 5 ? 2 : n > 0 && codes[0] == 2 ? 4 : -1;
    return takes > (int)n ? -1 : takes;
}

/* Whether these parameters only set colours; *plain: the last of them is a reset. */
static bool only_colours(const unsigned *codes, size_t n, bool *plain) {
    for (size_t i = 0; i < n; i++) {
        *plain = codes[i] == 0;
        if (!is_allowed(codes[i]))
            return false;
        if (codes[i] != 38 && codes[i] != 48 && codes[i] != 58)
            continue;
        int takes = skip_colour(codes + i + 1, n - i - 1);
        if (takes < 0)
            return false;
        i += (size_t)takes;
    }
    return true;
}

/* The length of the colour sequence at p, MORE when it may become one, -1 when it is none. */
static int colour(const unsigned char *p, size_t n, bool *plain) {
    unsigned codes[PARAMETERS_MAX] = {0};
    size_t count = 0;
    if (n > 1 && p[1] != '[')
        return -1;
    for (size_t i = 2; i < n; i++) {
        if (p[i] >= '0' && p[i] <= '9' && codes[count] < 1000)
            codes[count] = codes[count] * 10 + (p[i] - '0');
        else if (p[i] == ';' && count + 1 < PARAMETERS_MAX)
            count++;
        else
            return p[i] == 'm' && only_colours(codes, count + 1, plain) ? (int)i + 1 : -1;
    }
    return n < HARMLESS_HELD ? MORE : -1;
}

/* Bytes that a character of UTF-8 with this first byte has (RFC 3629 section 4); 1 where none begins so. */
static size_t character_length(unsigned char first) {
    return first >= 0xc2 && first < 0xe0   ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xf0 && first < 0xf5 ? 4
                                           : 1;
}

/* The bytes at p that make one character, or as many of them as it begins with; MORE when the rest is to come. */
static size_t character(const unsigned char *p, size_t n) {
    size_t length = character_length(p[0]), i = 1;
    while (i < length && i < n && (p[i] & 0xc0) == 0x80)
        i++;
    return i == n && n < length ? MORE : i;
}

static bool is_text(unsigned char c) {
    return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t';
}

/* Takes one character or sequence from the `n` > 0 bytes at p; returns its length, MORE when more is needed. */
static size_t take_one(struct harmless *h, struct buf *to, const unsigned char *p, size_t n) {
    if (is_text(p[0])) {
        buf_put(to, p, 1);
        return 1;
    }
    if (p[0] == '\r') {
        if (n == 1)
            return MORE;
        if (p[1] != '\n')
            buf_put(to, "\n", 1);
        return 1;
    }
    bool plain = false;
    int sequence = p[0] == ESC ? colour(p, n, &plain) : -1;
    size_t length = sequence >= 0 ? (size_t)sequence : character(p, n);
    if (length == MORE)
        return MORE;
    if (sequence > 0) {
        buf_put(to, p, length);
        h->coloured = !plain;
    } else {
        str_put_safe(to, (const char *)p, length);
    }
    return length;
}

static void drop_held(struct harmless *h, size_t n) {
    h->n -= n;
    memmove(h->held, h->held + n, h->n);
}

/* The held bytes are looked at first: one more at a time, until they are decided. */
static void take_byte(struct harmless *h, struct buf *to, unsigned char c) {
    h->held[h->n++] = c;
    for (size_t done; h->n > 0 && (done = take_one(h, to, h->held, h->n)) != MORE;)
        drop_held(h, done);
}

int harmless_put(struct harmless *h, struct buf *to, const char *bytes, size_t n) {
    for (size_t i = 0; i < n;) {
        size_t run = i;
        while (h->n == 0 && run < n && is_text((unsigned char)bytes[run]))
            run++;
        buf_put(to, bytes + i, run - i);
        i = run;
        if (i < n)
            take_byte(h, to, (unsigned char)bytes[i++]);
    }
    return to->failed ? -ENOMEM : 0;
}

int harmless_end(struct harmless *h, struct buf *to) {
    for (size_t i = 0; i < h->n; i++) {
        if (is_text(h->held[i]) || h->held[i] == '\r')
            buf_put(to, h->held[i] == '\r' ? "\n" : (const char *)h->held + i, 1);
        else
            str_put_safe(to, (const char *)h->held + i, 1);
    }
    h->n = 0;
    if (h->coloured)
        buf_puts(to, "\x1b[0m");
    h->coloured = false;
    return to->failed ? -ENOMEM : 0;
}
