/* tree.c: see tree.h.
 * runs in: controller, cli (untrusted input: the policy file; holds: nothing) */
#include "policy/tree.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

void tree_free(struct tree *t) {
    arena_free(&t->arena);
    *t = (struct tree){0};
}

static const char *copy(struct tree *t, const char *s) {
    return arena_copy(&t->arena, s, strlen(s));
}

struct node *tree_add(struct tree *t, struct node *parent, enum node_kind kind, const char *key, const char *text) {
    struct node *n = t->n_nodes < TREE_NODES_MAX ? arena_take(&t->arena, 1, sizeof(*n)) : NULL;
    if (!n || (key && !(n->key = copy(t, key))) || (text && !(n->text = copy(t, text))))
        return NULL;
    n->kind = kind;
    n->parent = parent;
    t->n_nodes++;
    if (!parent) {
        t->root = n;
        return n;
    }
    n->index = parent->n++;
    if (parent->last)
        parent->last->next = n;
    else
        parent->first = n;
    parent->last = n;
    return n;
}

const struct node *node_member(const struct node *map, const char *key) {
    for (const struct node *n = map->first; n; n = n->next)
        if (n->key && !strcmp(n->key, key))
            return n;
    return NULL;
}

static bool plain_key(const char *key) {
    return *key && strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(key);
}

static void put_part(struct buf *b, const struct node *n) {
    char safe[200];
    if (!n->key)
        buf_printf(b, "[%zu]", n->index);
    else if (plain_key(n->key))
        buf_printf(b, "%s%s", b->n ? "." : "", str_safe(safe, sizeof(safe), n->key));
    else
        buf_printf(b, "[\"%s\"]", str_safe(safe, sizeof(safe), n->key));
}

void node_put_path(struct buf *b, const struct node *n) {
    const struct node *up[TREE_DEPTH_MAX + 2];
    size_t depth = 0;
    for (; n && n->parent && depth < ELEMENTS(up); n = n->parent)
        up[depth++] = n;
    while (depth)
        put_part(b, up[--depth]);
}

/* "FILE:LINE:COLUMN: PATH" or the flag; "" when neither is known. */
static void put_place(struct buf *b, const struct tree *t, const struct node *n, bool of_key) {
    char safe[400];
    unsigned line = n ? (of_key ? n->key_line : n->line) : 0, column = n ? (of_key ? n->key_column : n->column) : 0;
    if (n && n->flag) {
        buf_puts(b, n->flag);
        return;
    }
    if (t->name) {
        buf_puts(b, str_safe(safe, sizeof(safe), t->name));
        if (line)
            buf_printf(b, ":%u:%u", line, column);
    }
    if (n && n->parent) {
        struct buf path = {0};
        node_put_path(&path, n);
        buf_printf(b, "%s%s", b->n ? ": " : "", path.bytes ? path.bytes : "");
        buf_free(&path);
    }
}

static int place(const struct tree *t, const struct node *n, bool of_key, struct error *err) {
    _cleanup_buf_ struct buf b = {0};
    put_place(&b, t, n, of_key);
    return b.n ? error_wrap(err, "%s", b.bytes) : err->code;
}

int tree_error(const struct tree *t, const struct node *n, bool of_key, struct error *err, int code, const char *format,
               ...) {
    char message[2 * ERROR_MESSAGE_MAX]; /* what is too long is cut once, by error_set */
    struct error none;
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (!err)
        err = &none;
    error_set(err, code, "%s", message);
    return place(t, n, of_key, err);
}

int tree_wrap(const struct tree *t, const struct node *n, bool of_key, struct error *err) {
    return place(t, n, of_key, err);
}

const char *node_found(char to[NODE_FOUND], const struct node *n) {
    static const char *const words[] = {
        [NODE_NULL] = "nothing (an empty value)", [NODE_BOOL] = "%s",     [NODE_NUMBER] = "the number %s",
        [NODE_TEXT] = "the text \"%s\"",          [NODE_LIST] = "a list", [NODE_MAP] = "a map of keys",
    };
    static_assert(ELEMENTS(words) == NODE_KIND_N, "words per kind");
    char safe[NODE_FOUND - 24];
    const char *percent = strstr(words[n->kind], "%s");
    if (!percent || !n->text)
        snprintf(to, NODE_FOUND, "%s", words[n->kind]);
    else
        snprintf(to, NODE_FOUND, "%.*s%s%s", (int)(percent - words[n->kind]), words[n->kind],
                 str_safe(safe, sizeof(safe), n->text), percent + 2);
    return to;
}

/* -- keys that stand twice -- */

static int by_key(const void *a, const void *b) {
    const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

int tree_check_twice(const struct tree *t, const struct node *map, struct error *err) {
    const struct node *second = NULL, *first = NULL;
    size_t i = 0;
    if (map->n < 2)
        return 0;
    _cleanup_free_ const struct node **sorted = calloc(map->n, sizeof(struct node *));
    if (!sorted)
        return error_set(err, -ENOMEM, "out of memory");
    for (const struct node *n = map->first; n; n = n->next)
        sorted[i++] = n;
    qsort(sorted, map->n, sizeof(struct node *), by_key);
    for (i = 1; i < map->n; i++)
        if (!strcmp(sorted[i - 1]->key, sorted[i]->key) && (!second || sorted[i]->index < second->index)) {
            first = sorted[i - 1];
            second = sorted[i];
        }
    if (!second)
        return 0;
    if (second->flag) {
        char safe[200];
        return tree_error(t, second, true, err, -EINVAL, "%s is given twice; give it once",
                          str_safe(safe, sizeof(safe), second->key));
    }
    return tree_error(t, second, true, err, -EINVAL, "this key stands twice, first in line %u; remove one of them",
                      first->key_line);
}

/* -- YAML 1.2, section 10.3.2: the core schema -- */

static bool is_digits(const char *s, const char *digits) {
    return *s && s[strspn(s, digits)] == 0;
}

static bool is_number(const char *s) {
    static const char decimal[] = "0123456789";
    static const char *const specials[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN", NULL};
    if (!strncmp(s, "0o", 2))
        return is_digits(s + 2, "01234567");
    if (!strncmp(s, "0x", 2))
        return is_digits(s + 2, "0123456789abcdefABCDEF");
    s += *s == '-' || *s == '+';
    for (size_t i = 0; specials[i]; i++)
        if (!strcmp(s, specials[i]))
            return true;
    size_t whole = strspn(s, decimal), fraction = 0;
    s += whole;
    if (*s == '.') {
        fraction = strspn(s + 1, decimal);
        s += 1 + fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s += 1 + (s[1] == '-' || s[1] == '+');
        return is_digits(s, decimal);
    }
    return *s == 0;
}

enum node_kind node_plain_kind(const char *text) {
    static const struct {
        const char *text;
        enum node_kind kind;
    } words[] = {
        {"", NODE_NULL},      {"~", NODE_NULL},     {"null", NODE_NULL},  {"Null", NODE_NULL},
        {"NULL", NODE_NULL},  {"true", NODE_BOOL},  {"True", NODE_BOOL},  {"TRUE", NODE_BOOL},
        {"false", NODE_BOOL}, {"False", NODE_BOOL}, {"FALSE", NODE_BOOL},
    };
    for (size_t i = 0; i < ELEMENTS(words); i++)
        if (!strcmp(words[i].text, text))
            return words[i].kind;
    return is_number(text) ? NODE_NUMBER : NODE_TEXT;
}
