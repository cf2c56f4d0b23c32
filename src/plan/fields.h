/* fields.h: the members of a plan as rows, so that encoder, decoder and checker walk the same table;
 * private to plan/. runs in: controller, launcher, cli */
#pragma once

#include <stddef.h>

enum field_type {
    FIELD_STRING,  /* char * */
    FIELD_STRINGS, /* char **, NULL for an empty list */
    FIELD_BOOL,
    FIELD_U64,
    FIELD_WORD, /* an enum that `words` names */
    FIELD_TYPE_N
};

struct field {
    const char *name; /* NULL ends a table */
    enum field_type type;
    size_t offset;
    const char *const *words;
    unsigned n_words;
};

extern const struct field plan_fields[], plan_input_fields[], plan_export_fields[];

static inline void *field_of(const struct field *f, const void *object) {
    return (char *)object + f->offset;
}
