/* blob.h: the store of bytes by what they are.
 *
 * blobs/sha256/ab/REST in the state folder holds the file whose SHA-256 is abREST, mode 0400. A file has one mode, and
 * an input must keep its own: the same bytes with another mode stand beside it with that mode behind the name
 * ("REST.755"). A blob is on the disk before its name is: written under blobs/incoming/, synced, renamed, folder
 * synced. It is never changed.
 * runs in: controller (untrusted input: bytes that are never interpreted) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"

#define BLOB_PATH_MAX        96 /* "blobs/sha256/ab/" + 62 digits + ".755" */
#define BLOB_MODE_PLAIN      0400u
#define BLOB_MODE_EXECUTABLE 0500u

struct blob {
    char digest[DIGEST_HEX];
    uint64_t size;
    unsigned mode; /* permission bits, at most 0777 */
};

/* Path of a blob, relative to the state folder. Returns `to`. */
const char *blob_path(const char digest[DIGEST_HEX], unsigned mode, char to[BLOB_PATH_MAX]);

/* True when a blob with the bytes of `fd` (a regular file, read from its start) and this mode is there; it is then
 * *ret. Afterwards `fd` stands at its start again. */
bool blob_have(int state_fd, int fd, uint64_t max, unsigned mode, struct blob *ret);

/* Stores what can be read from `fd` (from its offset), at most `max` bytes. `run` names the file while it is
 * incomplete, so that what a dead run left can be found. -EFBIG when there is more than `max`. */
int blob_store(int state_fd, const char run[ULID_TEXT], int fd, uint64_t max, unsigned mode, struct blob *ret,
               struct error *err);

/* Removes what `run` left incomplete. */
void blob_sweep(int state_fd, const char run[ULID_TEXT]);
