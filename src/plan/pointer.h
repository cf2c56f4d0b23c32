/* pointer.h: the paths that git writes into its own small files (`.git`, `gitdir`, `commondir`) to name another place.
 * runs in: controller, cli, surveyor */
#pragma once

#include "plan/plan.h"

/* The path that `n` bytes say behind `word` ("gitdir: " or ""): absolute and normalised, or "../" some times and then
 * normalised. -EINVAL for anything else. */
int pointer_read(const char *bytes, size_t n, const char *word, char ret[PLAN_PATH_MAX + 1]);

/* Where `pointer` leads from the folder `base`: owned, or NULL where it climbs past the root or memory ran out. */
char *pointer_follow(const char *base, const char *pointer);
