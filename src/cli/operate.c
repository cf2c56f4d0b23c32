/* operate.c: see operate.h. runs in: cli (untrusted input: the argument) */
#include "cli/operate.h"

#include "base/fd.h"
#include "cli/runs.h"

void operate_close(struct operated *o) {
    o->socket = fd_close(o->socket);
    o->dirfd = fd_close(o->dirfd);
    place_close(&o->place);
}

int operate_open(const char *word, struct operated *o, struct error *err) {
    int r = runs_open(&o->place, word, o->run, &o->dirfd, err);
    if (r < 0)
        return r;
    o->socket = ask_open(o->dirfd, err);
    return o->socket < 0 ? error_wrap(err, "run %s", o->run) : 0;
}

int operate_ask(struct operated *o, uint16_t request, bool has_argument, uint32_t argument, json_t **ret,
                struct error *err) {
    int r = ask(o->socket, request, has_argument, argument, ret, err);
    return r < 0 ? error_wrap(err, "run %s", o->run) : 0;
}
