/* final.c: see final.h. runs in: controller, cli */
#include "control/final.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "control/control.h"

json_t *final_new(const char *run, const char *stop, int exit_status, const char *message) {
    return json_pack("{s:i, s:s, s:s, s:i, s:n, s:[], s:[], s:[], s:[], s:{}, s:s}", "version", 1, "run", run, "stop",
                     stop, "exit", exit_status, "step", "limits_hit", "revoked", "in_doubt", "artifacts", "used",
                     "message", message);
}

void final_add_step(json_t *final, const char *step, const struct step_result *r) {
    size_t i;
    json_t *hit, *hits = stop_limits_json(&r->stop);
    json_array_foreach(hits, i, hit) {
        json_object_set_new(hit, "step", json_string(step));
    }
    json_array_extend(json_object_get(final, "limits_hit"), hits);
    json_decref(hits);
    json_array_extend(json_object_get(final, "artifacts"), r->artifacts);
    json_object_set(json_object_get(final, "used"), step, r->used);
}

void final_write(int fd, const json_t *final) {
    enum { READER_MS = 10000, CHUNK = 512 };
    _cleanup_free_ char *text = json_canonical(final);
    size_t n = text ? strlen(text) : 0;
    if (!text || fd < 0)
        return;
    text[n] = '\n'; /* in place of the NUL */
    for (size_t done = 0; done <= n;) {
        struct pollfd p = {fd, POLLOUT, 0};
        if (poll(&p, 1, READER_MS) <= 0)
            return;
        ssize_t w = write(fd, text + done, n + 1 - done < CHUNK ? n + 1 - done : CHUNK);
        if (w < 0 && errno != EINTR && errno != EAGAIN)
            return;
        done += w > 0 ? (size_t)w : 0;
    }
}

json_t *control_final_error(const struct error *err, int status_fd) {
    json_t *final = final_new("", "error", stop_exit(STOP_ERROR, 0), err->message);
    final_write(status_fd, final);
    return final;
}
