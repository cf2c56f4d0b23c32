/* output.h: answers on standard output. runs in: cli */
#pragma once

#include "base/buf.h"
#include "base/json.h"

/* Prints one line of JSON in canonical order, with everything beyond ASCII escaped: harmless on a terminal. 0 or -errno. */
int output_json(const json_t *j, struct error *err);

/* Prints a text. 0 or -errno; -ENOMEM when it could not be made. */
int output_page(const struct buf *page, struct error *err);
