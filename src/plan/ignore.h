/* ignore.h: gitignore(5) patterns as a pure function of a path.
 * runs in: controller, launcher, cli */
#pragma once

#include <stdbool.h>

/* True when the last matching pattern of `patterns` (NULL-terminated, gitignore(5) syntax: "!" negates, a
 * leading or inner "/" anchors, a trailing "/" asks for a folder, "*", "?", "[...]", "**") matches `path`,
 * which is relative to the root of the patterns, without leading "/". Only this path is judged; that a
 * folder above it is excluded is the caller's walk to know (git does not look below an excluded folder). */
bool ignore_matches(char *const *patterns, const char *path, bool directory);

/* False for a line that can match nothing (empty, a comment, "/", a backslash at its end), which in a list of
 * exceptions is a mistake that would otherwise pass unseen. */
bool ignore_is_pattern(const char *line);
