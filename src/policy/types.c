/* types.c: how single values are read, written and described; see rules.h.
 * runs in: controller, cli (untrusted input: the policy file; holds: nothing) */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "plan/plan.h"
#include "policy/rules.h"

int rule_mismatch(struct reader_of_tree *r, const struct node *n, const char *expected) {
    char found[NODE_FOUND];
    return tree_error(r->tree, n, false, r->err, -EINVAL, "found %s, expected %s", node_found(found, n), expected);
}

static int out_of_memory(struct reader_of_tree *r) {
    return error_set(r->err, -ENOMEM, "out of memory");
}

/* -- version: 1 -- */

static int read_version(struct reader_of_tree *r, const struct rule *rule, const struct node *n, void *at) {
    if (n->kind != NODE_NUMBER || strcmp(n->text, "1") != 0)
        return rule_mismatch(r, n, rule->type->expected);
    *(uint64_t *)at = 1;
    return 0;
}

static json_t *put_u64(const struct rule *rule, const void *at) {
    return json_integer((json_int_t) * (const uint64_t *)at);
}

static json_t *schema_version(const struct rule *rule) {
    return json_pack("{s:i}", "const", 1);
}

const struct type type_version = {"the number 1, the only version of the format", read_version, put_u64,
                                  schema_version};

/* -- text -- */

static json_t *list_of(const char *const *words) {
    json_t *array = json_array();
    for (size_t i = 0; words[i]; i++)
        json_array_append_new(array, json_string(words[i]));
    return array;
}

static int check_text(struct reader_of_tree *r, const struct text_form *form, const struct node *n) {
    if (n->kind == NODE_NUMBER || n->kind == NODE_BOOL) {
        char found[NODE_FOUND], safe[60];
        return tree_error(r->tree, n, false, r->err, -EINVAL, "found %s, expected text; quote it: \"%s\"",
                          node_found(found, n), str_safe(safe, sizeof(safe), n->text));
    }
    if (n->kind != NODE_TEXT)
        return rule_mismatch(r, n, "text");
    if (!*n->text && !(form && form->may_be_empty))
        return tree_error(r->tree, n, false, r->err, -EINVAL, "the text is empty; write it, or remove the key");
    if (form && form->check && form->check(n->text, r->err) < 0)
        return tree_wrap(r->tree, n, false, r->err);
    return 0;
}

static int read_text(struct reader_of_tree *r, const struct rule *rule, const struct node *n, void *at) {
    int bad = check_text(r, rule->with, n);
    if (bad == 0)
        *(const char **)at = n->text;
    return bad;
}

static json_t *put_text(const struct rule *rule, const void *at) {
    const char *s = *(const char *const *)at;
    return s ? json_string(s) : json_null();
}

static json_t *schema_text(const struct rule *rule) {
    const struct text_form *form = rule->with;
    json_t *o = json_pack("{s:s}", "type", "string");
    if (form && form->words)
        json_object_set_new(o, "enum", list_of(form->words));
    else if (form && form->pattern)
        json_object_set_new(o, "pattern", json_string(form->pattern));
    else if (!form || !form->may_be_empty)
        json_object_set_new(o, "minLength", json_integer(1));
    return o;
}

const struct type type_text = {"text", read_text, put_text, schema_text};

static int read_texts(struct reader_of_tree *r, const struct rule *rule, const struct node *n, void *at) {
    const struct text_form *form = rule->with;
    if (n->kind != NODE_LIST)
        return rule_mismatch(r, n, rule->type->expected);
    if (form && n->n < form->least)
        return tree_error(r->tree, n, false, r->err, -EINVAL, "the list is empty; %s", form->why);
    char **v = arena_take(&r->tree->arena, n->n + 1, sizeof(*v));
    if (!v)
        return out_of_memory(r);
    for (const struct node *item = n->first; item; item = item->next) {
        int bad = check_text(r, form, item);
        if (bad < 0)
            return bad;
        v[item->index] = (char *)item->text;
    }
    *(char ***)at = n->n ? v : NULL;
    return 0;
}

static json_t *put_texts(const struct rule *rule, const void *at) {
    char *const *v = *(char **const *)at;
    json_t *array = json_array();
    for (size_t i = 0; v && v[i]; i++)
        json_array_append_new(array, json_string(v[i]));
    return array;
}

static json_t *schema_texts(const struct rule *rule) {
    const struct text_form *form = rule->with;
    json_t *o = json_pack("{s:s, s:o}", "type", "array", "items", schema_text(rule));
    if (form && form->least)
        json_object_set_new(o, "minItems", json_integer((json_int_t)form->least));
    return o;
}

const struct type type_texts = {"a list of texts", read_texts, put_texts, schema_texts};

/* -- true and false -- */

static int read_bool(struct reader_of_tree *r, const struct rule *rule, const struct node *n, void *at) {
    if (n->kind != NODE_BOOL)
        return rule_mismatch(r, n, rule->type->expected);
    *(bool *)at = (n->text[0] | 0x20) == 't';
    return 0;
}

static json_t *put_bool(const struct rule *rule, const void *at) {
    return json_boolean(*(const bool *)at);
}

static json_t *schema_bool(const struct rule *rule) {
    return json_pack("{s:s}", "type", "boolean");
}

const struct type type_bool = {"true or false", read_bool, put_bool, schema_bool};

/* -- one of some words -- */

static const char *list_words(struct buf *b, const char *const *words) {
    for (size_t i = 0; words[i]; i++)
        buf_printf(b, "%s%s", i ? ", " : "", words[i]);
    return b->bytes ? b->bytes : "";
}

static bool is_word(const char *const *words, const char *s) {
    return words && strv_contains((char *const *)words, s);
}

static int read_word(struct reader_of_tree *r, const struct rule *rule, const struct node *n, void *at) {
    const struct words *words = rule->with;
    _cleanup_buf_ struct buf b = {0};
    const char *known = list_words(&b, words->words);
    const struct node *first = n->kind == NODE_MAP ? n->first : NULL; /* root: {oci: LAYOUT} */
    const char *said = n->kind == NODE_TEXT ? n->text : first ? first->key : "";
    if (is_word(words->later, said))
        return tree_error(r->tree, n, false, r->err, -EINVAL,
                          "%s is not built yet in this version (doorward " DOORWARD_VERSION "); use %s", said, known);
    for (unsigned i = 0; n->kind == NODE_TEXT && words->words[i]; i++)
        if (!strcmp(words->words[i], n->text)) {
            *(unsigned *)at = i;
            return 0;
        }
    char found[NODE_FOUND];
    const char *near = n->kind == NODE_TEXT ? str_near(n->text, words->words) : NULL;
    return tree_error(r->tree, n, false, r->err, -EINVAL, "found %s, expected %s%s%s%s%s", node_found(found, n),
                      words->words[1] ? "one of " : "", known, near ? "; did you mean " : "", near ? near : "",
                      near ? "?" : "");
}

static json_t *put_word(const struct rule *rule, const void *at) {
    const struct words *words = rule->with;
    return json_string(words->words[*(const unsigned *)at]);
}

static json_t *schema_word(const struct rule *rule) {
    const struct words *words = rule->with;
    return json_pack("{s:o}", "enum", list_of(words->words));
}

const struct type type_word = {"a word", read_word, put_word, schema_word};

/* -- numbers with units -- */

static int read_limit(struct reader_of_tree *r, const struct rule *rule, const struct node *n, void *at) {
    const struct limit_form *form = rule->with;
    const struct plan_range *range = &plan_limit_ranges[form->limit];
    uint64_t v;
    int bad = n->kind == NODE_NUMBER || n->kind == NODE_TEXT ? form->parse(n->text, &v) : -EINVAL;
    if (bad == -EINVAL)
        return rule_mismatch(r, n, form->expected);
    if (bad < 0 || v < range->least || v > range->most) {
        char found[NODE_FOUND], least[32], most[32];
        return tree_error(r->tree, n, false, r->err, -EINVAL, "found %s, expected something from %s to %s",
                          node_found(found, n), plan_limit_text(least, form->limit, range->least),
                          plan_limit_text(most, form->limit, range->most));
    }
    *(uint64_t *)at = v;
    return 0;
}

static json_t *schema_limit(const struct rule *rule) {
    const struct limit_form *form = rule->with;
    const struct plan_range *range = &plan_limit_ranges[form->limit];
    if (!form->number)
        return json_pack("{s:s, s:s}", "type", "string", "pattern", form->pattern);
    double one = (double)form->one;
    json_t *o = json_pack("{s:[s,s], s:s}", "type", "string", form->number, "pattern", form->pattern);
    json_object_set_new(o, "minimum", json_real((double)range->least / one));
    json_object_set_new(o, "maximum", json_real((double)range->most / one));
    return o;
}

const struct type type_limit = {"a limit", read_limit, put_u64, schema_limit};

static int read_size(struct reader_of_tree *r, const struct rule *rule, const struct node *n, void *at) {
    uint64_t v;
    int bad = n->kind == NODE_NUMBER || n->kind == NODE_TEXT ? str_parse_size(n->text, &v) : -EINVAL;
    if (bad == -EINVAL)
        return rule_mismatch(r, n, rule->type->expected);
    if (bad < 0 || v == 0 || v > plan_limit_ranges[PLAN_DISK].most) {
        char found[NODE_FOUND];
        return tree_error(r->tree, n, false, r->err, -EINVAL, "found %s, expected something from 1B to 1024TiB",
                          node_found(found, n));
    }
    *(uint64_t *)at = v;
    return 0;
}

static json_t *schema_size(const struct rule *rule) {
    return json_pack("{s:[s,s], s:s, s:i}", "type", "string", "integer", "pattern", "^[0-9]+(B|[kKMGT]B|[KMGT]iB)?$",
                     "minimum", 1);
}

const struct type type_size = {"a size such as 512kB or 10MiB", read_size, put_u64, schema_size};
