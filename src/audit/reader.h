/* reader.h: what the writer needs of the reader when it takes an old journal over.
 * runs in: controller, cli */
#pragma once

#include "audit/chain.h"

/* Reads from `fd`, which stays the caller's (pread only: its offset does not move). */
int journal_reader_over(int fd, struct journal_reader **ret, struct error *err);

/* The chain as far as it was read, and where in the file it ends. */
const struct chain *journal_reader_chain(const struct journal_reader *r);
uint64_t journal_reader_bytes(const struct journal_reader *r);

/* The torn line, when the last call found one; valid until the next. */
const char *journal_reader_tail(const struct journal_reader *r, size_t *ret_n);
