/* index.c: git's index, read as hostile bytes. Only the entries: extensions are skipped, but one that says that entries
 * stand in another file is an error.
 * runs in: surveyor (untrusted input: the index) */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "survey/survey.h"

enum {
    HEAD = 12,
    STAT = 40,
    EXTENDED = 0x4000,
    SKIP_WORKTREE = 0x4000,
    ASSUME_VALID = 0x8000,
    GITLINK = 0160000,
    TYPE = 0170000
};

struct index_reader {
    const unsigned char *bytes;
    size_t n, at, oid;
    unsigned version;
};

static uint32_t be32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_hex(const unsigned char *raw, size_t n, char *to) {
    for (size_t i = 0; i < n; i++)
        snprintf(to + 2 * i, 3, "%02x", raw[i]);
}

/* The number of bytes that version 4 cuts from the path before (as offsets in packs are written). */
static int get_cut(struct index_reader *r, size_t *ret) {
    size_t v = 0;
    for (int i = 0; i < 4; i++) {
        if (r->at >= r->n)
            return -EBADMSG;
        unsigned char c = r->bytes[r->at++];
        v = v << 7 | (c & 127u);
        if (!(c & 128)) {
            *ret = v;
            return 0;
        }
        v++;
    }
    return -EBADMSG;
}

static int get_path(struct index_reader *r, size_t begin, struct index_entry *e) {
    size_t keep = 0;
    if (r->version == 4) {
        size_t before = strlen(e->path), cut = 0;
        if (get_cut(r, &cut) < 0 || cut > before)
            return -EBADMSG;
        keep = before - cut;
    }
    const unsigned char *text = r->bytes + r->at, *end = memchr(text, 0, r->n - r->at);
    size_t length = end ? (size_t)(end - text) : 0;
    if (end && keep + length == 0) /* an entry of a split index that stands for one in the other file */
        return -EOPNOTSUPP;
    if (!end || keep + length > PLAN_PATH_MAX)
        return -EBADMSG;
    memcpy(e->path + keep, text, length + 1);
    r->at += length + 1;
    if (r->version != 4)
        r->at = begin + (r->at - begin + 7) / 8 * 8; /* one to eight NULs */
    return r->at <= r->n ? 0 : -EBADMSG;
}

static int get_entry(struct index_reader *r, struct index_entry *e) {
    size_t begin = r->at, fixed = STAT + r->oid + 2;
    if (r->n - begin < fixed + 2)
        return -EBADMSG;
    const unsigned char *p = r->bytes + begin;
    unsigned flags = (unsigned)p[fixed - 2] << 8 | p[fixed - 1], more = 0;
    r->at += fixed;
    if (flags & EXTENDED && r->version >= 3) {
        more = (unsigned)p[fixed] << 8 | p[fixed + 1];
        r->at += 2;
    }
    e->mtime = be32(p + 8);
    e->mtime_ns = be32(p + 12);
    e->mode = be32(p + 24);
    e->size = be32(p + 36);
    e->stage = flags >> 12 & 3;
    e->skip =
        more & SKIP_WORKTREE || flags & ASSUME_VALID || (e->mode & TYPE) == GITLINK || (e->mode & TYPE) == 0040000;
    put_hex(p + STAT, r->oid, e->oid);
    return get_path(r, begin, e);
}

/* Extensions up to the trailing digest: four letters, a length. "link" is a split index, whose entries are elsewhere. */
static bool is_split(const struct index_reader *r) {
    for (size_t at = r->at; at + 8 + r->oid <= r->n; at += 8 + be32(r->bytes + at + 4)) {
        if (!memcmp(r->bytes + at, "link", 4))
            return true;
        if (be32(r->bytes + at + 4) > r->n)
            break;
    }
    return false;
}

int index_each(const unsigned char *bytes, size_t n, size_t oid, int (*visit)(void *data, const struct index_entry *e),
               void *data) {
    struct index_reader r = {bytes, n, HEAD, oid, 0};
    static struct index_entry e; /* two paths' worth of memory */
    if (n < HEAD + oid || memcmp(bytes, "DIRC", 4) != 0)
        return -EBADMSG;
    r.version = be32(bytes + 4);
    if (r.version < 2 || r.version > 4)
        return -EBADMSG;
    e.path[0] = 0;
    int code = 0;
    for (uint32_t left = be32(bytes + 8); left && code == 0; left--) {
        code = get_entry(&r, &e);
        if (code == 0)
            code = visit(data, &e);
    }
    return code == 0 && is_split(&r) ? -EOPNOTSUPP : code;
}
