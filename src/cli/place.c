/* place.c: see common.h: the state folder, as every verb that reads or makes runs opens it. runs in: cli */
#include <errno.h>

#include "cli/common.h"
#include "control/control.h"

static void tell_lost(const char run[ULID_TEXT], const struct error *err) {
    if (err->code)
        fprintf(stderr, "doorward: run %s lost its controller, and could not be cleared up: %s\n", run, err->message);
    else
        fprintf(stderr, "doorward: run %s lost its controller; it is cleared up and on record as lost\n", run);
}

int cli_open_place(struct place *ret, struct error *err) {
    struct place p = PLACE_EMPTY;
    int r = place_find(&p, err);
    if (r == 0)
        r = place_open(&p, err);
    if (r == 0)
        r = control_sweep_lost(&p, tell_lost, err);
    if (r < 0)
        place_close(&p);
    else
        *ret = p;
    return r;
}

int cli_print_json(FILE *to, const json_t *j) {
    _cleanup_free_ char *text = json_canonical(j);
    if (!text)
        return -ENOMEM;
    fprintf(to, "%s\n", text);
    return 0;
}
