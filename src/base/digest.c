/* digest.c: see digest.h. runs in: all */
#include "base/digest.h"

#define OPENSSL_API_COMPAT 10101 /* SHA256_Init and its kin are "deprecated" for EVP; the reason stands in digest.h */
#include <errno.h>
#include <openssl/sha.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

static void hex(const unsigned char raw[SHA256_DIGEST_LENGTH], char ret[DIGEST_HEX]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_DIGEST_LENGTH; i++) {
        ret[2 * i] = digits[raw[i] >> 4];
        ret[2 * i + 1] = digits[raw[i] & 15];
    }
    ret[2 * SHA256_DIGEST_LENGTH] = 0;
}

void digest_hex(const void *bytes, size_t n, char ret[DIGEST_HEX]) {
    unsigned char raw[SHA256_DIGEST_LENGTH];
    SHA256_CTX c;
    SHA256_Init(&c);
    SHA256_Update(&c, bytes, n);
    SHA256_Final(raw, &c);
    hex(raw, ret);
}

int digest_copy(int from, int to, uint64_t max, char ret[DIGEST_HEX], uint64_t *ret_n) {
    enum { CHUNK = 65536 };
    _cleanup_free_ char *chunk = malloc(CHUNK);
    unsigned char raw[SHA256_DIGEST_LENGTH];
    uint64_t total = 0;
    SHA256_CTX c;
    if (!chunk)
        return -ENOMEM;
    SHA256_Init(&c);
    for (;;) {
        ssize_t r = fd_read_all(from, chunk, CHUNK);
        if (r < 0)
            return (int)r;
        if (r == 0)
            break;
        total += (uint64_t)r;
        if (total > max)
            return -EFBIG;
        SHA256_Update(&c, chunk, (size_t)r);
        int w = to < 0 ? 0 : fd_write_all(to, chunk, (size_t)r);
        if (w < 0)
            return w;
    }
    SHA256_Final(raw, &c);
    hex(raw, ret);
    if (ret_n)
        *ret_n = total;
    return 0;
}

int digest_is_hex(const char *s) {
    return strlen(s) == DIGEST_HEX - 1 && strspn(s, "0123456789abcdef") == DIGEST_HEX - 1;
}
