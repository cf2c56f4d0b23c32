/* keys.c: every key of the policy file, one row each; see rules.h for what a row does.
 *
 * To build a door: give its row a type, an offset and a doc that describes it.
 * runs in: controller, cli (untrusted input: the policy file; holds: nothing) */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "plan/ignore.h"
#include "policy/finding.h"
#include "policy/model.h"
#include "policy/rules.h"

/* -- forms of text -- */

static int check_name(const char *s, struct error *err) {
    if (plan_name_is_valid(s))
        return 0;
    return error_set(err, -EINVAL,
                     "not a name: lower-case letters, digits, '-' and '_', at most %d, a letter or a digit first",
                     PLAN_NAME_MAX);
}

static int check_host_path(const char *s, struct error *err) {
    if (strlen(s) > PLAN_PATH_MAX)
        return error_set(err, -ENAMETOOLONG, "the path has %zu bytes, more than %d", strlen(s), PLAN_PATH_MAX);
    if (s[0] == '~' && (!s[1] || s[1] == '/'))
        return error_set(err, -EINVAL, "~ is not expanded here: write the path out");
    return 0;
}

static int check_inside_path(const char *s, struct error *err) {
    if (plan_path_is_canonical(s))
        return 0;
    char safe[100];
    return error_set(err, -EINVAL,
                     "\"%s\" is not an absolute path inside, without \"//\", \"/.\", \"/..\" and \"/\" at its end, of "
                     "at most %d bytes",
                     str_safe(safe, sizeof(safe), s), PLAN_PATH_MAX);
}

static int check_argument(const char *s, struct error *err) {
    if (strlen(s) <= PLAN_ARG_MAX)
        return 0;
    return error_set(err, -E2BIG,
                     "the text has %zu bytes, and one string of a command can have at most %d (execve(2)): give it as "
                     "a file instead",
                     strlen(s), PLAN_ARG_MAX);
}

static int check_variable(const char *s, struct error *err) {
    if (plan_variable_is_valid(s, strlen(s)))
        return 0;
    return error_set(err, -EINVAL, "not a variable's name: printable ASCII without \"=\" and blanks");
}

static int check_pattern(const char *s, struct error *err) {
    if (ignore_is_pattern(s))
        return 0;
    return error_set(err, -EINVAL,
                     "as a gitignore pattern this matches nothing (a comment, blank, or cut short); write \"\\#\" for "
                     "a \"#\" that comes first");
}

/* Walls without which a step can still be run as its policy says, and limits that need a control group. The other
 * walls are the sandbox itself, the other limits hold everywhere. */
static const char *const may_degrade[] = {"seccomp", "landlock", "cgroup", "memory", "processes", "cpus", NULL};

static int check_degrade(const char *s, struct error *err) {
    bool known = false;
    if (strv_contains((char *const *)may_degrade, s))
        return 0;
    for (size_t i = 0; i < PLAN_WALL_N; i++)
        known |= !strcmp(plan_wall_names[i], s);
    for (size_t i = 0; i < PLAN_LIMIT_N; i++)
        known |= !strcmp(plan_limit_names[i], s);
    if (known)
        return error_set(err, -EINVAL, "\"%s\" cannot be given up: every host that can run a step holds it", s);
    const char *near = str_near(s, may_degrade);
    char safe[60];
    return error_set(err, -EINVAL,
                     "\"%s\" is no wall or limit that may be missing: seccomp, landlock, cgroup, memory, processes, "
                     "cpus%s%s%s",
                     str_safe(safe, sizeof(safe), s), near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static const struct text_form any_text = {.may_be_empty = true};
static const struct text_form name_form = {.check = check_name, .pattern = "^[a-z0-9][a-z0-9_-]{0,63}$"};
/* What stands between slashes: no "", ".", "..". */
#define PARTS "(/(?!\\.{1,2}(/|$))[^/]+)+$"

static const struct text_form host_path_form = {.check = check_host_path, .pattern = "^(?!~(/|$))."};
static const struct text_form inside_path_form = {.check = check_inside_path, .pattern = "^/$|^" PARTS};
static const struct text_form target_form = {
    .check = plan_target_check,
    .pattern = "^(?!/(proc|dev|sys|run|etc|usr|bin|sbin|lib|lib32|lib64|libx32)(/|$)|/home$)" PARTS};
static const struct text_form argument_form = {
    .check = check_argument, .may_be_empty = true, .least = 1, .why = "name a program"};
static const struct text_form shell_form = {.check = check_argument};
static const struct text_form variable_form = {.check = check_variable, .pattern = "^[!-<>-~]+$"};
static const struct text_form exclude_form = {.check = check_pattern, .pattern = "^[^#]"};
static const struct text_form only_form = {
    .check = check_pattern,
    .pattern = "^[^#]",
    .least = 1,
    .why = "then nothing would be there: name what should be, or remove the key for everything"};
static const struct text_form degrade_form = {.check = check_degrade, .words = may_degrade};
static const struct text_form finding_form = {.check = finding_check, .words = finding_ids};
static const struct text_form reason_form = {0};

/* -- words -- */

static const struct words roots = {(const char *const[]){"host", NULL}, (const char *const[]){"oci", "dir", NULL}};
static const struct words labels = {(const char *const[]){"public", "private", NULL}, NULL};
static const struct words digests = {(const char *const[]){"auto", "none", "git", "full", NULL}, NULL};
static const struct words scans = {(const char *const[]){"off", "warn", "refuse", NULL}, NULL};
static const struct words users = {(const char *const[]){"agent", "root", NULL}, NULL};
static const struct words boundaries = {(const char *const[]){"namespace", NULL},
                                        (const char *const[]){"gvisor", "microvm", NULL}};
static const struct words export_types = {
    (const char *const[]){"file", NULL},
    (const char *const[]){"text", "markdown", "json", "patch", "tree", "archive", "image", "packages", NULL}};

/* -- limits -- */

#define SIZE_PATTERN   "^[0-9]+(B|[kKMGT]B|[KMGT]iB)?$"
#define SIZE_EXPECTED  "a size such as 512MB (decimal) or 2GiB (binary)"
#define COUNT_EXPECTED "a whole number such as 200, 2k or 2M"

/* Thousandths of a processor from "2", "0.5", "1.25". */
static int parse_cpus(const char *s, uint64_t *ret) {
    char digits[32];
    size_t whole = strspn(s, "0123456789"), fraction = s[whole] == '.' ? strspn(s + whole + 1, "0123456789") : 0;
    if (whole == 0 || whole > 9 || (s[whole] == '.' && (fraction == 0 || fraction > 3)) ||
        s[whole + (s[whole] == '.') + fraction])
        return -EINVAL;
    snprintf(digits, sizeof(digits), "%.*s%.*s%.*s", (int)whole, s, (int)fraction, s + whole + 1, (int)(3 - fraction),
             "000");
    return str_parse_count(digits, ret);
}

static const struct limit_form wall_form = {
    PLAN_WALL, str_parse_duration, "a time such as 90s, 20m or 2h", "^[0-9]+(ms|s|m|h|d)$", NULL, 1};
static const struct limit_form memory_form = {PLAN_MEMORY, str_parse_size, SIZE_EXPECTED, SIZE_PATTERN, "integer", 1};
static const struct limit_form processes_form = {PLAN_PROCESSES,  str_parse_count, COUNT_EXPECTED,
                                                 "^[0-9]+[kM]?$", "integer",       1};
static const struct limit_form cpus_form = {
    PLAN_CPUS, parse_cpus, "a number of processors such as 2, 0.5 or 1.25", "^[0-9]+(\\.[0-9]{1,3})?$", "number", 1000};
static const struct limit_form disk_form = {PLAN_DISK, str_parse_size, SIZE_EXPECTED, SIZE_PATTERN, "integer", 1};
static const struct limit_form files_form = {PLAN_FILES,      str_parse_count, COUNT_EXPECTED,
                                             "^[0-9]+[kM]?$", "integer",       1};
static const struct limit_form output_form = {PLAN_OUTPUT, str_parse_size, SIZE_EXPECTED, SIZE_PATTERN, "integer", 1};

#define LIMIT(name, limit, form, text)                                                                                 \
    { name, &type_limit, (limit) * sizeof(uint64_t), text, form, false }

static const struct rule limit_rows[] = {
    LIMIT("wall", PLAN_WALL, &wall_form, "time from the worker's start; then the step is ended. Default 30m"),
    LIMIT("memory", PLAN_MEMORY, &memory_form, "memory without swap. Default 2GiB"),
    LIMIT("processes", PLAN_PROCESSES, &processes_form, "processes and threads at one time. Default 512"),
    LIMIT("cpus", PLAN_CPUS, &cpus_form, "processors, also parts of one. Default 2"),
    LIMIT("disk", PLAN_DISK, &disk_form, "bytes of everything the worker writes together. Default 2GiB"),
    LIMIT("files", PLAN_FILES, &files_form, "files and folders the worker makes. Default 200k"),
    LIMIT("output", PLAN_OUTPUT, &output_form,
          "bytes of standard output and error together; then the step is ended; 0 = none. Default 10MB"),
    {"open-files", NULL, 0, "descriptors a process may have; 4096 until then", NULL, false},
    {"cpu-time", NULL, 0, "processor time of the step; without end until then", NULL, false},
    {0},
};
static const struct rules limit_rules = {limit_rows, NULL};

/* -- inputs -- */

#define FROM(kind) offsetof(struct policy_input, from) + (kind) * sizeof(const char *)

static const struct rule input_rows[] = {
    {"read", &type_text, FROM(PLAN_READ), "a host file or folder, seen read-only; relative to the policy file",
     &host_path_form, false},
    {"overlay", &type_text, FROM(PLAN_OVERLAY), "a host folder, writable copy-on-write; the original is never written",
     &host_path_form, false},
    {"copy", &type_text, FROM(PLAN_COPY), "a host file or folder, copied in and writable", &host_path_form, false},
    {"exclude", &type_texts, offsetof(struct policy_input, exclude), "gitignore patterns: what matches is not there",
     &exclude_form, false},
    {"only", &type_texts, offsetof(struct policy_input, only), "gitignore patterns: what does not match is not there",
     &only_form, false},
    {"sensitive", &type_bool, offsetof(struct policy_input, sensitive),
     "true lets in what is refused otherwise: /, home folders, keys, sockets, doorward's own folders. Default false",
     NULL, false},
    {"label", &type_word, offsetof(struct policy_input, label),
     "private: must not leave except through named exports. Default public", &labels, false},
    {"git", &type_bool, offsetof(struct policy_input, git),
     "true adds the repository that a linked worktree or a submodule belongs to, at the path that its .git says. "
     "Default "
     "false",
     NULL, false},
    {"artifact", NULL, 0, "an approved export of an earlier step", NULL, false},
    {"scan", &type_word, offsetof(struct policy_input, scan),
     "looks for secrets: warn beside the run, refuse before it. Default off", &scans, false},
    {"digest", &type_word, offsetof(struct policy_input, digest),
     "how a folder's content is put on record beside the run: git (commit and what differs), full (all of it), none "
     "(count "
     "and size); auto: git in a repository, else none. Default auto",
     &digests, false},
    {0},
};
static const struct rules input_rules = {input_rows, (const char *const[]){"read", "overlay", "copy", NULL}};
static const struct named_rules inputs = {
    .size = sizeof(struct policy_input),
    .most = PLAN_INPUTS_MAX,
    .key = &target_form,
    .value = {.type = &type_map, .with = &input_rules},
};

/* -- exports -- */

static const struct rule export_rows[] = {
    {"type", &type_word, offsetof(struct policy_export, type), "file: one regular file", &export_types, true},
    {"path", &type_text, offsetof(struct policy_export, path), "where the worker leaves it, inside", &inside_path_form,
     true},
    {"max", &type_size, offsetof(struct policy_export, max), "bytes; larger is not collected. Default: limits.disk",
     NULL, false},
    {"required", &type_bool, offsetof(struct policy_export, required),
     "a completed step without it ends as failed. Default false", NULL, false},
    {"executable", &type_bool, offsetof(struct policy_export, executable), "the file may be executable. Default false",
     NULL, false},
    {"of", NULL, 0, "the overlay that a patch is computed of", NULL, false},
    {"count", NULL, 0, "how many files a tree may have", NULL, false},
    {"schema", NULL, 0, "the JSON Schema that the export must fit", NULL, false},
    {"hold", NULL, 0, "when a person must approve the export", NULL, false},
    {0},
};
static const struct rules export_rules = {export_rows, NULL};
static const struct named_rules exports = {
    .size = sizeof(struct policy_export),
    .most = PLAN_EXPORTS_MAX,
    .key = &name_form,
    .value = {.type = &type_map, .with = &export_rules},
};

/* -- steps -- */

static const struct named_rules env = {
    .size = sizeof(struct policy_pair),
    .most = 4096,
    .key = &variable_form,
    .value = {.type = &type_text, .offset = offsetof(struct policy_pair, value), .with = &any_text},
};

static const struct rule step_rows[] = {
    {"run", &type_texts, offsetof(struct policy_step, run), "the program and its arguments", &argument_form, false},
    {"shell", &type_text, offsetof(struct policy_step, shell), "a command line for /bin/sh -c", &shell_form, false},
    {"inputs", &type_named, offsetof(struct policy_step, inputs), "what of the host the worker sees, by path inside",
     &inputs, false},
    {"root", &type_word, offsetof(struct policy_step, root), "host: the host's /usr, read-only. Default host", &roots,
     false},
    {"workdir", &type_text, offsetof(struct policy_step, workdir),
     "the folder the worker starts in. Default /work where something stands there, else /", &inside_path_form, false},
    {"env", &type_named, offsetof(struct policy_step, env), "variables beside PATH, HOME, USER, LANG, TERM, TMPDIR",
     &env, false},
    {"pass-env", &type_texts, offsetof(struct policy_step, pass_env),
     "variables passed from doorward's own environment; each must be set there", &variable_form, false},
    {"limits", &type_map, offsetof(struct policy_step, limits), "caps on what the step uses", &limit_rules, false},
    {"exports", &type_named, offsetof(struct policy_step, exports), "files that come out, by name", &exports, false},
    {"after", &type_text, offsetof(struct policy_step, after),
     "the step that runs before this one. Default: the one "
     "above",
     &name_form, false},
    {"user", &type_word, offsetof(struct policy_step, user),
     "agent (uid 1000) or root (uid 0 inside, without capabilities). Default agent", &users, false},
    {"degrade", &type_texts, offsetof(struct policy_step, degrade),
     "walls and limits that may be missing on this host; any other missing one refuses the start", &degrade_form,
     false},
    {"boundary", &type_word, offsetof(struct policy_step, boundary), "what the walls are made of. Default namespace",
     &boundaries, false},
    {"network", NULL, 0, "the requests and destinations that the worker may reach", NULL, false},
    {"network-budget", NULL, 0, "caps on everything the step sends and receives", NULL, false},
    {"tools", NULL, 0, "operations performed outside for the worker", NULL, false},
    {"expose", NULL, 0, "a server inside that the host's loopback reaches", NULL, false},
    {"commit", NULL, 0, "starts only with a grant for an artifact", NULL, false},
    {"requires", NULL, 0, "steps that must have completed", NULL, false},
    {"nested-sandbox", NULL, 0, "lets the worker make user namespaces", NULL, false},
    {0},
};
static const struct rules step_rules = {step_rows, (const char *const[]){"run", "shell", NULL}};

static void prepare_step(void *item) {
    memcpy(((struct policy_step *)item)->limits, plan_limit_defaults, sizeof(plan_limit_defaults));
}

static const struct named_rules steps = {
    .size = sizeof(struct policy_step),
    .most = POLICY_STEPS_MAX,
    .least = 1,
    .key = &name_form,
    .prepare = prepare_step,
    .value = {.type = &type_map, .with = &step_rules},
};

/* -- the file -- */

static const struct named_rules accept = {
    .size = sizeof(struct policy_pair),
    .most = 64,
    .key = &finding_form,
    .value = {.type = &type_text, .offset = offsetof(struct policy_pair, value), .with = &reason_form},
};

static const struct rule policy_rows[] = {
    {"version", &type_version, offsetof(struct policy, version), "version of the format: 1", NULL, true},
    {"task", &type_text, offsetof(struct policy, task), "the task's name", &name_form, true},
    {"purpose", &type_text, offsetof(struct policy, purpose), "what the task is for; shown to whoever approves",
     &any_text, false},
    {"steps", &type_named, offsetof(struct policy, steps), "the steps by name; each runs in a fresh sandbox", &steps,
     true},
    {"accept", &type_named, offsetof(struct policy, accept),
     "findings of `doorward check` that are meant so, with the "
     "reason",
     &accept, false},
    {"credentials", NULL, 0, "keys that are attached to requests outside the sandbox", NULL, false},
    {"tools", NULL, 0, "operations performed outside for the worker", NULL, false},
    {"tripwires", NULL, 0, "what ends or closes something by itself", NULL, false},
    {"canaries", NULL, 0, "decoys whose use is a verdict", NULL, false},
    {0},
};
const struct rules policy_rules = {policy_rows, NULL};
