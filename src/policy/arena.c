/* arena.c: see arena.h. runs in: controller, cli */
#include "policy/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 4096 }; /* a run from flags fits into one; a large policy doubles */

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, room;
    alignas(max_align_t) char bytes[];
};

static struct arena_chunk *grow(struct arena *a, size_t need) {
    size_t room = a->chunks ? a->chunks->room * 2 : CHUNK_BYTES;
    if (room > 1 << 20)
        room = 1 << 20;
    if (room < need)
        room = need;
    struct arena_chunk *c = calloc(1, sizeof(*c) + room);
    if (!c)
        return NULL;
    c->room = room;
    c->next = a->chunks;
    a->chunks = c;
    return c;
}

void *arena_take(struct arena *a, size_t n, size_t size) {
    size_t need;
    if (__builtin_mul_overflow(n, size, &need) || __builtin_add_overflow(need, alignof(max_align_t) - 1, &need))
        return NULL;
    need -= need % alignof(max_align_t);
    struct arena_chunk *c = a->chunks;
    if (!c || c->room - c->used < need)
        c = grow(a, need);
    if (!c)
        return NULL;
    void *p = c->bytes + c->used;
    c->used += need;
    return p;
}

char *arena_copy(struct arena *a, const char *bytes, size_t n) {
    char *copy = arena_take(a, n + 1, 1);
    if (copy && n)
        memcpy(copy, bytes, n);
    return copy;
}

void arena_free(struct arena *a) {
    for (struct arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    a->chunks = NULL;
}
