/* probe_setup.c: probes of how a sandbox is set up: what one step leaves for the next, and mount targets that lead
 * through links of the workspace.
 * runs in: probe, inside and outside */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lab/probe.h"

/* The mark of next-tenant under a System V key of this lab run. */
static key_t mark_key(const struct call *c) {
    return (key_t)fact_number(c, "shm") + 1;
}

/* Name of the first mark of an earlier step that is here, or NULL. */
static const char *find_mark(const struct call *c, const char *const *places, size_t n) {
    static char path[4096];
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/mark-%s", places[i], fact(c, "nonce"));
        if (places[i][0] && access(path, F_OK) == 0)
            return path;
    }
    if (shmget(mark_key(c), 0, 0) >= 0)
        return "a System V segment";
    snprintf(path, sizeof(path), "/mark-%s", fact(c, "nonce"));
    mqd_t q = mq_open(path, O_RDONLY | O_NONBLOCK);
    if (q != (mqd_t)-1) {
        mq_close(q);
        return "a message queue";
    }
    return NULL;
}

static void leave_marks(const struct call *c, const char *const *places, size_t n) {
    char path[4096];
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/mark-%s", places[i], fact(c, "nonce"));
        if (places[i][0])
            fd_close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    }
    (void)shmget(mark_key(c), 4096, IPC_CREAT | 0666);
    snprintf(path, sizeof(path), "/mark-%s", fact(c, "nonce"));
    struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 8};
    mqd_t q = mq_open(path, O_RDWR | O_CREAT, 0666, &a);
    if (q != (mqd_t)-1)
        mq_close(q);
}

static enum lab_result next_tenant(struct call *c) {
    const char *home = getenv("HOME");
    const char *const places[] = {scratch(c), c->control ? "" : "/dev/shm", c->control || !home ? "" : home,
                                  c->control ? "" : "/var/tmp"};
    const char *found = find_mark(c, places, ELEMENTS(places));
    if (found)
        return is_open(c, 0, "%s of the step before is there", found);
    leave_marks(c, places, ELEMENTS(places));
    return held(c, ENOENT, "nothing was found, marks were left for the next");
}

/* Outside, to show what a set-up that follows links does: the folder appears in the victim's. */
static enum lab_result link_targets(struct call *c) {
    if (!c->control)
        return held(c, 0, "started; the harness looks at the victim's folder and the host's mounts");
    char path[4096], end[4096];
    struct stat st;
    snprintf(path, sizeof(path), "%s/links/dot/inner", fact(c, "dir"));
    snprintf(end, sizeof(end), "%s/victim/inner", fact(c, "dir"));
    if (mkdir(path, 0755) < 0)
        return held(c, errno, "the link was not followed");
    bool followed = stat(end, &st) == 0;
    rmdir(path);
    return followed ? is_open(c, 0, "a folder was made through the link") : held(c, 0, "the link was not followed");
}

const struct probe probes_setup[] = {{"next-tenant", next_tenant}, {"link-targets", link_targets}, {0}};
