/* rules.h: the format as rows of tables.
 *
 * A row names a key, its type, where its value goes and what it means. The same row reads the value, writes it into
 * the canonical form and describes it in the JSON Schema, so the three cannot differ. A row without a type is
 * a key of the format whose door is not built yet.
 * Private to policy/. runs in: controller, cli (untrusted input: the policy file; holds: nothing) */
#pragma once

#include "base/json.h"
#include "policy/tree.h"

struct rule;

struct reader_of_tree {
    struct tree *tree;
    struct error *err;
};

struct type {
    const char *expected; /* "a size such as 512MB or 2GiB" */
    /* Reads `n`, which is no null, to `at`. 0 or -errno with the place named. */
    int (*read)(struct reader_of_tree *r, const struct rule *rule, const struct node *n, void *at);
    json_t *(*put)(const struct rule *rule, const void *at); /* NULL when memory ran out */
    json_t *(*schema)(const struct rule *rule);
};

struct rule {
    const char *key;
    const struct type *type;
    size_t offset;
    const char *doc;  /* for the schema and docs; of a key that is not built: what it will do */
    const void *with; /* what the type needs to know, below */
    bool required;
};

/* -- what types take in `with` -- */

struct rules {                 /* type_map: a map with fixed keys */
    const struct rule *rows;   /* ends with a key of NULL */
    const char *const *one_of; /* exactly one of these keys must be there; NULL for no such rule */
};

struct text_form {                                  /* type_text, type_texts, and the keys of type_named */
    int (*check)(const char *s, struct error *err); /* NULL: anything */
    const char *pattern;      /* the same as a regular expression, as near as that can be; NULL for none */
    const char *const *words; /* or as a list of what it can be; NULL for none */
    bool may_be_empty;
    size_t least;    /* of a list */
    const char *why; /* the list may not be shorter: the reason and the remedy */
};

struct words {                /* type_word */
    const char *const *words; /* NULL-terminated */
    const char *const *later; /* known, not built yet; NULL for none */
};

struct named_rules { /* type_named: a map with free keys; the value is a struct list */
    size_t size;     /* of an item, which begins with struct named */
    size_t most;     /* entries */
    const struct text_form *key;
    void (*prepare)(void *item); /* defaults; NULL for zero */
    struct rule value;           /* how one value is read into the item */
    size_t least;
};

struct limit_form { /* type_limit */
    unsigned limit; /* enum plan_limit */
    int (*parse)(const char *s, uint64_t *ret);
    const char *expected, *pattern;
    const char *number; /* "integer" or "number" of JSON Schema when it may stand without quotes; NULL: needs a unit */
    uint64_t one;       /* how much of the limit's unit a plain 1 is */
};

extern const struct type type_version, type_text, type_texts, type_bool, type_word, type_limit, type_size, type_map,
    type_named;

/* The whole format (keys.c). */
extern const struct rules policy_rules;

/* "found X, expected Y" at the node. -EINVAL. */
int rule_mismatch(struct reader_of_tree *r, const struct node *n, const char *expected);
