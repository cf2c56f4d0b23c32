/* place.c: see place.h.
 * runs in: controller, cli (untrusted input: environment variables, as far as the caller's user is trusted) */
#include "control/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

static const struct {
    int code;
    const char *remedy;
} remedies[] = {
    {-ENOSPC, "free some space there"},
    {-EDQUOT, "free some of your quota there"},
    {-EROFS, "the file system is read-only: choose another folder with XDG_STATE_HOME"},
    {-EMFILE, "too many files are open: raise the limit with ulimit -n, at least 64"},
    {-ENFILE, "the host has no file descriptors left: see fs.file-max"},
    {-ENOMEM, "the host has no memory left"},
    {-EACCES, "give this user access, or choose another folder with XDG_STATE_HOME"},
    {-EPERM, "give this user access, or choose another folder with XDG_STATE_HOME"},
};

int place_error(struct error *err, int code, const char *format, ...) {
    char text[ERROR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (size_t i = 0; i < ELEMENTS(remedies); i++)
        if (remedies[i].code == code)
            return error_set(err, code, "%s: %s; %s", text, strerror(-code), remedies[i].remedy);
    return error_errno(err, code, "%s", text);
}

void place_close(struct place *p) {
    free(p->state);
    free(p->runtime);
    free(p->config);
    fd_close(p->state_fd);
    *p = (struct place)PLACE_EMPTY;
}

/* One folder: the variable that moves it, where it is beneath the home folder, and where root's is. */
struct rule {
    const char *variable, *below_home, *of_root;
};

static const struct rule state_rule = {"XDG_STATE_HOME", ".local/state", "/var/lib"};
static const struct rule runtime_rule = {"XDG_RUNTIME_DIR", NULL, "/run"};
static const struct rule config_rule = {"XDG_CONFIG_HOME", ".config", "/etc"};

static int absolute(const char *variable, const char *value, struct error *err) {
    char safe[256];
    if (value[0] == '/' && str_is_utf8(value, strlen(value), NULL) && strlen(value) < PATH_MAX - 128)
        return 0;
    return error_set(err, -EINVAL, "%s is \"%s\", which is no absolute path in UTF-8; set it to one, or unset it",
                     variable, str_safe(safe, sizeof(safe), value));
}

/* Puts "FOLDER/doorward" together; *ret stays NULL when the rule has no answer for an ordinary user. */
static int find_one(const struct rule *rule, bool root, char **ret, struct error *err) {
    const char *variable = rule->variable, *below = "", *value = getenv(variable);
    if (!value || !*value) {
        variable = "HOME";
        below = rule->below_home;
        value = root ? rule->of_root : getenv("HOME");
        if (root)
            below = "";
        else if (!below)
            return 0;
    }
    if (!value || !*value)
        return error_set(err, -EINVAL,
                         "neither %s nor HOME is set, so there is no place for doorward's files; set one of them",
                         rule->variable);
    int r = absolute(variable, value, err);
    if (r == 0 && asprintf(ret, "%s%s%s/doorward", value, *below ? "/" : "", below) < 0) {
        *ret = NULL;
        r = error_set(err, -ENOMEM, "out of memory");
    }
    return r;
}

static int find_all(struct place *p, struct error *err) {
    p->root = geteuid() == 0;
    int r = find_one(&state_rule, p->root, &p->state, err);
    if (r == 0)
        r = find_one(&runtime_rule, p->root, &p->runtime, err);
    if (r == 0)
        r = find_one(&config_rule, p->root, &p->config, err);
    if (r == 0 && !p->runtime && asprintf(&p->runtime, "%s/run", p->state) < 0) {
        p->runtime = NULL;
        r = error_set(err, -ENOMEM, "out of memory");
    }
    return r;
}

int place_find(struct place *ret, struct error *err) {
    struct place p = PLACE_EMPTY;
    int r = find_all(&p, err);
    if (r < 0)
        place_close(&p);
    else
        *ret = p;
    return r;
}

/* mkdir -p, 0700 as the XDG base directory specification asks of folders that are missing. The parents are the
 * user's and may be links; only the last folder is ours. A parent that exists may be one that we could not have made:
 * why that failed matters only when the next step finds it missing. */
static int make_folders(const char *path) {
    char part[PATH_MAX];
    int refused = 0;
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            refused = errno == ENOENT && refused ? refused : -errno;
        *slash = '/';
    }
    if (mkdir(part, 0700) == 0 || errno == EEXIST)
        return 0;
    return errno == ENOENT && refused ? refused : -errno;
}

static int open_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int check_folder(int fd, const char *what, const char *path, struct error *err) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return place_error(err, -errno, "%s folder %s", what, path);
    if (st.st_uid != geteuid())
        return error_set(err, -EPERM,
                         "%s folder %s belongs to user %u, not to %u who runs doorward; remove it or choose another",
                         what, path, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & 077)
        return error_set(err, -EPERM, "%s folder %s is open to other users (mode %04o); close it: chmod 700 %s", what,
                         path, (unsigned)st.st_mode & 07777, path);
    return 0;
}

static int make_and_open(const char *what, const char *path, struct error *err) {
    char safe[512];
    str_safe(safe, sizeof(safe), path);
    int fd = open_folder(path);
    if (fd == -ENOENT) {
        int r = make_folders(path);
        if (r < 0)
            return place_error(err, r, "cannot make the %s folder %s", what, safe);
        fd = open_folder(path);
    }
    if (fd == -ENOTDIR || fd == -ELOOP)
        return error_set(err, fd, "%s folder %s is not a folder (it may be a link); remove it", what, safe);
    if (fd < 0)
        return place_error(err, fd, "cannot open the %s folder %s", what, safe);
    int r = check_folder(fd, what, safe, err);
    if (r < 0) {
        fd_close(fd);
        return r;
    }
    return fd;
}

/* The kernel's own name of the open folder, so that a link on the way to it cannot hide it from a comparison. */
static int canonical(int fd, char **ret) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n < 0)
        return -errno;
    path[n] = 0;
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    free(*ret);
    *ret = copy;
    return 0;
}

int place_open(struct place *p, struct error *err) {
    int fd = make_and_open("state", p->state, err);
    if (fd < 0)
        return fd;
    fd_close(p->state_fd);
    p->state_fd = fd;
    int r = canonical(fd, &p->state);
    return r < 0 ? place_error(err, r, "cannot read /proc/self/fd; doorward needs /proc") : 0;
}

int place_open_runtime(const struct place *p, struct error *err) {
    return make_and_open("runtime", p->runtime, err);
}

static int make_run(const struct place *p, const char *name, struct error *err) {
    if (mkdirat(p->state_fd, name, 0700) == 0)
        return 0;
    if (errno == ENOENT && (mkdirat(p->state_fd, "runs", 0700) == 0 || errno == EEXIST) &&
        mkdirat(p->state_fd, name, 0700) == 0)
        return 0;
    return place_error(err, -errno, "cannot make %s/%s", p->state, name);
}

int place_open_run(const struct place *p, const char run[ULID_TEXT], bool make, struct error *err) {
    char name[64];
    snprintf(name, sizeof(name), "runs/%s", run);
    int r = make ? make_run(p, name, err) : 0;
    if (r < 0)
        return r;
    int fd = openat(p->state_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? place_error(err, -errno, "cannot open %s/%s", p->state, name) : fd;
}
