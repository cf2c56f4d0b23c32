/* harmless.h: what a worker writes, made fit for a terminal that is not the worker's.
 *
 * A terminal obeys what it prints: sequences move the cursor over what a person has read, set the title, write the
 * clipboard, ask for answers that arrive as typed input (CVE-2003-0063 and its descendants). So text passes and all
 * else is shown as text: control characters of C0 and C1, broken UTF-8, bidirectional controls. Colours (SGR, ECMA-48
 * 8.3.117) pass but for blinking and concealed; a carriage return without a line feed becomes a new line, so that
 * nothing that was printed is overwritten.
 * runs in: controller (untrusted input: the worker's bytes) */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

enum { HARMLESS_HELD = 32 };

/* A stream under way; all zero at its begin. Of constant size: what an unfinished sequence holds back is bounded. */
struct harmless {
    unsigned char held[HARMLESS_HELD];
    size_t n;
    bool coloured; /* a colour was passed that no reset has ended */
};

/* Appends to `to` what may be printed of `bytes`, at most four times their number and what was held back. An unfinished
 * character or sequence is held for the next call. 0 or -ENOMEM. */
int harmless_put(struct harmless *h, struct buf *to, const char *bytes, size_t n);

/* The stream has ended: what was held is shown as text, and colours are reset. 0 or -ENOMEM. */
int harmless_end(struct harmless *h, struct buf *to);
