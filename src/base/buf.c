/* buf.c: see buf.h. runs in: all */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_free(struct buf *b) {
    free(b->bytes);
    *b = (struct buf){0};
}

static int reserve(struct buf *b, size_t n) {
    if (b->failed)
        return -ENOMEM;
    size_t need = b->n + n + 1;
    if (need <= b->room)
        return 0;
    size_t room = b->room ? b->room : 256;
    while (room < need)
        room *= 2;
    char *bytes = realloc(b->bytes, room);
    if (!bytes) {
        b->failed = 1;
        return -ENOMEM;
    }
    b->bytes = bytes;
    b->room = room;
    return 0;
}

int buf_put(struct buf *b, const void *bytes, size_t n) {
    int r = reserve(b, n);
    if (r < 0)
        return r;
    if (n)
        memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    b->bytes[b->n] = 0;
    return 0;
}

int buf_puts(struct buf *b, const char *s) {
    return buf_put(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    int r = n < 0 ? -EINVAL : reserve(b, (size_t)n);
    if (r == 0) {
        vsnprintf(b->bytes + b->n, (size_t)n + 1, format, again);
        b->n += (size_t)n;
    }
    va_end(again);
    return r;
}

char *buf_take(struct buf *b) {
    if (b->failed || reserve(b, 0) < 0)
        return NULL;
    b->bytes[b->n] = 0;
    char *bytes = b->bytes;
    *b = (struct buf){0};
    return bytes;
}
