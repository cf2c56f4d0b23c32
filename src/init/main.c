/* main.c: which of the three programs this is.
 * runs in: sandbox (untrusted input: the worker's arguments to dw; holds: nothing) */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "init/inside.h"

int inside_begin(void) {
    sigset_t all;
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    sigfillset(&all);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return -errno;
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    int fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

int main(int argc, char **argv, char **env) {
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";
    if (!strcmp(name, "init"))
        return init_main();
    if (!strcmp(name, "reaper"))
        return reaper_main(argc, argv, env);
    return dw_main(argc, argv);
}
