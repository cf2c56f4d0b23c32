/* finding.h: the ids of what `doorward check` warns about.
 * runs in: controller, cli */
#pragma once

#include "base/error.h"

/* 0 when `id` is a finding that lint.c knows, else -EINVAL with a near miss: a key of `accept`. */
int finding_check(const char *id, struct error *err);

/* The ids, NULL-terminated. */
extern const char *const finding_ids[];
