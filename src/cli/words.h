/* words.h: figures and records as a person reads them. Everything foreign is made harmless (base/str.h).
 * runs in: cli (untrusted input: records' text; holds: nothing) */
#pragma once

#include "base/buf.h"
#include "base/json.h"

/* "12 ms", "1.25 s", "3 min 20 s", "2 h 05 min". Rounded: for exact figures there is --json. */
void words_took(struct buf *b, uint64_t us);
/* "512 B", "31.1 MiB". Rounded. */
void words_size(struct buf *b, uint64_t bytes);
/* "2026-11-29 20:02:26 UTC" */
void words_time(struct buf *b, uint64_t real_us);

/* One record in one line, without time and newline: its type's sentence, or for a type that has none its members. */
void words_record(struct buf *b, const json_t *record);

/* Pads with blanks until `b` is `width` columns longer than it was at `from`; always puts one. Characters count as one
 * column each, which holds for what doorward itself writes and for nearly every name. */
void words_pad(struct buf *b, size_t from, size_t width);
