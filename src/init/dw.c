/* dw.c: the worker's helper inside the sandbox.
 * runs in: sandbox, as the worker (untrusted input: its arguments; holds: nothing) */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/inside.h"

static int connect_init(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = INSIDE_SOCKET};
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* `dw refuse REASON...`: the task cannot or must not be done; the run then ends as `refused` (76). */
static int refuse(int argc, char **argv) {
    static struct wire_message m;
    char reason[INNER_REASON_MAX + 1] = "";
    size_t n = 0;
    for (int i = 0; i < argc; i++) {
        int w = snprintf(reason + n, sizeof(reason) - n, "%s%s", i ? " " : "", argv[i]);
        if (w < 0 || (size_t)w >= sizeof(reason) - n) {
            fprintf(stderr, "dw: refuse: the reason is longer than %d bytes: shorten it\n", INNER_REASON_MAX);
            return 2;
        }
        n += (size_t)w;
    }
    if (n == 0) {
        fprintf(stderr, "dw: refuse: say why: dw refuse REASON\n");
        return 2;
    }
    _cleanup_fd_ int fd = connect_init();
    unsigned char answer = 0;
    wire_begin(&m, INNER_REFUSAL);
    wire_put_text(&m, reason);
    int r = fd < 0 ? fd : wire_send(fd, &m);
    if (r == 0 && recv(fd, &answer, 1, 0) != 1)
        r = -EPIPE;
    if (r < 0 || !answer) {
        fprintf(stderr, "dw: refuse: not recorded: %s\n", r < 0 ? strerror(-r) : "too many were declared already");
        return 1;
    }
    return 0;
}

static const struct {
    const char *name, *usage;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"refuse", "dw refuse REASON   declare that this task is refused, and why; then exit", refuse},
};

int dw_main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < ELEMENTS(verbs); i++)
        if (!strcmp(argv[1], verbs[i].name))
            return verbs[i].run(argc - 2, argv + 2);
    for (size_t i = 0; i < ELEMENTS(verbs); i++)
        fprintf(stderr, "usage: %s\n", verbs[i].usage);
    return 2;
}
