/* blob.c: the name that git gives to a file's bytes. runs in: surveyor (untrusted input: bytes that are only digested) */
#define OPENSSL_API_COMPAT 10101 /* as in base/digest.c */
#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <unistd.h>

#include "survey/survey.h"

enum { SHA1_BYTES = 20, CHUNK = 65536 };

struct naming {
    bool sha1;
    SHA_CTX one;
    SHA256_CTX two;
};

static void update(struct naming *n, const void *bytes, size_t size) {
    if (n->sha1)
        SHA1_Update(&n->one, bytes, size);
    else
        SHA256_Update(&n->two, bytes, size);
}

static void begin(struct naming *n, uint64_t size, size_t oid) {
    char head[32];
    n->sha1 = oid == SHA1_BYTES;
    SHA1_Init(&n->one);
    SHA256_Init(&n->two);
    update(n, head, (size_t)snprintf(head, sizeof(head), "blob %llu", (unsigned long long)size) + 1);
}

static void end(struct naming *n, size_t oid, char ret[SURVEY_OID_MAX]) {
    unsigned char raw[SHA256_DIGEST_LENGTH];
    if (n->sha1)
        SHA1_Final(raw, &n->one);
    else
        SHA256_Final(raw, &n->two);
    for (size_t i = 0; i < oid; i++)
        snprintf(ret + 2 * i, 3, "%02x", raw[i]);
}

void blob_name_of(const void *bytes, size_t size, size_t oid, char ret[SURVEY_OID_MAX]) {
    struct naming n;
    begin(&n, size, oid);
    update(&n, bytes, size);
    end(&n, oid, ret);
}

int blob_name(int fd, uint64_t size, size_t oid, char ret[SURVEY_OID_MAX]) {
    static char chunk[CHUNK];
    struct naming n;
    ssize_t got;
    begin(&n, size, oid);
    while ((got = read(fd, chunk, sizeof(chunk))) > 0)
        update(&n, chunk, (size_t)got);
    if (got < 0)
        return -errno;
    end(&n, oid, ret);
    return 0;
}
