/* chain.h: the form of a record and the rule that ties it to the one before. Pure.
 * runs in: controller, cli (untrusted input: a journal's bytes, which somebody may have changed) */
#pragma once

#include "audit/journal.h"
#include "base/buf.h"

/* The end of the part of a journal that fits. */
struct chain {
    uint64_t seq;          /* number the next record must carry */
    char head[DIGEST_HEX]; /* hash of the last record; zeros before the first */
    char run[ULID_TEXT];   /* "" before the first record */
    bool ended;            /* the last record is the run's end */
};

void chain_start(struct chain *c);

/* Makes the record that comes next, with its newline, into `line`, and gives its hash. The chain is untouched: call
 * chain_step once the line is written. 0, -EINVAL, -EMSGSIZE or -ENOMEM. */
int chain_make(const struct chain *c, const char *type, const json_t *body, uint64_t real_us, struct buf *line,
               char hash[DIGEST_HEX], struct error *err);
void chain_step(struct chain *c, const char *type, const char hash[DIGEST_HEX]);

/* Takes one line (without its newline) of a journal. 0: it fits, the chain steps on, and *ret (may be NULL) is the
 * record, a new reference. -EBADMSG: it does not, `why` says so harmlessly, and the chain is untouched. */
int chain_read(struct chain *c, const char *line, size_t n, json_t **ret, char why[256]);

/* True when the bytes behind the last record that fits are what a crash leaves: a line without its newline, or NUL
 * bytes in a file system block that was allocated and never written. `n` counts the newline when there is one. */
bool chain_is_torn(const char *tail, size_t n);
