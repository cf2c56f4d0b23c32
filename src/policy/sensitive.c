/* sensitive.c: see sensitive.h.
 *
 * A path is compared with each place in three ways: it is the place, it lies below it, it holds it. Links are
 * resolved before, also those of the places themselves (keys kept in a folder of dotfiles).
 * runs in: controller, cli */
#include "policy/sensitive.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

/* Below a home folder: keys, tokens, sessions, and what runs with the user's rights at the next log-in. */
static const char *const in_home[] = {
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".password-store",
    ".pki",
    ".mozilla",
    ".thunderbird",
    ".vault-token",
    ".terraform.d",
    ".terraformrc",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".oci",
    ".vnc",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".composer/auth.json",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/git/credentials",
    ".config/containers/auth.json",
    ".config/rclone",
    ".config/doctl",
    ".config/op",
    ".config/sops",
    ".config/age",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/Bitwarden",
    ".config/1Password",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/containers",
    NULL,
};

enum {
    PLACE_BELOW = 1, /* what lies below is sensitive too */
};

static const struct {
    const char *path;
    unsigned flags;
    const char *what;
} on_host[] = {
    {"/run", PLACE_BELOW, "the sockets of the host's services"},
    {"/var/run", PLACE_BELOW, "the sockets of the host's services"},
    {"/tmp/.X11-unix", PLACE_BELOW, "the sockets of the screen"},
    {"/proc", PLACE_BELOW, "the host's processes"},
    {"/sys", PLACE_BELOW, "the host's kernel"},
    {"/dev", 0, "the host's devices"},
    {"/dev/shm", 0, "memory that the host's processes share"},
    {"/boot", PLACE_BELOW, "the host's kernel"},
    {"/etc/shadow", PLACE_BELOW, "passwords"},
    {"/etc/gshadow", PLACE_BELOW, "passwords"},
    {"/etc/sudoers", PLACE_BELOW, "who may become root"},
    {"/etc/sudoers.d", PLACE_BELOW, "who may become root"},
    {"/etc/ssh", PLACE_BELOW, "the host's keys"},
    {"/etc/ssl/private", PLACE_BELOW, "the host's keys"},
    {"/etc/pki/tls/private", PLACE_BELOW, "the host's keys"},
    {"/etc/letsencrypt", PLACE_BELOW, "the host's keys"},
    {"/etc/kubernetes", PLACE_BELOW, "the cluster's keys"},
    {"/etc/doorward", PLACE_BELOW, "doorward's configuration"},
    {"/var/lib/docker", PLACE_BELOW, "the files of containers"},
    {"/var/lib/containerd", PLACE_BELOW, "the files of containers"},
    {"/var/lib/containers", PLACE_BELOW, "the files of containers"},
    {"/var/lib/kubelet", PLACE_BELOW, "the files of containers"},
    {"/var/lib/doorward", PLACE_BELOW, "doorward's own records"},
    {"/var/spool/cron", PLACE_BELOW, "what the host runs by itself"},
};

/* Sockets and folders that variables of doorward's own environment name. */
static const char *const by_variable[] = {
    "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "KUBECONFIG", "XAUTHORITY", "GNUPGHOME", "AWS_SHARED_CREDENTIALS_FILE", NULL};

static bool below(const char *path, const char *top) {
    size_t n = strlen(top);
    return !strcmp(top, "/") || (!strncmp(path, top, n) && (path[n] == 0 || path[n] == '/'));
}

/* "is" or "lies below" or "holds"; NULL when the path has nothing to do with the place. */
static const char *relation(const char *path, const char *place, bool also_below) {
    if (!strcmp(path, place))
        return "is";
    if (also_below && below(path, place))
        return "lies below";
    return below(place, path) ? "holds" : NULL;
}

/* Length of the home folder that covers `path`: ours, /root or /home/NAME; 0 for none. */
static size_t home_of(const struct policy_host *host, const char *path) {
    if (host->home && host->home[1] && below(path, host->home))
        return strlen(host->home);
    if (below(path, "/root"))
        return strlen("/root");
    if (!strncmp(path, "/home/", 6))
        return 6 + strcspn(path + 6, "/");
    return 0;
}

static bool find_home(const struct policy_host *host, const char *path, struct buf *ret) {
    size_t home = home_of(host, path);
    if (home && !path[home])
        return buf_puts(ret, "is a home folder, with its keys and histories"), true;
    if ((host->home && host->home[1] && below(host->home, path)) || below("/root", path) || below("/home", path))
        return buf_puts(ret, "holds home folders"), true;
    for (size_t i = 0; home && in_home[i]; i++) {
        const char *how = relation(path + home + 1, in_home[i], true);
        if (how)
            return buf_printf(ret, "%s ~/%s, which gives rights to whoever reads it", how, in_home[i]), true;
    }
    return false;
}

static bool find_on_host(const char *path, struct buf *ret) {
    for (size_t i = 0; i < ELEMENTS(on_host); i++) {
        const char *how = relation(path, on_host[i].path, on_host[i].flags & PLACE_BELOW);
        if (how && !strcmp(how, "is"))
            return buf_printf(ret, "is %s", on_host[i].what), true;
        if (how)
            return buf_printf(ret, "%s %s (%s)", how, on_host[i].path, on_host[i].what), true;
    }
    return false;
}

static bool find_ours(const struct policy_host *host, const char *path, struct buf *ret) {
    const struct {
        const char *place, *what;
    } ours[] = {{host->state, "doorward's own records"}, {host->runtime, "doorward's own sockets"}};
    for (size_t i = 0; i < ELEMENTS(ours); i++) {
        const char *how = ours[i].place ? relation(path, ours[i].place, true) : NULL;
        if (how)
            return buf_printf(ret, "%s %s", how, ours[i].what), true;
    }
    for (size_t i = 0; by_variable[i]; i++) {
        const char *place = host->variable(host->data, by_variable[i]);
        const char *how = place && plan_path_is_canonical(place) ? relation(path, place, true) : NULL;
        if (how)
            return buf_printf(ret, "%s what %s names", how, by_variable[i]), true;
    }
    return false;
}

/* Where the keys of our home really lie. What cannot be resolved is not there. */
static int ask(struct sensitive *s) {
    s->asked = true;
    for (size_t i = 0; s->host->home && in_home[i]; i++) {
        _cleanup_free_ char *path = NULL;
        _cleanup_buf_ struct buf literal = {0};
        enum policy_type type;
        struct error ignored = {0};
        buf_printf(&literal, "%s/%s", s->host->home, in_home[i]);
        if (s->host->resolve(s->host->data, s->host->home, in_home[i], &path, &type, &ignored) < 0)
            continue;
        if (literal.failed || (strcmp(path, literal.bytes) != 0 &&
                               (strv_add(&s->linked, path) < 0 || strv_add(&s->linked, in_home[i]) < 0)))
            return -ENOMEM;
    }
    return 0;
}

static bool find_linked(const struct sensitive *s, const char *path, struct buf *ret) {
    for (size_t i = 0; s->linked && s->linked[i]; i += 2) {
        const char *how = relation(path, s->linked[i], true);
        if (how)
            return buf_printf(ret, "%s what ~/%s links to, which gives rights to whoever reads it", how,
                              s->linked[i + 1]),
                   true;
    }
    return false;
}

int sensitive_find(struct sensitive *s, const char *path, struct buf *ret) {
    if (!s->asked && ask(s) < 0)
        return -ENOMEM;
    bool found = true;
    if (!strcmp(path, "/"))
        buf_puts(ret, "is everything on this host");
    else
        found = find_home(s->host, path, ret) || find_ours(s->host, path, ret) || find_on_host(path, ret) ||
                find_linked(s, path, ret);
    return ret->failed ? -ENOMEM : found;
}

void sensitive_free(struct sensitive *s) {
    strv_free(s->linked);
    s->linked = NULL;
}
