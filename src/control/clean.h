/* clean.h: kills and removes what a step left in control groups, when its launcher could not.
 * runs in: controller, cli */
#pragma once

#include "base/json.h"
#include "control/place.h"

/* A launcher of its own kills everything in the listed cgroup folders (array of paths, of run `run`) and removes them;
 * folders that are gone are fine. 0 when nothing is left of them, or -errno. An empty list starts nothing. */
int clean_cgroups(const char run[ULID_TEXT], const json_t *cgroups, struct error *err);
