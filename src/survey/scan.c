/* scan.c: secrets by the form of their text. A row is a beginning that issuers give their tokens and what may follow; what
 * follows must vary, so that the x's of an example are none. The value itself goes nowhere.
 * runs in: surveyor (untrusted input: any file) */
#include <ctype.h>
#include <string.h>

#include "survey/survey.h"

#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static const struct {
    const char *rule, *prefix, *letters;
    unsigned least, most; /* letters after the prefix */
} tokens[] = {
    {"aws-access-key", "AKIA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 16, 16},
    {"aws-access-key", "ASIA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 16, 16},
    {"github-token", "ghp_", ALNUM, 36, 255},
    {"github-token", "gho_", ALNUM, 36, 255},
    {"github-token", "ghu_", ALNUM, 36, 255},
    {"github-token", "ghs_", ALNUM, 36, 255},
    {"github-token", "ghr_", ALNUM, 36, 255},
    {"github-token", "github_pat_", ALNUM "_", 40, 255},
    {"gitlab-token", "glpat-", ALNUM "_-", 20, 255},
    {"slack-token", "xoxb-", ALNUM "-", 20, 255},
    {"slack-token", "xoxp-", ALNUM "-", 20, 255},
    {"slack-token", "xoxa-", ALNUM "-", 20, 255},
    {"google-api-key", "AIza", ALNUM "_-", 35, 35},
    {"npm-token", "npm_", ALNUM, 36, 36},
    {"pypi-token", "pypi-AgEIcHlwaS5vcmc", ALNUM "_-", 50, 4096},
    {"stripe-key", "sk_live_", ALNUM, 16, 255},
    {"stripe-key", "rk_live_", ALNUM, 16, 255},
    {"model-key", "sk-ant-", ALNUM "_-", 32, 255},
    {"model-key", "sk-proj-", ALNUM "_-", 32, 255},
};

/* Names of variables whose value is a secret, when it looks like one. */
static const char *const words[] = {"secret",  "token",  "password",   "passwd",
                                    "api_key", "apikey", "access_key", "private_key"};

enum {
    VARIED = 8,       /* different letters that a token has at least */
    VALUE_LEAST = 16, /* of an assigned secret */
    VALUE_VARIED = 10,
    LINE_MAX_READ = 4096, /* of a longer line only this much is looked at for assignments */
};

static size_t count_different(const char *s, size_t n) {
    bool seen[256] = {0};
    size_t different = 0;
    for (size_t i = 0; i < n; i++) {
        different += !seen[(unsigned char)s[i]];
        seen[(unsigned char)s[i]] = true;
    }
    return different;
}

static size_t span(const char *s, size_t n, const char *letters) {
    size_t i = 0;
    while (i < n && s[i] && strchr(letters, s[i]))
        i++;
    return i;
}

/* The rule that a token at `s` breaks, or NULL. */
static const char *find_token(const char *s, size_t n) {
    for (size_t i = 0; i < ELEMENTS(tokens); i++) {
        size_t skip = strlen(tokens[i].prefix);
        if (n < skip || memcmp(s, tokens[i].prefix, skip) != 0)
            continue;
        size_t more = span(s + skip, n - skip, tokens[i].letters);
        if (more >= tokens[i].least && more <= tokens[i].most && count_different(s + skip, more) >= VARIED)
            return tokens[i].rule;
    }
    return NULL;
}

/* Three parts in base64url, the first two JSON objects (RFC 7519). */
static bool is_jwt(const char *s, size_t n) {
    static const char letters[] = ALNUM "_-";
    size_t at = 0;
    for (int part = 0; part < 3; part++) {
        size_t length = span(s + at, n - at, letters);
        if (length < 16 || (part < 2 && (strncmp(s + at, "eyJ", 3) != 0 || at + length >= n || s[at + length] != '.')))
            return false;
        at += length + 1;
    }
    return true;
}

static bool is_private_key(const char *s, size_t n) {
    static const char begin[] = "-----BEGIN ", end[] = "PRIVATE KEY-----";
    enum { KIND = 24 }; /* "ENCRYPTED ", "OPENSSH " and their like */
    if (n < sizeof(begin) - 1 || memcmp(s, begin, sizeof(begin) - 1) != 0)
        return false;
    for (size_t i = sizeof(begin) - 1; i < sizeof(begin) - 1 + KIND && i + sizeof(end) - 1 <= n; i++)
        if (!memcmp(s + i, end, sizeof(end) - 1))
            return true;
    return false;
}

static bool names_secret(const char *line, size_t n) {
    for (size_t w = 0; w < ELEMENTS(words); w++)
        for (size_t i = 0; i + strlen(words[w]) <= n; i++)
            if (!strncasecmp(line + i, words[w], strlen(words[w])))
                return true;
    return false;
}

/* NAME = value or NAME: value, where the value is one word of many different letters, digits among them. */
static bool is_assignment(const char *line, size_t n) {
    static const char letters[] = ALNUM "_-+/=.";
    size_t name = 0, at;
    while (name < n && (isalnum((unsigned char)line[name]) || strchr("_-. \"'", line[name])))
        name++;
    if (name == n || (line[name] != '=' && line[name] != ':') || !names_secret(line, name))
        return false;
    for (at = name + 1; at < n && strchr(" \t\"'", line[at]); at++)
        ;
    size_t length = span(line + at, n - at, letters), digits = 0;
    bool ends = at + length == n || strchr("\"' \t\r,;", line[at + length]);
    for (size_t i = at; i < at + length; i++)
        digits += isdigit((unsigned char)line[i]) != 0;
    return ends && length >= VALUE_LEAST && digits >= 2 && count_different(line + at, length) >= VALUE_VARIED;
}

/* One finding a line is enough to be looked at. */
static const char *scan_line(const char *line, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *rule = NULL;
        if (i > 0 && (isalnum((unsigned char)line[i - 1]) || line[i - 1] == '_'))
            continue;
        if (line[i] && strchr("Agnprsx", line[i]))
            rule = find_token(line + i, n - i);
        else if (line[i] == 'e' && is_jwt(line + i, n - i))
            rule = "jwt";
        else if (line[i] == '-' && is_private_key(line + i, n - i))
            rule = "private-key";
        if (rule)
            return rule;
    }
    return is_assignment(line, n < LINE_MAX_READ ? n : LINE_MAX_READ) ? "assigned-secret" : NULL;
}

void scan_text(const char *bytes, size_t n, void (*found)(void *data, uint64_t line, const char *rule), void *data) {
    uint64_t line = 1;
    for (size_t at = 0; at < n; line++) {
        const char *end = memchr(bytes + at, '\n', n - at);
        size_t length = end ? (size_t)(end - bytes) - at : n - at;
        const char *rule = scan_line(bytes + at, length);
        if (rule)
            found(data, line, rule);
        at += length + 1;
    }
}

const char *scan_name(const char *name) {
    static const char *const names[] = {"id_rsa", "id_dsa",           "id_ecdsa", "id_ed25519",
                                        ".netrc", ".git-credentials", ".pgpass"};
    static const char *const ends[] = {".kdbx", ".p12", ".pfx", ".keytab", ".jks"};
    size_t n = strlen(name);
    for (size_t i = 0; i < ELEMENTS(names); i++)
        if (!strcmp(names[i], name))
            return "secret-file";
    for (size_t i = 0; i < ELEMENTS(ends); i++)
        if (n > strlen(ends[i]) && !strcmp(name + n - strlen(ends[i]), ends[i]))
            return "secret-file";
    return NULL;
}
