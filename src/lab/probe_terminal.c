/* probe_terminal.c: probes of the terminal of whoever started the sandbox, and of the calls that type into one.
 * runs in: probe, inside and outside */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>

#include "lab/probe.h"

#define HIGH_BITS (1UL << 32) /* the kernel's ioctl number has 32 bits, the register 64 */

static enum lab_result terminal(struct call *c) {
    _cleanup_fd_ int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (tty >= 0)
        return is_open(c, 0, "/dev/tty is the terminal of whoever started it");
    int err = errno;
    struct stat st;
    for (int fd = 0; fd < 3; fd++)
        if (isatty(fd))
            return is_open(c, 0, "descriptor %d is a terminal", fd);
    if (tcgetpgrp(0) >= 0 || (stat(fact(c, "tty") ? fact(c, "tty") : "/-", &st) == 0 &&
                              fact_number(c, "tty_ino") == st.st_ino && fact_number(c, "tty_dev") == st.st_dev))
        return is_open(c, err, "the terminal's device is there");
    return held(c, err, "no terminal");
}

/* Makes a terminal and opens its slave side; -errno. */
static int own_terminal_slave(int *ret_master) {
    *ret_master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*ret_master < 0)
        return -errno;
    char name[64];
    if (grantpt(*ret_master) < 0 || unlockpt(*ret_master) < 0 || ptsname_r(*ret_master, name, sizeof(name)) != 0)
        return -errno;
    int fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Tries an ioctl on a terminal of its own, on standard input and on no terminal at all. A filter answers all alike;
 * without one, a descriptor that is no terminal is answered ENOTTY, which tells that the call was reached. */
static enum lab_result typing(struct call *c, unsigned long request, void *argument) {
    static const unsigned long high[] = {0, HIGH_BITS, HIGH_BITS << 15, 0xffffffffUL << 32};
    _cleanup_fd_ int master = -1;
    _cleanup_fd_ int slave = own_terminal_slave(&master);
    _cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[] = {slave, 0, null};
    int last = 0;
    for (size_t f = 0; f < ELEMENTS(fds); f++)
        for (size_t h = 0; h < ELEMENTS(high) && fds[f] >= 0 && !(c->control && f == 1); h++) {
            long r = syscall(SYS_ioctl, fds[f], request | high[h], argument);
            last = errno;
            if (r >= 0)
                return is_open(c, 0, "accepted");
            /* The kernel may itself refuse terminals (dev.tty.legacy_tiocsti=0): then ENOTTY on /dev/null tells. */
            if (!refused(c, last) && last != EIO)
                return is_open(c, last, "the kernel's own code answered (%s)", strerror(last));
        }
    return held(c, last, "%s", strerror(last));
}

static enum lab_result tiocsti(struct call *c) {
    char x = ' ';
    return typing(c, TIOCSTI, &x);
}

static enum lab_result tioclinux(struct call *c) {
    char paste[2] = {3, 0}; /* TIOCL_PASTESEL */
    return typing(c, TIOCLINUX, paste);
}

static enum lab_result own_terminal(struct call *c) {
    _cleanup_fd_ int master = -1;
    _cleanup_fd_ int slave = own_terminal_slave(&master);
    char line[16] = "";
    if (slave < 0)
        return is_open(c, -slave, "no terminal can be made: %s", strerror(-slave));
    if (write(master, "hello\n", 6) != 6 || read(slave, line, sizeof(line) - 1) != 6)
        return is_open(c, errno, "a terminal passes no bytes");
    return held(c, 0, "made, and it passes a line");
}

const struct probe probes_terminal[] = {{"terminal", terminal},           {"tiocsti", tiocsti},
                                        {"tiocsti-interactive", tiocsti}, {"tioclinux", tioclinux},
                                        {"own-terminal", own_terminal},   {0}};
