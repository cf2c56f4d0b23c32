/* maps.c: maps with fixed keys and maps with free keys; see rules.h.
 * runs in: controller, cli (untrusted input: the policy file; holds: nothing) */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "policy/model.h"
#include "policy/rules.h"

enum { KEYS_MAX = 64 }; /* of one table */

static const struct rule *find_rule(const struct rules *rules, const char *key) {
    for (const struct rule *row = rules->rows; row->key; row++)
        if (!strcmp(row->key, key))
            return row;
    return NULL;
}

static int refuse_unknown(struct reader_of_tree *r, const struct rules *rules, const struct node *n) {
    const char *keys[KEYS_MAX + 1] = {0};
    size_t count = 0;
    _cleanup_buf_ struct buf all = {0};
    for (const struct rule *row = rules->rows; row->key && count < KEYS_MAX; row++) {
        keys[count++] = row->key;
        if (row->type)
            buf_printf(&all, "%s%s", all.n ? ", " : "", row->key);
    }
    const char *near = str_near(n->key, keys);
    if (near)
        return tree_error(r->tree, n, true, r->err, -EINVAL, "unknown key; did you mean \"%s\"?", near);
    return tree_error(r->tree, n, true, r->err, -EINVAL, "unknown key; known here: %s", all.bytes ? all.bytes : "");
}

static int read_member(struct reader_of_tree *r, const struct rules *rules, const struct node *n, void *object) {
    const struct rule *row = find_rule(rules, n->key);
    if (!row)
        return refuse_unknown(r, rules, n);
    if (!row->type)
        return tree_error(r->tree, n, true, r->err, -EINVAL,
                          "the door `%s` is not built yet in this version (doorward " DOORWARD_VERSION
                          "), so nothing starts: remove the key (it will be: %s)",
                          n->key, row->doc);
    if (n->kind == NODE_NULL)
        return tree_error(r->tree, n, true, r->err, -EINVAL, "the key has no value; expected %s, or remove the key",
                          row->type->expected);
    return row->type->read(r, row, n, (char *)object + row->offset);
}

static int check_required(struct reader_of_tree *r, const struct rules *rules, const struct node *n) {
    for (const struct rule *row = rules->rows; row->key; row++)
        if (row->required && !node_member(n, row->key))
            return tree_error(r->tree, n, false, r->err, -EINVAL, "the key `%s` is missing: %s", row->key, row->doc);
    return 0;
}

static int check_one_of(struct reader_of_tree *r, const struct rules *rules, const struct node *n) {
    _cleanup_buf_ struct buf all = {0};
    const char *there = NULL;
    for (size_t i = 0; rules->one_of && rules->one_of[i]; i++) {
        const char *key = rules->one_of[i];
        const struct node *member = node_member(n, key);
        buf_printf(&all, "%s%s", i ? ", " : "", key);
        if (member && there)
            return tree_error(r->tree, member, true, r->err, -EINVAL, "stands beside `%s`; only one of both can be",
                              there);
        there = member ? key : there;
    }
    if (rules->one_of && !there)
        return tree_error(r->tree, n, false, r->err, -EINVAL, "one of these keys is missing: %s",
                          all.bytes ? all.bytes : "");
    return 0;
}

static int read_map(struct reader_of_tree *r, const struct rule *rule, const struct node *n, void *at) {
    const struct rules *rules = rule->with;
    if (n->kind != NODE_MAP)
        return rule_mismatch(r, n, rule->type->expected);
    for (const struct node *member = n->first; member; member = member->next) {
        int bad = read_member(r, rules, member, at);
        if (bad < 0)
            return bad;
    }
    int bad = check_one_of(r, rules, n);
    return bad < 0 ? bad : check_required(r, rules, n);
}

static json_t *put_map(const struct rule *rule, const void *at) {
    const struct rules *rules = rule->with;
    json_t *o = json_object();
    for (const struct rule *row = rules->rows; row->key; row++)
        if (row->type && json_object_set_new(o, row->key, row->type->put(row, (const char *)at + row->offset)) < 0) {
            json_decref(o);
            return NULL;
        }
    return o;
}

static json_t *schema_map(const struct rule *rule) {
    const struct rules *rules = rule->with;
    json_t *properties = json_object(), *required = json_array(), *one_of = json_array();
    for (const struct rule *row = rules->rows; row->key; row++) {
        if (!row->type)
            continue;
        json_t *property = row->type->schema(row);
        json_object_set_new(property, "description", json_string(row->doc));
        json_object_set_new(properties, row->key, property);
        if (row->required)
            json_array_append_new(required, json_string(row->key));
    }
    for (size_t i = 0; rules->one_of && rules->one_of[i]; i++)
        json_array_append_new(one_of, json_pack("{s:[s]}", "required", rules->one_of[i]));
    json_t *o = json_pack("{s:s, s:b, s:o, s:o}", "type", "object", "additionalProperties", 0, "properties", properties,
                          "required", required);
    if (json_array_size(one_of))
        json_object_set(o, "oneOf", one_of);
    json_decref(one_of);
    return o;
}

const struct type type_map = {"a map of keys", read_map, put_map, schema_map};

/* -- free keys -- */

static int read_item(struct reader_of_tree *r, const struct named_rules *named, const struct node *n, void *item) {
    struct named *is = item;
    if (named->prepare)
        named->prepare(item);
    is->name = n->key;
    is->node = n;
    if (named->key->check && named->key->check(n->key, r->err) < 0)
        return tree_wrap(r->tree, n, true, r->err);
    if (n->kind == NODE_NULL)
        return tree_error(r->tree, n, true, r->err, -EINVAL, "the key has no value; expected %s",
                          named->value.type->expected);
    return named->value.type->read(r, &named->value, n, (char *)item + named->value.offset);
}

static int read_named(struct reader_of_tree *r, const struct rule *rule, const struct node *n, void *at) {
    const struct named_rules *named = rule->with;
    if (n->kind != NODE_MAP)
        return rule_mismatch(r, n, rule->type->expected);
    if (n->n < named->least)
        return tree_error(r->tree, n, false, r->err, -EINVAL, "the map is empty; at least one entry is needed");
    if (n->n > named->most)
        return tree_error(r->tree, n, false, r->err, -EINVAL, "found %zu entries, more than %zu", n->n, named->most);
    char *items = arena_take(&r->tree->arena, n->n + 1, named->size);
    if (!items)
        return error_set(r->err, -ENOMEM, "out of memory");
    for (const struct node *member = n->first; member; member = member->next) {
        int bad = read_item(r, named, member, items + member->index * named->size);
        if (bad < 0)
            return bad;
    }
    *(struct list *)at = (struct list){items, n->n};
    return 0;
}

static json_t *put_named(const struct rule *rule, const void *at) {
    const struct named_rules *named = rule->with;
    const struct list *list = at;
    json_t *o = json_object();
    for (size_t i = 0; i < list->n; i++) {
        const char *item = (const char *)list->items + i * named->size;
        const struct named *is = (const void *)item;
        json_object_set_new(o, is->name, named->value.type->put(&named->value, item + named->value.offset));
    }
    return o;
}

static json_t *schema_named(const struct rule *rule) {
    const struct named_rules *named = rule->with;
    json_t *o = json_pack("{s:s, s:o, s:i}", "type", "object", "additionalProperties",
                          named->value.type->schema(&named->value), "maxProperties", (int)named->most);
    const struct rule key = {.with = named->key};
    json_object_set_new(o, "propertyNames", type_text.schema(&key));
    if (named->least)
        json_object_set_new(o, "minProperties", json_integer((json_int_t)named->least));
    return o;
}

const struct type type_named = {"a map of names", read_named, put_named, schema_named};
