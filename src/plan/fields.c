/* fields.c: the members of a plan as rows; see fields.h.
 * runs in: controller, launcher, cli */
#include "plan/fields.h"

#include <assert.h>

#include "plan/plan.h"

static const char *const boundary_names[] = {"namespace"};
static_assert(ELEMENTS(boundary_names) == PLAN_BOUNDARY_N, "one word per boundary");

#define MEMBER(struct_, member, type) #member, type, offsetof(struct struct_, member), NULL, 0
#define WORDS(struct_, member, words) #member, FIELD_WORD, offsetof(struct struct_, member), words, ELEMENTS(words)

const struct field plan_fields[] = {
    {MEMBER(plan, task, FIELD_STRING)},      {MEMBER(plan, step, FIELD_STRING)},
    {WORDS(plan, boundary, boundary_names)}, {MEMBER(plan, argv, FIELD_STRINGS)},
    {MEMBER(plan, env, FIELD_STRINGS)},      {MEMBER(plan, workdir, FIELD_STRING)},
    {WORDS(plan, user, plan_user_names)},    {MEMBER(plan, terminal, FIELD_BOOL)},
    {MEMBER(plan, input, FIELD_BOOL)},       {0},
};
const struct field plan_input_fields[] = {
    {WORDS(plan_input, kind, plan_input_kind_names)}, {MEMBER(plan_input, target, FIELD_STRING)},
    {MEMBER(plan_input, source, FIELD_STRING)},       {MEMBER(plan_input, directory, FIELD_BOOL)},
    {MEMBER(plan_input, exclude, FIELD_STRINGS)},     {MEMBER(plan_input, only, FIELD_STRINGS)},
    {MEMBER(plan_input, sensitive, FIELD_BOOL)},      {MEMBER(plan_input, private, FIELD_BOOL)},
    {WORDS(plan_input, digest, plan_digest_names)},   {MEMBER(plan_input, digest_named, FIELD_BOOL)},
    {WORDS(plan_input, scan, plan_scan_names)},       {0},
};
const struct field plan_export_fields[] = {
    {MEMBER(plan_export, name, FIELD_STRING)},     {MEMBER(plan_export, path, FIELD_STRING)},
    {MEMBER(plan_export, max, FIELD_U64)},         {MEMBER(plan_export, required, FIELD_BOOL)},
    {MEMBER(plan_export, executable, FIELD_BOOL)}, {0},
};
