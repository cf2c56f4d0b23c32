/* sight.c: see launch.h. runs in: launcher, and its set-up child (untrusted input: file names of the input) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "launch/launch.h"
#include "plan/ignore.h"

enum sight sight_of(const struct plan_input *in, const char *path, bool directory, bool within) {
    if (in->exclude && ignore_matches(in->exclude, path, directory))
        return SIGHT_HIDDEN;
    if (!in->only || within || ignore_matches(in->only, path, directory))
        return SIGHT_SHOWN;
    return directory ? SIGHT_SEARCH : SIGHT_HIDDEN;
}

bool sight_is_folder(int dirfd, const struct dirent *e) {
    struct stat st;
    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    return fstatat(dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Looks for one thing below the folder that `only` names. 1, 0 or -errno. */
static int any_below(const struct plan_input *in, int dirfd, const char *name, const char *path, int depth) {
    if (depth > SIGHT_DEPTH_MAX)
        return -ELOOP;
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int found = dir || errno == EACCES ? 0 : -errno; /* one that cannot be listed shows nothing */
    if (!dir)
        fd_close(fd);
    for (struct dirent *e; dir && found == 0 && (e = readdir(dir));) {
        char below[PLAN_PATH_MAX + 1];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >= (int)sizeof(below)) {
            found = -ENAMETOOLONG;
            break;
        }
        bool directory = sight_is_folder(fd, e);
        enum sight s = sight_of(in, below, directory, false);
        found = s == SIGHT_SEARCH ? any_below(in, fd, e->d_name, below, depth + 1) : s == SIGHT_SHOWN;
    }
    if (dir)
        closedir(dir);
    return found;
}

int sight_decide(const struct plan_input *in, int dirfd, const char *name, const char *path, bool directory,
                 bool *within) {
    enum sight s = sight_of(in, path, directory, *within);
    if (s == SIGHT_SEARCH)
        return any_below(in, dirfd, name, path, 0);
    if (s == SIGHT_SHOWN && in->only)
        *within = true;
    return s == SIGHT_SHOWN;
}
