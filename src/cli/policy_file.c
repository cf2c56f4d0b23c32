/* policy_file.c: see common.h: a policy file, and this host as a policy asks about it.
 * runs in: cli (untrusted input: paths, a policy file's bytes) */
#include "cli/common.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

static enum policy_type type_of(mode_t mode) {
    return S_ISREG(mode) ? POLICY_FILE : S_ISDIR(mode) ? POLICY_FOLDER : S_ISSOCK(mode) ? POLICY_SOCKET : POLICY_OTHER;
}

static int resolve(void *data, const char *base, const char *path, char **ret_path, enum policy_type *ret_type,
                   struct error *err) {
    char safe[512];
    struct stat st;
    _cleanup_free_ char *joined = NULL;
    (void)data;
    str_safe(safe, sizeof(safe), path);
    if (asprintf(&joined, "%s%s%s", path[0] == '/' ? "" : base, path[0] == '/' ? "" : "/", path) < 0) {
        joined = NULL;
        return error_set(err, -ENOMEM, "out of memory");
    }
    _cleanup_free_ char *canonical = realpath(joined, NULL);
    if (!canonical || stat(canonical, &st) < 0)
        return error_errno(err, -errno, "%s", safe);
    *ret_type = type_of(st.st_mode);
    *ret_path = TAKE_PTR(canonical);
    return 0;
}

static int read_file(void *data, const char *base, const char *path, size_t max, char **ret, size_t *ret_n,
                     struct error *err) {
    struct stat st;
    (void)data;
    _cleanup_fd_ int folder = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fd = folder < 0 ? -errno : fd_open_beneath(folder, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return error_errno(err, fd, "%s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, -EINVAL, "%s is no regular file", path);
    return fd_read_file(fd, max, ret, ret_n, err);
}

static const char *variable(void *data, const char *name) {
    (void)data;
    return getenv(name);
}

void cli_host(const struct place *place, struct policy_host *ret) {
    const char *home = getenv("HOME");
    *ret = (struct policy_host){.resolve = resolve,
                                .read = read_file,
                                .variable = variable,
                                .home = home && *home ? realpath(home, NULL) : NULL,
                                .state = place->state,
                                .runtime = place->runtime};
}

void cli_host_free(struct policy_host *h) {
    free((char *)h->home);
    *h = (struct policy_host){0};
}

int cli_current_folder(char **ret, struct error *err) {
    char *path = getcwd(NULL, 0);
    if (!path)
        return error_errno(err, -errno, "the current folder cannot be found; change to one that exists");
    if (path[0] != '/') { /* "(unreachable)/..." of getcwd(3) */
        free(path);
        return error_set(err, -ENOENT, "the current folder cannot be reached from /; change to one that can");
    }
    *ret = path;
    return 0;
}

void cli_policy_free(struct cli_policy *p) {
    free(p->name);
    free(p->base);
    free(p->bytes);
    policy_free(p->policy);
    *p = (struct cli_policy){0};
}

/* The folder that the file's relative paths start from. A pipe (`<(...)`) has none: they start from the current one. */
static int find_base(const char *path, int fd, char **ret, struct error *err) {
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return cli_current_folder(ret, err);
    char *canonical = realpath(path, NULL);
    if (!canonical)
        return error_errno(err, -errno, "%s", path);
    char *slash = strrchr(canonical, '/');
    slash[slash == canonical] = 0; /* of "/" itself the slash stays */
    *ret = canonical;
    return 0;
}

static int read_bytes(const char *path, const char *safe, struct cli_policy *p, struct error *err) {
    struct stat st;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return error_set(err, -ENOENT, "there is no policy file %s; to run a command, write: doorward run -- %s", safe,
                         safe);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, -errno, "policy file %s", safe);
    if (S_ISDIR(st.st_mode))
        return error_set(err, -EISDIR, "policy file %s is a folder; name the file in it", safe);
    int r = fd_read_file(fd, POLICY_BYTES_MAX, &p->bytes, &p->n, err);
    return r < 0 ? error_wrap(err, "policy file %s", safe) : find_base(path, fd, &p->base, err);
}

int cli_read_policy(const char *path, struct cli_policy *ret, struct error *err) {
    char safe[512];
    struct cli_policy p = {0};
    int r = read_bytes(path, str_safe(safe, sizeof(safe), path), &p, err);
    if (r == 0 && !(p.name = strdup(safe)))
        r = error_set(err, -ENOMEM, "out of memory");
    if (r == 0)
        r = policy_parse(p.name, p.base, p.bytes, p.n, &p.policy, err);
    if (r < 0)
        cli_policy_free(&p);
    else
        *ret = p;
    return r;
}
