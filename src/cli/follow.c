/* follow.c: see follow.h. runs in: cli (untrusted input: the journal; holds: nothing) */
#include "cli/follow.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "audit/journal.h"
#include "base/fd.h"
#include "control/control.h"

enum { LOOK_MS = 1000, LOOK_WITHOUT_NOTIFY_MS = 200 };

int follow_watch(const struct place *place, const char run[ULID_TEXT]) {
    _cleanup_free_ char *path = NULL;
    _cleanup_fd_ int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0 || asprintf(&path, "%s/runs/%s/%s", place->state, run, JOURNAL_NAME) < 0 ||
        inotify_add_watch(fd, path, IN_MODIFY) < 0)
        return -1;
    return TAKE_FD(fd);
}

bool follow_wait(int notify) {
    struct pollfd fds[] = {{.fd = notify, .events = POLLIN}, {.fd = STDOUT_FILENO, .events = 0}};
    char events[4096];
    poll(fds, ELEMENTS(fds), notify < 0 ? LOOK_WITHOUT_NOTIFY_MS : LOOK_MS);
    while (notify >= 0 && read(notify, events, sizeof(events)) > 0)
        ;
    return !(fds[1].revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* Reads on; *ret is the body of the last record so far. */
static int read_on(struct journal_reader *reader, json_t **ret, struct error *err) {
    int r;
    do {
        _cleanup_json_ json_t *record = NULL;
        r = journal_reader_next(reader, &record, err);
        if (r <= 0)
            break;
        json_decref(*ret);
        *ret = json_incref(json_object_get(record, "body"));
    } while (r > 0);
    return r;
}

int follow_to_end(const struct place *place, const char run[ULID_TEXT], int dirfd, json_t **ret, struct error *err) {
    _cleanup_journal_reader_ struct journal_reader *reader = NULL;
    _cleanup_json_ json_t *last = NULL;
    _cleanup_fd_ int notify = follow_watch(place, run);
    bool lost = false;
    int r = journal_reader_open(dirfd, &reader, err);
    while (r == 0) {
        bool live = journal_is_live(dirfd); /* asked first: it may write its end between question and reading */
        r = read_on(reader, &last, err);
        if (r < 0 || journal_reader_report(reader)->ended)
            break;
        if (!live && lost)
            return error_set(err, -EIO, "run %s has no end on record and no live controller", run);
        if (!live && (r = control_lose(place, run, err)) < 0)
            return r;
        lost = !live;
        if (live)
            follow_wait(notify);
    }
    if (r == 0)
        *ret = TAKE_PTR(last);
    return r;
}
