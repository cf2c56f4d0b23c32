/* lint.c: shapes that are allowed and deserve a second look; see policy_lint in policy.h.
 *
 * One row per finding, one function per row. A policy accepts a finding by id, with a reason.
 * runs in: cli */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "plan/ignore.h"
#include "policy/finding.h"
#include "policy/git.h"
#include "policy/model.h"

struct lint {
    const struct policy *p;
    const struct policy_host *host;
    const struct policy_step *step; /* NULL for the policy as a whole */
    const char *id;
    json_t *findings;
};

/* Takes note of one finding about `n`. */
static void find(struct lint *l, const struct node *n, const char *remedy, const char *format, ...) _printf_(4, 5);

static const char *accepted(const struct policy *p, const char *id) {
    const struct policy_pair *pairs = p->accept.items;
    for (size_t i = 0; i < p->accept.n; i++)
        if (!strcmp(pairs[i].is.name, id))
            return pairs[i].value;
    return NULL;
}

static void find(struct lint *l, const struct node *n, const char *remedy, const char *format, ...) {
    _cleanup_buf_ struct buf path = {0};
    char message[ERROR_MESSAGE_MAX];
    const char *reason = accepted(l->p, l->id);
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (n->flag)
        buf_puts(&path, n->flag);
    else
        node_put_path(&path, n);
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", l->id, "step", l->step ? l->step->is.name : "", "path",
                          path.bytes ? path.bytes : "", "message", message, "remedy", remedy);
    if (o && reason)
        json_object_set_new(o, "accepted", json_string(reason));
    json_array_append_new(l->findings, o);
}

static const struct node *member(const struct lint *l, const char *key) {
    const struct node *n = node_member(l->step->is.node, key);
    return n ? n : l->step->is.node;
}

/* -- inputs -- */

/* Names that files with secrets have by custom. */
static const char *const secret_files[] = {
    ".env",
    ".env.*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.kdbx",
    "*.keytab",
    "*.jks",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "*credentials*.json",
    "*service-account*.json",
    "kubeconfig",
    "*.tfstate",
    "secrets.*",
    ".htpasswd",
    NULL,
};
/* Those that are looked for in a folder: the cost of a check does not depend on the folder's size. */
static const char *const secret_names[] = {
    ".env",   ".env.local", ".env.production",  ".netrc",       ".npmrc",      ".pypirc",    ".git-credentials",
    "id_rsa", "id_ed25519", "credentials.json", "secrets.yaml", "secrets.yml", "kubeconfig", "terraform.tfstate",
    NULL,
};

static bool is_hidden(const struct policy_input *in, const char *name) {
    return ignore_matches(in->exclude, name, false) || (in->only && !ignore_matches(in->only, name, false));
}

static void lint_input(struct lint *l, const struct policy_input *in, const char *from) {
    static const char remedy[] = "leave it out, for example with `exclude`, or give the step a copy without the secret";
    _cleanup_free_ char *source = NULL;
    enum policy_type type;
    struct error ignored = {0};
    char safe[200];
    if (l->host->resolve(l->host->data, l->p->base, from, &source, &type, &ignored) < 0)
        return; /* compiling says so */
    const char *outside = strrchr(source, '/') + 1, *inside = strrchr(in->is.name, '/') + 1;
    if (type != POLICY_FOLDER) {
        if (ignore_matches((char *const *)secret_files, outside, false) ||
            ignore_matches((char *const *)secret_files, inside, false))
            find(l, in->is.node, remedy, "%s looks like a secret, and the worker can read it",
                 str_safe(safe, sizeof(safe), source));
        return;
    }
    for (size_t i = 0; secret_names[i]; i++) {
        _cleanup_free_ char *found = NULL;
        if (!is_hidden(in, secret_names[i]) &&
            l->host->resolve(l->host->data, source, secret_names[i], &found, &type, &ignored) == 0)
            find(l, in->is.node, remedy, "%s holds %s, which the worker can read", str_safe(safe, sizeof(safe), source),
                 secret_names[i]);
    }
}

static void lint_secret_inputs(struct lint *l) {
    const struct policy_input *items = l->step->inputs.items;
    for (size_t i = 0; i < l->step->inputs.n; i++)
        for (size_t k = 0; k < PLAN_INPUT_KIND_N; k++)
            if (items[i].from[k])
                lint_input(l, &items[i], items[i].from[k]);
}

static void lint_sensitive(struct lint *l) {
    const struct policy_input *items = l->step->inputs.items;
    char safe[200];
    for (size_t i = 0; i < l->step->inputs.n; i++)
        if (items[i].sensitive)
            find(l, items[i].is.node, "name only the files that the step needs",
                 "the input at %s is not checked for being sensitive", str_safe(safe, sizeof(safe), items[i].is.name));
}

/* A path inside at or below which an input of the step stands or may stand. */
static bool is_covered(const struct lint *l, const char *path) {
    const struct policy_input *items = l->step->inputs.items;
    for (size_t i = 0; i < l->step->inputs.n; i++) {
        size_t n = strlen(items[i].is.name);
        if (!strncmp(items[i].is.name, path, n) && (path[n] == '/' || !path[n]))
            return true;
    }
    return false;
}

static void lint_git(struct lint *l) {
    const struct policy_input *items = l->step->inputs.items;
    for (size_t i = 0; i < l->step->inputs.n; i++) {
        const struct policy_input *in = &items[i];
        const char *from = in->from[PLAN_READ]      ? in->from[PLAN_READ]
                           : in->from[PLAN_OVERLAY] ? in->from[PLAN_OVERLAY]
                                                    : in->from[PLAN_COPY];
        _cleanup_free_ char *source = NULL;
        _cleanup_git_place_ struct git_place g = {0};
        enum policy_type type = POLICY_OTHER;
        struct error ignored = {0};
        char safe[400];
        if (in->git || !from || ignore_matches(in->exclude, ".git", false) ||
            l->host->resolve(l->host->data, l->p->base, from, &source, &type, &ignored) < 0 || type != POLICY_FOLDER ||
            git_find(l->host, source, in->is.name, &g) < 0)
            continue;
        if ((g.kind == GIT_WORKTREE || g.kind == GIT_MODULE) && !is_covered(l, g.inside))
            find(l, in->is.node, "say `git: true`, which adds it copy-on-write, or leave .git out with `exclude`",
                 "git does not work inside: the repository of this %s is %s",
                 g.kind == GIT_WORKTREE ? "linked worktree" : "submodule", str_safe(safe, sizeof(safe), g.outside));
    }
}

/* -- variables -- */

static bool looks_secret(const char *name) {
    static const char *const words[] = {"TOKEN",  "SECRET",     "PASSWORD",    "PASSWD",     "API_KEY",
                                        "APIKEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL", NULL};
    for (size_t i = 0; words[i]; i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static void lint_secret_env(struct lint *l) {
    const struct policy_pair *pairs = l->step->env.items;
    char safe[100];
    for (size_t i = 0; i < l->step->env.n; i++)
        if (looks_secret(pairs[i].is.name) && *pairs[i].value)
            find(l, pairs[i].is.node, "take it out of the policy file; a step without it can do no harm with it",
                 "%s looks like a secret; it stands in the policy, and the worker can read it",
                 str_safe(safe, sizeof(safe), pairs[i].is.name));
    for (size_t i = 0; l->step->pass_env && l->step->pass_env[i]; i++)
        if (looks_secret(l->step->pass_env[i]))
            find(l, member(l, "pass-env"), "do without it; a step without it can do no harm with it",
                 "%s looks like a secret, and the worker can read it",
                 str_safe(safe, sizeof(safe), l->step->pass_env[i]));
}

/* Variables that are no secrets and hand over the use of one, or say what the worker's programs load. */
static bool hands_over(const char *name) {
    static const char *const names[] = {"SSH_AUTH_SOCK",
                                        "DOCKER_HOST",
                                        "KUBECONFIG",
                                        "GPG_AGENT_INFO",
                                        "XDG_RUNTIME_DIR",
                                        "DBUS_SESSION_BUS_ADDRESS",
                                        "DBUS_SYSTEM_BUS_ADDRESS",
                                        "AWS_PROFILE",
                                        "GOOGLE_APPLICATION_CREDENTIALS",
                                        "XAUTHORITY",
                                        "DISPLAY",
                                        "WAYLAND_DISPLAY",
                                        "CONTAINER_HOST",
                                        "GNUPGHOME",
                                        "AWS_CONFIG_FILE",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "AZURE_CONFIG_DIR",
                                        "CLOUDSDK_CONFIG",
                                        "KRB5CCNAME",
                                        "VAULT_ADDR",
                                        "NPM_CONFIG_USERCONFIG",
                                        "BASH_ENV",
                                        "ENV",
                                        "LD_PRELOAD",
                                        "LD_LIBRARY_PATH",
                                        "PYTHONPATH",
                                        "NODE_OPTIONS",
                                        NULL};
    size_t n = strlen(name);
    return strv_contains((char *const *)names, name) || !strncmp(name, "GIT_", 4) ||
           (n > 8 && !strcmp(name + n - 8, "_ASKPASS"));
}

static void lint_authority(struct lint *l) {
    const struct policy_pair *pairs = l->step->env.items;
    char safe[100];
    for (size_t i = 0; i < l->step->env.n; i++)
        if (hands_over(pairs[i].is.name) && *pairs[i].value)
            find(l, pairs[i].is.node,
                 "do without it: what it names is not reachable inside, or is the worker's own to choose",
                 "%s tells where authority is used, or what the worker's programs load",
                 str_safe(safe, sizeof(safe), pairs[i].is.name));
    for (size_t i = 0; l->step->pass_env && l->step->pass_env[i]; i++)
        if (hands_over(l->step->pass_env[i]))
            find(l, member(l, "pass-env"), "do without it: what it names is not reachable inside anyway",
                 "%s tells where the host's authority is used", str_safe(safe, sizeof(safe), l->step->pass_env[i]));
}

/* -- walls and limits -- */

static void lint_root(struct lint *l) {
    if (l->step->user == PLAN_USER_ROOT)
        find(l, member(l, "user"), "use the default, agent, unless a program insists on uid 0",
             "the worker has uid 0 inside, without capabilities");
}

static void lint_degraded(struct lint *l) {
    for (size_t i = 0; l->step->degrade && l->step->degrade[i]; i++)
        find(l, member(l, "degrade"), "remove it where the host can hold it; the plan says what is in force",
             "%s may be missing on this host", l->step->degrade[i]);
}

static void lint_wide(struct lint *l) {
    static const uint64_t wide[PLAN_LIMIT_N] = {
        [PLAN_WALL] = 24ULL * 60 * 60 * 1000,
        [PLAN_MEMORY] = 64ULL << 30,
        [PLAN_PROCESSES] = 16384,
        [PLAN_CPUS] = 64000,
        [PLAN_DISK] = 64ULL << 30,
        [PLAN_FILES] = 10000000,
        [PLAN_OUTPUT] = 1ULL << 30,
        [PLAN_OPEN_FILES] = UINT64_MAX,
    };
    for (size_t i = 0; i < PLAN_LIMIT_N; i++)
        if (l->step->limits[i] > wide[i]) {
            char asked[32], most[32];
            find(l, member(l, "limits"), "give what the step needs and no more",
                 "%s is %s, more than %s: so wide that it hardly is a limit", plan_limit_names[i],
                 plan_limit_text(asked, i, l->step->limits[i]), plan_limit_text(most, i, wide[i]));
        }
}

static void lint_accepted(struct lint *l);

/* Each row concerns every step, except the last, which looks at the findings of all the others. */
static void (*const lints[])(struct lint *l) = {
    lint_secret_inputs, lint_sensitive, lint_git,  lint_secret_env, lint_authority,
    lint_root,          lint_degraded,  lint_wide, lint_accepted,
};
const char *const finding_ids[] = {
    "secret-looking-input",
    "sensitive-input",
    "git-elsewhere",
    "secret-variable",
    "authority-variable",
    "root-user",
    "degraded",
    "wide-limit",
    "accept-unused",
    NULL,
};
static_assert(ELEMENTS(finding_ids) == ELEMENTS(lints) + 1, "an id per finding");

int finding_check(const char *id, struct error *err) {
    char safe[80];
    if (strv_contains((char *const *)finding_ids, id))
        return 0;
    const char *near = str_near(id, finding_ids);
    return error_set(err, -EINVAL, "\"%s\" is no finding of `doorward check`%s%s%s", str_safe(safe, sizeof(safe), id),
                     near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static bool was_found(const json_t *findings, const char *id) {
    size_t i;
    json_t *o;
    json_array_foreach(findings, i, o) if (!strcmp(json_string_value(json_object_get(o, "id")), id)) return true;
    return false;
}

static void lint_accepted(struct lint *l) {
    const struct policy_pair *pairs = l->p->accept.items;
    for (size_t i = 0; i < l->p->accept.n; i++)
        if (strcmp(pairs[i].is.name, l->id) != 0 && !was_found(l->findings, pairs[i].is.name))
            find(l, pairs[i].is.node, "remove it, or it will hide the finding when that comes",
                 "%s is accepted, and nothing of the kind was found", pairs[i].is.name);
}

json_t *policy_lint(const struct policy *p, const struct policy_host *host) {
    struct lint l = {.p = p, .host = host, .findings = json_array()};
    size_t last = ELEMENTS(lints) - 1;
    for (size_t i = 0; i < p->steps.n; i++)
        for (size_t k = 0; k < last; k++) {
            l.step = policy_step_at(p, i);
            l.id = finding_ids[k];
            lints[k](&l);
        }
    l.step = NULL;
    l.id = finding_ids[last];
    lints[last](&l);
    return l.findings;
}
