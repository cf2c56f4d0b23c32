/* digest.h: SHA-256 (FIPS 180-4), the one digest of doorward, as lower-case hex.
 *
 * Uses OpenSSL's SHA256_* functions, not EVP: they need no library set-up, which costs
 * more than a whole start of doorward may. runs in: all */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DIGEST_HEX 65 /* 64 digits and NUL */

/* Digest of `n` bytes as hex. */
void digest_hex(const void *bytes, size_t n, char ret[DIGEST_HEX]);

/* Copies everything from `from` to `to` (either may be -1 for "only digest" / not allowed for from),
 * at most `max` bytes, and gives digest and size. -EFBIG when there is more. */
int digest_copy(int from, int to, uint64_t max, char ret[DIGEST_HEX], uint64_t *ret_n);

/* True when `s` is 64 lower-case hex digits. */
int digest_is_hex(const char *s);
