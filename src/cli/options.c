/* options.c: see cli.h. The one reader of options.
 * runs in: cli (untrusted input: the arguments; holds: nothing) */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"

static const struct cli_option help_option = {"help", 'h', CLI_FLAG, NULL, NULL, "explain this verb"};

static const struct cli_option no_options[] = {{.kind = CLI_END}};

static const struct cli_option *options_of(const struct verb *verb) {
    return verb->options ? verb->options : no_options;
}

static const struct cli_option *find_name(const struct verb *verb, const char *name, size_t n) {
    for (const struct cli_option *o = options_of(verb); o->kind != CLI_END; o++)
        if (strlen(o->name) == n && !memcmp(o->name, name, n))
            return o;
    return n == 4 && !memcmp(name, "help", 4) ? &help_option : NULL;
}

static const struct cli_option *find_letter(const struct verb *verb, char letter) {
    for (const struct cli_option *o = options_of(verb); o->kind != CLI_END; o++)
        if (o->letter && o->letter == letter)
            return o;
    return letter == 'h' ? &help_option : NULL;
}

static int refuse_unknown(const struct verb *verb, const char *given, struct error *err) {
    enum { SHOWN = 64 };
    char safe[128];
    const char *names[SHOWN + 1] = {0}, *near;
    size_t n = 0;
    for (const struct cli_option *o = options_of(verb); o->kind != CLI_END && n < SHOWN; o++)
        names[n++] = o->name;
    str_safe(safe, sizeof(safe), given);
    near = strlen(given) > 2 ? str_near(given + 2, names) : NULL;
    if (near)
        return error_set(err, -EINVAL, "%s: option %s is not known; did you mean --%s?", verb->name, safe, near);
    return error_set(err, -EINVAL, "%s: option %s is not known; `doorward help %s` lists the options%s", verb->name,
                     safe, verb->name, verb->command ? ", and a command's own options stand after \"--\"" : "");
}

/* Puts one value where its row says. `value` is NULL for a flag. */
static int store(const struct verb *verb, const struct cli_option *o, const char *value, struct error *err) {
    if (o->kind == CLI_FLAG) {
        *(bool *)o->target = true;
        return 0;
    }
    if (o->kind == CLI_LIST)
        return strv_add(o->target, value) < 0 ? error_set(err, -ENOMEM, "out of memory") : 0;
    const char **text = o->target;
    if (*text)
        return error_set(err, -EINVAL, "%s: --%s stands twice; give it once", verb->name, o->name);
    *text = value;
    return 0;
}

struct reader {
    const struct verb *verb;
    char **args;
    int n, at;
    bool help;
};

/* One option with its value, which may stand behind "=" or in the next word. */
static int read_one(struct reader *r, const struct cli_option *o, const char *attached, struct error *err) {
    const char *value = attached;
    if (o == &help_option) {
        r->help = true;
        return 0;
    }
    if (o->kind == CLI_FLAG && attached)
        return error_set(err, -EINVAL, "%s: --%s takes no value", r->verb->name, o->name);
    if (o->kind != CLI_FLAG && !value) {
        if (r->at >= r->n)
            return error_set(err, -EINVAL, "%s: --%s needs a value: --%s %s", r->verb->name, o->name, o->name,
                             o->value);
        value = r->args[r->at++];
    }
    return store(r->verb, o, value, err);
}

static int read_long(struct reader *r, const char *word, struct error *err) {
    const char *equals = strchr(word, '=');
    size_t n = (equals ? (size_t)(equals - word) : strlen(word)) - 2;
    const struct cli_option *o = find_name(r->verb, word + 2, n);
    return o ? read_one(r, o, equals ? equals + 1 : NULL, err) : refuse_unknown(r->verb, word, err);
}

/* "-t", "-ti"; the last of them may take the next word as its value. */
static int read_short(struct reader *r, const char *word, struct error *err) {
    for (const char *c = word + 1; *c; c++) {
        const struct cli_option *o = find_letter(r->verb, *c);
        if (!o)
            return refuse_unknown(r->verb, word, err);
        int e = read_one(r, o, NULL, err);
        if (e < 0)
            return e;
    }
    return 0;
}

static int check_count(const struct verb *verb, int n, struct error *err) {
    if (n < verb->least)
        return error_set(err, -EINVAL, "%s: something is missing; usage: doorward %s %s", verb->name, verb->name,
                         verb->args);
    if (verb->most >= 0 && n > verb->most)
        return error_set(err, -EINVAL, "%s: too many words; usage: doorward %s %s", verb->name, verb->name, verb->args);
    return 0;
}

int cli_read_options(const struct verb *verb, char **args, int n, struct cli_words *ret, bool *ret_help,
                     struct error *err) {
    struct reader r = {.verb = verb, .args = args, .n = n};
    struct cli_words words = {.args = args};
    while (r.at < n) {
        char *word = args[r.at++];
        int e = 0;
        if (!strcmp(word, "--")) {
            if (verb->command) {
                words.command = args + r.at;
                words.n_command = n - r.at;
                r.at = n;
            }
            while (r.at < n)
                args[words.n++] = args[r.at++];
        } else if (!strncmp(word, "--", 2)) {
            e = read_long(&r, word, err);
        } else if (word[0] == '-' && word[1]) {
            e = read_short(&r, word, err);
        } else {
            args[words.n++] = word;
        }
        if (e < 0)
            return e;
    }
    *ret_help = r.help;
    if (!r.help) {
        int e = check_count(verb, words.n, err);
        if (e < 0)
            return e;
    }
    args[words.n] = NULL; /* a word read already, the "--", or the NULL at the end of argv */
    *ret = words;
    return 0;
}

void cli_print_help(FILE *to, const struct verb *verb) {
    fprintf(to, "usage: doorward %s%s%s%s\n\n%s.\n", verb->name, options_of(verb)->kind != CLI_END ? " [OPTIONS]" : "",
            verb->args[0] ? " " : "", verb->args, verb->summary);
    if (options_of(verb)->kind == CLI_END)
        return;
    fputs("\noptions:\n", to);
    for (const struct cli_option *o = options_of(verb); o->kind != CLI_END; o++) {
        char left[64];
        snprintf(left, sizeof(left), "%s%c%s--%s%s%s", o->letter ? "-" : " ", o->letter ? o->letter : ' ',
                 o->letter ? ", " : "  ", o->name, o->value ? " " : "", o->value ? o->value : "");
        fprintf(to, "  %-34s %s%s\n", left, o->help, o->kind == CLI_LIST ? " (may be repeated)" : "");
    }
}
