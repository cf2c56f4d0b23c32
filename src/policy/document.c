/* document.c: see document.h. One pass over libyaml's events, no recursion.
 *
 * What makes two readers of one file disagree is refused: aliases and merge keys (also a way to make a small file
 * large), tags, keys that stand twice.
 * runs in: controller, cli (untrusted input: the policy file; holds: nothing) */
#include "policy/document.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "base/json.h"
#include "base/str.h"
#include "policy/policy.h"

struct reader {
    struct tree *t;
    struct error *err;
    struct node *open; /* the list or map that is being filled; NULL at the top */
    unsigned depth;
    const char *key; /* a key was read and waits for its value */
    yaml_mark_t key_mark;
    unsigned documents;
};

/* An error at a place that is no node yet. */
static int fail(struct reader *r, const yaml_mark_t *mark, const char *key, const char *message) {
    struct node at = {.parent = r->open, .line = (unsigned)mark->line + 1, .column = (unsigned)mark->column + 1};
    at.key = r->open && r->open->kind == NODE_MAP ? (key ? key : r->key) : NULL;
    at.index = r->open ? r->open->n : 0;
    struct node *shown = &at;
    if (r->open && r->open->kind == NODE_MAP && !at.key) { /* a key that cannot be shown: name its map */
        at = *r->open;
        at.line = (unsigned)mark->line + 1;
        at.column = (unsigned)mark->column + 1;
    }
    return tree_error(r->t, shown, false, r->err, -EINVAL, "%s", message);
}

/* -- events -- */

static struct node *add(struct reader *r, const yaml_mark_t *mark, enum node_kind kind, const char *text) {
    struct node *n = tree_add(r->t, r->open, kind, r->key, text);
    if (!n) {
        fail(r, mark, NULL, r->t->n_nodes < TREE_NODES_MAX ? "out of memory" : "the policy has too many values");
        return NULL;
    }
    n->line = (unsigned)mark->line + 1;
    n->column = (unsigned)mark->column + 1;
    n->key_line = (unsigned)r->key_mark.line + 1;
    n->key_column = (unsigned)r->key_mark.column + 1;
    r->key = NULL;
    return n;
}

static int check_plain_node(struct reader *r, const yaml_event_t *e, const yaml_char_t *anchor,
                            const yaml_char_t *tag) {
    if (anchor)
        return fail(r, &e->start_mark, NULL, "anchors (&name) are refused: write the value out");
    if (tag)
        return fail(r, &e->start_mark, NULL, "tags (!name) are refused: quote the value if it is text");
    return 0;
}

static bool key_is_due(const struct reader *r) {
    return r->open && r->open->kind == NODE_MAP && !r->key;
}

static int take_key(struct reader *r, const yaml_event_t *e, const char *text, bool plain) {
    if (plain && !strcmp(text, "<<"))
        return fail(r, &e->start_mark, text, "merge keys (<<) are refused: write the keys out");
    if (!*text)
        return fail(r, &e->start_mark, NULL, "a key is empty");
    if (!(r->key = arena_copy(&r->t->arena, text, strlen(text))))
        return error_set(r->err, -ENOMEM, "out of memory");
    r->key_mark = e->start_mark;
    return 0;
}

static int take_scalar(struct reader *r, const yaml_event_t *e) {
    const char *text = (const char *)e->data.scalar.value;
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    int bad = check_plain_node(r, e, e->data.scalar.anchor, e->data.scalar.tag);
    if (bad < 0)
        return bad;
    if (strlen(text) != e->data.scalar.length)
        return fail(r, &e->start_mark, NULL, "the text has a NUL byte in it (\\0), which nothing of ours can carry");
    if (key_is_due(r))
        return take_key(r, e, text, plain);
    return add(r, &e->start_mark, plain ? node_plain_kind(text) : NODE_TEXT, text) ? 0 : r->err->code;
}

static int take_start(struct reader *r, const yaml_event_t *e) {
    bool map = e->type == YAML_MAPPING_START_EVENT;
    int bad = map ? check_plain_node(r, e, e->data.mapping_start.anchor, e->data.mapping_start.tag)
                  : check_plain_node(r, e, e->data.sequence_start.anchor, e->data.sequence_start.tag);
    if (bad < 0)
        return bad;
    if (key_is_due(r))
        return fail(r, &e->start_mark, NULL, "a key must be text, and this is a list or a map");
    if (r->depth == TREE_DEPTH_MAX)
        return fail(r, &e->start_mark, NULL, "the policy is nested deeper than 64 levels");
    struct node *n = add(r, &e->start_mark, map ? NODE_MAP : NODE_LIST, NULL);
    if (!n)
        return r->err->code;
    r->open = n;
    r->depth++;
    return 0;
}

static int take_end(struct reader *r, const yaml_event_t *e) {
    int bad = r->open->kind == NODE_MAP ? tree_check_twice(r->t, r->open, r->err) : 0;
    r->open = r->open->parent;
    r->depth--;
    return bad;
}

static int take_document(struct reader *r, const yaml_event_t *e) {
    if (r->documents++)
        return fail(r, &e->start_mark, NULL, "a second document begins here; a policy is one document");
    if (e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end)
        return fail(r, &e->start_mark, NULL, "%TAG directives are refused");
    return 0;
}

static int take_alias(struct reader *r, const yaml_event_t *e) {
    return fail(r, &e->start_mark, NULL, "aliases (*name) are refused: write the value out");
}

static int (*const handlers[])(struct reader *r, const yaml_event_t *e) = {
    [YAML_DOCUMENT_START_EVENT] = take_document, [YAML_ALIAS_EVENT] = take_alias,
    [YAML_SCALAR_EVENT] = take_scalar,           [YAML_SEQUENCE_START_EVENT] = take_start,
    [YAML_SEQUENCE_END_EVENT] = take_end,        [YAML_MAPPING_START_EVENT] = take_start,
    [YAML_MAPPING_END_EVENT] = take_end,
};

static int syntax_error(struct reader *r, const yaml_parser_t *p) {
    struct node at = {.line = (unsigned)p->problem_mark.line + 1, .column = (unsigned)p->problem_mark.column + 1};
    if (p->error == YAML_MEMORY_ERROR)
        return error_set(r->err, -ENOMEM, "out of memory");
    return tree_error(r->t, &at, false, r->err, -EINVAL, "not YAML: %s%s%s", p->context ? p->context : "",
                      p->context ? ", " : "", p->problem ? p->problem : "unreadable");
}

static int read_events(struct reader *r, yaml_parser_t *p) {
    for (bool end = false; !end;) {
        yaml_event_t e;
        if (!yaml_parser_parse(p, &e))
            return syntax_error(r, p);
        int bad = e.type < ELEMENTS(handlers) && handlers[e.type] ? handlers[e.type](r, &e) : 0;
        end = e.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
        if (bad < 0)
            return bad;
    }
    return 0;
}

/* -- before libyaml sees it -- */

static int check_bytes(struct tree *t, const char *bytes, size_t n, struct error *err) {
    struct node at = {.line = 1, .column = 1};
    size_t bad;
    if (n > POLICY_BYTES_MAX)
        return tree_error(t, NULL, false, err, -EFBIG, "the policy has %zu bytes, more than %u", n, POLICY_BYTES_MAX);
    if (str_is_utf8(bytes, n, &bad))
        return 0;
    for (size_t i = 0; i < bad; i++) {
        at.line += bytes[i] == '\n';
        at.column = bytes[i] == '\n' ? 1 : at.column + ((bytes[i] & 0xc0) != 0x80);
    }
    return tree_error(t, &at, false, err, -EINVAL, "byte %zu is %s: a policy is UTF-8 text", bad,
                      bytes[bad] ? "not UTF-8" : "NUL");
}

static uint32_t hex4(const char *s) {
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)s[i];
        v = v << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return v;
}

/* JSON writes a character past U+FFFF as a pair of \u escapes (RFC 8259, section 7), YAML as one \U escape. In a
 * text that is JSON, every backslash is an escape's, so pairs can be rewritten safely. NULL: leave it as it is. */
static char *join_surrogates(const char *bytes, size_t n, size_t *ret_n) {
    _cleanup_buf_ struct buf b = {0};
    size_t skip = 0;
    while (skip < n && strchr(" \t\r\n", bytes[skip]))
        skip++;
    if (skip == n || bytes[skip] != '{' || (!memmem(bytes, n, "\\ud", 3) && !memmem(bytes, n, "\\uD", 3)))
        return NULL;
    _cleanup_json_ json_t *j = json_loadb(bytes, n, 0, NULL); /* jansson refuses single surrogates */
    if (!j)
        return NULL;
    for (size_t i = 0; i < n;) {
        bool escape = bytes[i] == '\\';
        bool pair = escape && bytes[i + 1] == 'u' && (hex4(bytes + i + 2) & 0xfc00) == 0xd800;
        if (pair)
            buf_printf(&b, "\\U%08x", 0x10000 + ((hex4(bytes + i + 2) & 0x3ff) << 10 | (hex4(bytes + i + 8) & 0x3ff)));
        else
            buf_put(&b, bytes + i, escape ? 2 : 1);
        i += pair ? 12 : escape ? 2 : 1;
    }
    *ret_n = b.n;
    return buf_take(&b);
}

int document_read(struct tree *t, const char *bytes, size_t n, struct error *err) {
    struct reader r = {.t = t, .err = err};
    yaml_parser_t p;
    int bad = check_bytes(t, bytes, n, err);
    if (bad < 0)
        return bad;
    if (n >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3)) { /* a byte order mark, as some editors write it */
        bytes += 3;
        n -= 3;
    }
    _cleanup_free_ char *joined = join_surrogates(bytes, n, &n);
    if (!yaml_parser_initialize(&p))
        return error_set(err, -ENOMEM, "out of memory");
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)(joined ? joined : bytes), n);
    bad = read_events(&r, &p);
    yaml_parser_delete(&p);
    if (bad == 0 && (!t->root || t->root->kind == NODE_NULL))
        bad =
            tree_error(t, NULL, false, err, -EINVAL, "the policy is empty; `doorward schema` describes what it holds");
    return bad;
}
