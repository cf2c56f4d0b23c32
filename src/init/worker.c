/* worker.c: the last steps before the worker's own program: session, folder, look-up, exec.
 * runs in: sandbox, the child of the reaper (untrusted input: the policy's argv, already checked; holds: nothing) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "init/inside.h"

static void __attribute__((noreturn)) fail(volatile struct worker_failure *ret, enum worker_stage stage, int code) {
    ret->stage = stage;
    ret->code = code;
    _exit(127);
}

/* execve, and for a script without "#!" the shell, as every shell and execvp(3) do. */
static int run_file(const char *path, const struct worker *w) {
    execve(path, w->argv, w->env);
    if (errno != ENOEXEC)
        return -errno;
    size_t n = 0;
    while (w->argv[n])
        n++;
    char **argv = calloc(n + 2, sizeof(*argv));
    if (!argv)
        return -ENOMEM;
    argv[0] = (char *)"/bin/sh";
    argv[1] = (char *)path;
    memcpy(argv + 2, w->argv + 1, n * sizeof(*argv)); /* with the NULL; argv[0] is not carried */
    execve(argv[0], argv, w->env);
    free(argv);
    return -ENOEXEC;
}

static const char *variable(char **env, const char *name) {
    size_t n = strlen(name);
    for (; *env; env++)
        if (!strncmp(*env, name, n) && (*env)[n] == '=')
            return *env + n + 1;
    return "";
}

/* Each folder of PATH in turn; a file that is there but may not be executed outranks "not found", as in shells. */
static int look_up(const struct worker *w) {
    char path[8192];
    int result = -ENOENT;
    for (const char *p = variable(w->env, "PATH"); *p;) {
        size_t n = strcspn(p, ":");
        if (snprintf(path, sizeof(path), "%.*s/%s", (int)n, n ? p : ".", w->argv[0]) < (int)sizeof(path)) {
            int r = run_file(path, w);
            if (r == -ENOENT && access(path, F_OK) == 0)
                return -ELIBBAD; /* the file is there, its interpreter is not */
            if (r != -ENOENT && r != -ENOTDIR && result == -ENOENT)
                result = r;
        }
        p += n + (p[n] == ':');
    }
    return result;
}

void worker_start(const struct worker *w, volatile struct worker_failure *ret) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (w->session && setsid() < 0)
        fail(ret, WORKER_SESSION, errno);
    if (w->terminal && ioctl(0, TIOCSCTTY, 0) < 0)
        fail(ret, WORKER_SESSION, errno);
    if (chdir(w->directory) < 0)
        fail(ret, WORKER_DIRECTORY, errno);
    int r;
    if (strchr(w->argv[0], '/')) {
        r = run_file(w->argv[0], w);
        if (r == -ENOENT && access(w->argv[0], F_OK) == 0)
            r = -ELIBBAD;
    } else {
        r = look_up(w);
    }
    fail(ret, WORKER_PROGRAM, -r);
}
