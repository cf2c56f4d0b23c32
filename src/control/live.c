/* live.c: see live.h.
 * runs in: controller, cli (untrusted input: none, the folder is ours) */
#include "control/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

_Static_assert(ULID_TEXT <= LIVE_SLOT_BYTES, "a slot holds a run's name and a newline");

static int open_table(const struct place *p, struct error *err) {
    int fd = openat(p->state_fd, LIVE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? place_error(err, -errno, "cannot open %s/%s", p->state, LIVE_NAME) : fd;
}

/* Open-file-description locks (fcntl(2)): they belong to this description, are not dropped by some other close of the
 * file in this process, and end with the last copy of the descriptor. */
int live_lock(int fd, short type, uint64_t start, uint64_t n) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)n};
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

static int lock_slot(int fd, unsigned slot) {
    return live_lock(fd, F_WRLCK, (uint64_t)slot * LIVE_SLOT_BYTES, LIVE_SLOT_BYTES);
}

static void unlock_slot(int fd, unsigned slot) {
    live_lock(fd, F_UNLCK, (uint64_t)slot * LIVE_SLOT_BYTES, LIVE_SLOT_BYTES);
}

static int write_slot(int fd, unsigned slot, const char *run) {
    char line[LIVE_SLOT_BYTES + 1];
    snprintf(line, sizeof(line), "%-*s\n", LIVE_SLOT_BYTES - 1, run);
    ssize_t n = pwrite(fd, line, LIVE_SLOT_BYTES, (off_t)slot * LIVE_SLOT_BYTES);
    return n == LIVE_SLOT_BYTES ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* True when the slot holds the name of a run; what is no name counts as blank. */
static bool read_slot(int fd, unsigned slot, char ret[ULID_TEXT]) {
    char line[LIVE_SLOT_BYTES];
    if (pread(fd, line, sizeof(line), (off_t)slot * LIVE_SLOT_BYTES) < ULID_TEXT)
        return false;
    memcpy(ret, line, ULID_TEXT - 1);
    ret[ULID_TEXT - 1] = 0;
    return ulid_is_valid(ret);
}

int live_take(const struct place *p, const char run[ULID_TEXT], struct live *ret, struct error *err) {
    char name[ULID_TEXT];
    _cleanup_fd_ int fd = open_table(p, err);
    if (fd < 0)
        return fd;
    for (unsigned slot = 0; slot < LIVE_SLOTS_MAX; slot++) {
        int r = read_slot(fd, slot, name) ? -EAGAIN : lock_slot(fd, slot);
        if (r == -EAGAIN)
            continue;
        if (r < 0)
            return place_error(err, r, "cannot lock %s/%s", p->state, LIVE_NAME);
        if (read_slot(fd, slot, name)) { /* taken, and its controller died, between the two */
            unlock_slot(fd, slot);
            continue;
        }
        r = write_slot(fd, slot, run);
        if (r < 0)
            return place_error(err, r, "cannot write %s/%s", p->state, LIVE_NAME);
        *ret = (struct live){TAKE_FD(fd), slot};
        return 0;
    }
    return error_set(err, -EAGAIN, "%d runs live at this time, and there may not be more; wait for one to end",
                     LIVE_SLOTS_MAX);
}

void live_leave(struct live *l) {
    if (l->fd >= 0)
        write_slot(l->fd, l->slot, ""); /* where this fails the next sweep finds an ended run, and blanks it */
    live_close(l);
}

void live_close(struct live *l) {
    l->fd = fd_close(l->fd);
}

int live_each_dead(const struct place *p, int (*visit)(void *data, const char run[ULID_TEXT]), void *data,
                   struct error *err) {
    struct stat st;
    char run[ULID_TEXT];
    _cleanup_fd_ int fd = open_table(p, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return place_error(err, -errno, "cannot read %s/%s", p->state, LIVE_NAME);
    for (unsigned slot = 0; slot < LIVE_SLOTS_MAX && (off_t)slot * LIVE_SLOT_BYTES < st.st_size; slot++) {
        if (!read_slot(fd, slot, run) || lock_slot(fd, slot) < 0)
            continue;
        if (read_slot(fd, slot, run) && visit(data, run) == 0)
            write_slot(fd, slot, "");
        unlock_slot(fd, slot);
    }
    return 0;
}
