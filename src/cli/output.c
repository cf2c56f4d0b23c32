/* output.c: see output.h. runs in: cli */
#include "cli/output.h"

#include <errno.h>
#include <stdio.h>

static int put_file(const char *bytes, size_t n, void *to) {
    return fwrite(bytes, 1, n, to) == n ? 0 : -1;
}

int output_json(const json_t *j, struct error *err) {
    if (json_dump_callback(j, put_file, stdout, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII) < 0 ||
        putchar('\n') == EOF)
        return error_set(err, -EIO, "cannot write the answer to standard output");
    return 0;
}

int output_page(const struct buf *page, struct error *err) {
    if (page->failed)
        return error_set(err, -ENOMEM, "out of memory");
    if (fwrite(page->bytes, 1, page->n, stdout) != page->n)
        return error_errno(err, -errno, "cannot write standard output");
    return 0;
}
