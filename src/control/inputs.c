/* inputs.c: see inputs.h. runs in: controller (untrusted input: bytes that are never interpreted) */
#include "control/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "export/blob.h"

struct fixing {
    const struct place *place;
    const char *run;
    bool one_step;
    json_t *list;
};

/* A blob that is new carries the time of the file it came from, which tools as make look at. */
static int store_file(const struct fixing *f, int fd, const struct stat *st, struct blob *ret, struct error *err) {
    char path[BLOB_PATH_MAX];
    unsigned mode = st->st_mode & 0777;
    if (blob_have(f->place->state_fd, fd, UINT64_MAX, mode, ret))
        return 0;
    int r = blob_store(f->place->state_fd, f->run, fd, UINT64_MAX, mode, ret, err);
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    if (r == 0)
        utimensat(f->place->state_fd, blob_path(ret->digest, ret->mode, path), times, AT_SYMLINK_NOFOLLOW);
    return r;
}

static int point_at_blob(const struct fixing *f, struct plan_input *input, const struct blob *b, struct error *err) {
    char path[BLOB_PATH_MAX], *source;
    if (asprintf(&source, "%s/%s", f->place->state, blob_path(b->digest, b->mode, path)) < 0)
        return error_set(err, -ENOMEM, "out of memory");
    free(input->source);
    input->source = source;
    return 0;
}

static int note(const struct fixing *f, json_t *row, struct error *err) {
    return json_array_append_new(f->list, row) < 0 ? error_set(err, -ENOMEM, "out of memory") : 0;
}

static int fix_one(const struct fixing *f, const struct plan *p, struct plan_input *input, struct error *err) {
    struct stat st;
    struct blob b;
    char safe[512];
    str_safe(safe, sizeof(safe), input->source);
    /* O_NONBLOCK: the name may have become a FIFO since the plan was made, and would hold us up. */
    _cleanup_fd_ int fd = open(input->source, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return place_error(err, -errno, "step %s: input %s: cannot read %s", p->step, input->target, safe);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, -EINVAL, "step %s: input %s: %s is no longer a regular file", p->step, input->target,
                         safe);
    if (f->one_step && (input->sensitive || st.st_size > (off_t)INPUTS_LIVE_FROM))
        return note(f,
                    json_pack("{s:s, s:s, s:s, s:b}", "step", p->step, "target", input->target, "source", input->source,
                              "live", 1),
                    err);
    int r = store_file(f, fd, &st, &b, err);
    if (r < 0)
        return error_wrap(err, "step %s: input %s", p->step, input->target);
    r = note(f,
             json_pack("{s:s, s:s, s:s, s:s, s:I, s:i}", "step", p->step, "target", input->target, "source",
                       input->source, "digest", b.digest, "size", (json_int_t)b.size, "mode", (int)b.mode),
             err);
    return r < 0 ? r : point_at_blob(f, input, &b, err);
}

/* Sockets and devices that a policy let in stay what they are. */
static bool is_regular(const struct plan_input *input) {
    struct stat st;
    return !input->directory && input->kind != PLAN_OVERLAY && stat(input->source, &st) == 0 && S_ISREG(st.st_mode);
}

int inputs_fix(const struct place *p, const char run[ULID_TEXT], struct plan *plans, size_t n, json_t **ret,
               struct error *err) {
    _cleanup_json_ json_t *list = json_array();
    struct fixing f = {p, run, n == 1, list};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < plans[i].n_inputs; k++) {
            struct plan_input *input = &plans[i].inputs[k];
            int r = is_regular(input) ? fix_one(&f, &plans[i], input, err) : 0;
            if (r < 0)
                return r;
        }
    *ret = TAKE_PTR(list);
    return 0;
}
