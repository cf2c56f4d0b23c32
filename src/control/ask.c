/* ask.c: see ask.h. runs in: cli (untrusted input: none; the controller is the same user's) */
#include "control/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "control/place.h"

int ask_open(int run_fd, struct error *err) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" CONTROL_SOCKET_NAME, run_fd);
    if (fd < 0)
        return place_error(err, -errno, "cannot make a socket");
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
        return TAKE_FD(fd);
    if (errno == ENOENT || errno == ECONNREFUSED)
        return error_set(err, -ESRCH, "it has ended, or has only just begun");
    return place_error(err, -errno, "cannot reach the run's controller");
}

/* What stands in `m`: JSON, or a refusal. */
static int read_answer(struct wire_message *m, json_t **ret, struct error *err) {
    char text[WIRE_BODY_MAX];
    if (m->type == CONTROL_REFUSED) {
        int code = wire_get_code(m);
        wire_get_text(m, text, sizeof(text));
        return wire_end(m) < 0 ? error_set(err, -EPROTO, "the run's controller answers what is no answer")
                               : error_set(err, code, "%s", text);
    }
    wire_get_text(m, text, sizeof(text));
    if (wire_end(m) < 0 || (m->type != CONTROL_ANSWER && m->type != CONTROL_EVENT))
        return error_set(err, -EPROTO, "the run's controller answers what is no answer");
    return json_read(text, strlen(text), ret, err);
}

int ask_event(int fd, json_t **ret, struct error *err) {
    struct wire_message m;
    int r = wire_receive(fd, &m);
    if (r <= 0)
        return r < 0 ? error_errno(err, r, "the run's controller") : 0;
    r = read_answer(&m, ret, err);
    return r < 0 ? r : 1;
}

int ask(int fd, uint16_t request, bool has_argument, uint32_t argument, json_t **ret, struct error *err) {
    struct wire_message m;
    wire_begin(&m, request);
    if (has_argument)
        wire_put_u32(&m, argument);
    int r = wire_send(fd, &m);
    if (r == 0)
        r = ask_event(fd, ret, err);
    else
        error_errno(err, r, "the run's controller");
    return r > 0 ? 0 : r < 0 ? r : error_set(err, -ESRCH, "its controller ended, or has no room for another client");
}
