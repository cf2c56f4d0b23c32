/* buf.h: a growing byte buffer. runs in: all */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

struct buf {
    char *bytes; /* NUL-terminated behind `n` once something was put in; NULL before */
    size_t n;
    size_t room;
    int failed; /* set once memory ran out; every later call does nothing */
};

void buf_free(struct buf *b);
#define _cleanup_buf_ _cleanup_(buf_free)

/* Appends; 0 or -ENOMEM. Callers may append often and ask `b->failed` once at the end. */
int buf_put(struct buf *b, const void *bytes, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_printf(struct buf *b, const char *format, ...) _printf_(2, 3);

/* Hands the bytes to the caller (owned, NUL-terminated, "" when empty); NULL when memory ran out. */
char *buf_take(struct buf *b);
