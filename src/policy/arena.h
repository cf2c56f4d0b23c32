/* arena.h: memory that is given back all at once: a policy's tree, and what is read from it.
 * runs in: controller, cli */
#pragma once

#include <stddef.h>

struct arena {
    struct arena_chunk *chunks; /* newest first */
};

/* Zeroed memory for `n` objects of `size` bytes, aligned for any type; NULL when memory ran out. */
void *arena_take(struct arena *a, size_t n, size_t size);

/* A copy of `n` bytes with a NUL behind them; NULL when memory ran out. */
char *arena_copy(struct arena *a, const char *bytes, size_t n);

void arena_free(struct arena *a);
