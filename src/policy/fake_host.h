/* fake_host.h: a host that is a table, for tests and fuzzers.
 * runs in: tests */
#pragma once

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "policy/policy.h"

struct fake_path {
    const char *path;
    enum policy_type type;
    const char *link; /* where it really lies; NULL for no link */
};

static const struct fake_path fake_paths[] = {
    {"/", POLICY_FOLDER, NULL},
    {"/home/me", POLICY_FOLDER, NULL},
    {"/home/me/.ssh", POLICY_FOLDER, NULL},
    {"/home/me/.ssh/id_rsa", POLICY_FILE, NULL},
    {"/home/me/.config", POLICY_FOLDER, NULL},
    {"/home/me/.aws", POLICY_FOLDER, "/data/dotfiles/aws"},
    {"/home/me/.local/state/doorward/runs", POLICY_FOLDER, NULL},
    {"/home/me/project", POLICY_FOLDER, NULL},
    {"/home/me/project/.env", POLICY_FILE, NULL},
    {"/home/me/project/src", POLICY_FOLDER, NULL},
    {"/home/me/project/src/a.c", POLICY_FILE, NULL},
    {"/home/me/project/current", POLICY_FOLDER, "/home/me/project/src"},
    {"/home/me/project/out", POLICY_FOLDER, "/tmp/victim"},
    {"/home/me/project/..", POLICY_FOLDER, "/home/me"},
    {"/home/me/project/key", POLICY_FILE, "/home/me/.ssh/id_rsa"},
    {"/home/me/project/server.pem", POLICY_FILE, NULL},
    {"/home/me/d", POLICY_FOLDER, NULL},
    {"/home/you", POLICY_FOLDER, NULL},
    {"/home/you/.kube/config", POLICY_FILE, NULL},
    {"/data/dotfiles", POLICY_FOLDER, NULL},
    {"/data/dotfiles/aws", POLICY_FOLDER, NULL},
    {"/data/tool", POLICY_FOLDER, NULL},
    {"/data/bad\xff", POLICY_FILE, NULL},
    {"/home", POLICY_FOLDER, NULL},
    {"/etc", POLICY_FOLDER, NULL},
    {"/etc/hosts", POLICY_FILE, NULL},
    {"/tmp", POLICY_FOLDER, NULL},
    {"/tmp/victim", POLICY_FOLDER, NULL},
    {"/tmp/agent/sock", POLICY_SOCKET, NULL},
    {"/tmp/agent", POLICY_FOLDER, NULL},
    {"/run/docker.sock", POLICY_SOCKET, NULL},
    {"/data/fifo", POLICY_OTHER, NULL},
    {"/data/main", POLICY_FOLDER, NULL},
    {"/data/main/.git", POLICY_FOLDER, NULL},
    {"/data/main/.git/modules/lib", POLICY_FOLDER, NULL},
    {"/data/main/lib", POLICY_FOLDER, NULL},
    {"/data/main/lib/.git", POLICY_FILE, NULL},
    {"/data/tree", POLICY_FOLDER, NULL},
    {"/data/tree/.git", POLICY_FILE, NULL},
    {"/data/thief", POLICY_FOLDER, NULL},
    {"/data/thief/.git", POLICY_FILE, NULL},
    {"/data/stray", POLICY_FOLDER, NULL},
    {"/data/stray/.git", POLICY_FILE, NULL},
    {"/data/odd", POLICY_FOLDER, NULL},
    {"/data/odd/.git", POLICY_FILE, NULL},
};

static int fake_resolve(void *data, const char *base, const char *path, char **ret_path, enum policy_type *ret_type,
                        struct error *err) {
    _cleanup_buf_ struct buf b = {0};
    if (*path != '/')
        buf_printf(&b, "%s%s", base, strcmp(base, "/") ? "/" : "");
    buf_puts(&b, strcmp(path, ".") ? path : "");
    while (b.n > 1 && b.bytes[b.n - 1] == '/')
        b.bytes[--b.n] = 0;
    for (size_t i = 0; i < ELEMENTS(fake_paths); i++)
        if (b.bytes && !strcmp(fake_paths[i].path, b.bytes)) {
            *ret_path = strdup(fake_paths[i].link ? fake_paths[i].link : b.bytes);
            *ret_type = fake_paths[i].type;
            return *ret_path ? 0 : -ENOMEM;
        }
    if (b.bytes && !strncmp(b.bytes, "/many/", 6)) { /* as many files as a test likes */
        *ret_path = strdup(b.bytes);
        *ret_type = POLICY_FILE;
        return *ret_path ? 0 : -ENOMEM;
    }
    return error_errno(err, -ENOENT, "%s", b.bytes ? b.bytes : "");
}

/* What a linked worktree and a submodule of a made-up host say, and a .git that leads astray. */
static const char *const fake_files[][2] = {
    {"/data/tree/.git", "gitdir: /data/main/.git/worktrees/tree\n"},
    {"/data/main/.git/worktrees/tree/gitdir", "/data/tree/.git\n"},
    {"/data/main/.git/worktrees/tree/commondir", "../..\n"},
    {"/data/thief/.git", "gitdir: /data/main/.git/worktrees/tree\n"},
    {"/data/main/lib/.git", "gitdir: ../.git/modules/lib\n"},
    {"/data/stray/.git", "gitdir: /home/me/.ssh\n"},
    {"/data/odd/.git", "/data/main/.git\n"},
};

static int fake_read(void *data, const char *base, const char *path, size_t max, char **ret, size_t *ret_n,
                     struct error *err) {
    _cleanup_buf_ struct buf b = {0};
    buf_printf(&b, "%s/%s", base, path);
    for (size_t i = 0; b.bytes && i < ELEMENTS(fake_files); i++)
        if (!strcmp(fake_files[i][0], b.bytes)) {
            *ret_n = strlen(fake_files[i][1]);
            *ret = strdup(fake_files[i][1]);
            return *ret ? 0 : -ENOMEM;
        }
    return error_errno(err, -ENOENT, "%s", path);
}

static const char *fake_variable(void *data, const char *name) {
    static const char *const variables[][2] = {{"TERM", "xterm-256color"},
                                               {"EDITOR", "vi"},
                                               {"SSH_AUTH_SOCK", "/tmp/agent/sock"},
                                               {"BAD", "a\xff"},
                                               {"GITHUB_TOKEN", "t"}};
    for (size_t i = 0; i < ELEMENTS(variables); i++)
        if (!strcmp(variables[i][0], name))
            return variables[i][1];
    return NULL;
}

static const struct policy_host fake_host = {
    .resolve = fake_resolve,
    .read = fake_read,
    .variable = fake_variable,
    .home = "/home/me",
    .state = "/home/me/.local/state/doorward",
    .runtime = "/run/user/1000/doorward",
};
