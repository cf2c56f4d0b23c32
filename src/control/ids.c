/* ids.c: see ids.h. runs in: controller */
#include "control/ids.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fd.h"
#include "control/live.h"

#define LOCK_NAME "ids.lock"

int ids_take(const struct place *p, uint32_t seed, struct ids *ret, struct error *err) {
    if (!p->root) {
        *ret = (struct ids)IDS_EMPTY;
        return 0;
    }
    _cleanup_fd_ int folder = place_open_runtime(p, err);
    if (folder < 0)
        return folder;
    _cleanup_fd_ int fd = openat(folder, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return place_error(err, -errno, "cannot open %s/%s", p->runtime, LOCK_NAME);
    for (uint32_t i = 0; i < IDS_SLOTS; i++) {
        uint32_t slot = (seed + i) % IDS_SLOTS;
        int r = live_lock(fd, F_WRLCK, slot, 1);
        if (r == 0) {
            *ret = (struct ids){TAKE_FD(fd), slot, IDS_POOL_FIRST + slot * IDS_PER_RUN};
            return 0;
        }
        if (r != -EAGAIN)
            return place_error(err, r, "cannot lock %s/%s", p->runtime, LOCK_NAME);
    }
    return error_set(err, -EAGAIN, "all %u ranges of host ids are taken by runs that live; wait for one to end",
                     IDS_SLOTS);
}

void ids_leave(struct ids *i) {
    i->fd = fd_close(i->fd);
}
