/* terminal.c: see terminal.h. runs in: controller */
#include "control/terminal.h"

#include <errno.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"

/* One process has one terminal to put back, and a signal handler can reach only what is global. */
static struct {
    volatile sig_atomic_t raw;
    int fd;
    struct termios before;
} saved = {.fd = -1};

static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};

/* tcsetattr(3) is async-signal-safe (signal-safety(7)). */
static void restore_and_die(int number) {
    if (saved.raw)
        tcsetattr(saved.fd, TCSANOW, &saved.before);
    signal(number, SIG_DFL);
    raise(number);
}

void terminal_raw(int fd) {
    struct termios t;
    if (saved.raw || !isatty(fd) || tcgetattr(fd, &t) < 0)
        return;
    saved.fd = fd;
    saved.before = t;
    for (size_t i = 0; i < ELEMENTS(crashes); i++)
        signal(crashes[i], restore_and_die);
    signal(SIGTTOU, SIG_IGN); /* moved to the background we must still be able to put it back */
    saved.raw = 1;
    cfmakeraw(&t);
    tcsetattr(fd, TCSANOW, &t);
}

void terminal_restore(void) {
    if (!saved.raw)
        return;
    tcsetattr(saved.fd, TCSANOW, &saved.before);
    saved.raw = 0;
    for (size_t i = 0; i < ELEMENTS(crashes); i++)
        signal(crashes[i], SIG_DFL);
}
