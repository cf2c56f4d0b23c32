/* tree.h: what a policy says, as a tree of nodes that know where they stand.
 *
 * The YAML reader and the flags both make such a tree; everything behind it reads only the tree, so both are
 * held to the same rules. All memory is the arena's.
 * runs in: controller, cli (untrusted input: the policy file; holds: nothing) */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "policy/arena.h"

#define TREE_DEPTH_MAX 64
#define TREE_NODES_MAX 200000 /* a megabyte of "[" and "," would be half a million */

/* Scalars have the types of YAML 1.2's core schema, decided by how they are written. */
enum node_kind { NODE_NULL, NODE_BOOL, NODE_NUMBER, NODE_TEXT, NODE_LIST, NODE_MAP, NODE_KIND_N };

struct node {
    enum node_kind kind;
    const char *text;              /* scalars: what was written, quotes and escapes undone; else NULL */
    const char *key;               /* in a map: the key of this node; else NULL */
    unsigned line, column;         /* of the value, from 1; 0 when it came from a flag */
    unsigned key_line, key_column; /* of the key */
    const char *flag;              /* "--memory" when a flag says this, else NULL */
    struct node *parent, *next, *first, *last;
    size_t n;     /* children */
    size_t index; /* in the parent */
};

struct tree {
    struct arena arena;
    const char *name; /* the file, for messages; NULL for flags */
    struct node *root;
    size_t n_nodes;
};

void tree_free(struct tree *t);

/* A new node below `parent` (NULL: the root). `key` and `text` (may be NULL) are copied. NULL when memory ran out or
 * there are too many nodes. */
struct node *tree_add(struct tree *t, struct node *parent, enum node_kind kind, const char *key, const char *text);

/* The child of a map with this key, or NULL. */
const struct node *node_member(const struct node *map, const char *key);

/* 0 when every key of the map stands once, else -EINVAL at the first that stands again. */
int tree_check_twice(const struct tree *t, const struct node *map, struct error *err);

/* The path of a node: steps.main.inputs["/in/x"].read, run[2]. */
void node_put_path(struct buf *b, const struct node *n);

/* Fills `err` with "FILE:LINE:COLUMN: PATH: MESSAGE" (or "FLAG: MESSAGE") and returns `code`. With `of_key` the
 * place is that of the node's key. */
int tree_error(const struct tree *t, const struct node *n, bool of_key, struct error *err, int code, const char *format,
               ...) _printf_(6, 7);

/* The same place in front of the message that `err` has. Returns err->code. */
int tree_wrap(const struct tree *t, const struct node *n, bool of_key, struct error *err);

/* "the text \"abc\"", "the number 5", "a list": harmless and short. Returns `to`. */
enum { NODE_FOUND = 128 };
const char *node_found(char to[NODE_FOUND], const struct node *n);

/* The kind that a plain (unquoted) scalar has. */
enum node_kind node_plain_kind(const char *text);
