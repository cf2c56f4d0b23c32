/* document.h: bytes of a policy file to a tree.
 * runs in: controller, cli (untrusted input: the policy file; holds: nothing) */
#pragma once

#include <stddef.h>

#include "policy/tree.h"

/* Reads one YAML document (a JSON text is one) into `t`, whose name is set. Refused, with the place: more than
 * POLICY_BYTES_MAX bytes, what is not UTF-8, no document or a second one, aliases, anchors, merge keys, tags, tag
 * directives, keys that are not text, keys that stand twice, nesting past TREE_DEPTH_MAX, too many nodes. */
int document_read(struct tree *t, const char *bytes, size_t n, struct error *err);
