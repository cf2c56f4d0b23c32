/* host.c: see host.h. runs in: launcher, cli (untrusted input: none, the files are the kernel's and the host's) */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

enum { EVIDENCE_MAX = 65536 }; /* enough for the mounts of a host with a thousand of them */

bool host_shows(int root, enum host_test test, const char *file, const char *text) {
    if (test == HOST_ALWAYS)
        return true;
    _cleanup_free_ char *bytes = NULL;
    _cleanup_fd_ int fd = openat(root, file + 1, (test == HOST_EXISTS ? O_PATH : O_RDONLY | O_NONBLOCK) | O_CLOEXEC);
    if (fd < 0 || test == HOST_EXISTS)
        return fd >= 0;
    bytes = malloc(EVIDENCE_MAX + 1);
    ssize_t n = bytes ? fd_read_all(fd, bytes, EVIDENCE_MAX) : -ENOMEM;
    if (n < 0)
        return false;
    bytes[n] = 0;
    if (test == HOST_IS)
        return strcspn(bytes, "\n") == strlen(text) && !strncmp(bytes, text, strlen(text));
    return (strstr(bytes, text) != NULL) == (test == HOST_HAS);
}

static bool lists(const char *doors, const char *door) {
    size_t n = strlen(door);
    for (const char *at = doors; n && (at = strstr(at, door)); at += n)
        if ((at == doors || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

static bool concerns(const struct host_reason *r, const char *door, int code, bool superuser) {
    bool listed = r->codes[0] == 0;
    for (size_t i = 0; i < HOST_CODES; i++)
        listed = listed || (r->codes[i] != 0 && r->codes[i] == code);
    return listed && (!r->doors || lists(r->doors, door)) && (r->who != HOST_USER || !superuser) &&
           (r->who != HOST_ROOT || superuser);
}

const struct host_reason *host_explain(int root, const char *door, int code, bool superuser) {
    for (size_t i = 0; i < host_n_reasons; i++) {
        const struct host_reason *r = &host_reasons[i];
        if (concerns(r, door, code, superuser) && host_shows(root, r->test, r->file, r->text))
            return r;
    }
    return NULL;
}

const char *host_door(const char *message, char to[32]) {
    static const char *const before[] = {"wall ", "limits.", "door "};
    to[0] = 0;
    for (const char *clause = message; clause; clause = strstr(clause, ": "), clause += clause ? 2 : 0)
        for (size_t i = 0; i < ELEMENTS(before); i++)
            if (!strncmp(clause, before[i], strlen(before[i])))
                snprintf(to, 32, "%.*s", (int)strspn(clause + strlen(before[i]), "abcdefghijklmnopqrstuvwxyz-"),
                         clause + strlen(before[i]));
    return to;
}

int host_add_remedy(struct error *err, bool superuser) {
    char door[32];
    size_t n = strlen(err->message);
    if (strpbrk(err->message, ";("))
        return err->code;
    _cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct host_reason *r = host_explain(root, host_door(err->message, door), err->code, superuser);
    if (r)
        snprintf(err->message + n, sizeof(err->message) - n, "; %s; %s", r->what, r->remedy);
    return err->code;
}

int host_landlock(void) {
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? -errno : (int)abi;
}
