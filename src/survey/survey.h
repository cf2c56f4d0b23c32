/* survey.h: what is put on record of an input's content, and the search for secrets in it.
 *
 * The surveyor runs beside the worker and never holds it up. It reads what anybody may have written (a repository's index, any
 * file), so it holds nothing: open for reading below the inputs is all that it can do. Nothing of a repository's own
 * settings is read or run.
 * runs in: surveyor (untrusted input: everything below the inputs; holds: descriptors of the inputs, for reading) */
#pragma once

#include "plan/plan.h"
#include "wire/survey.h"

enum { SURVEY_CHANNEL = 3 };

struct survey {
    struct plan plan;
    int *inputs; /* by index; -1: not given */
    bool before; /* only what must be known before the start */
    bool cut;
    struct wire_message m;
    /* of the input that is being read */
    size_t index;
    uint64_t files, bytes, changed, secrets, looked;
    struct buf listing; /* what is digested */
    char commit[SURVEY_OID_MAX], ref[SURVEY_REF_MAX], why[SURVEY_WHY_MAX];
};

/* True while the reading may go on: hears CUT, and ends the process with its controller. `named`: the policy asked for it. */
bool survey_goes_on(struct survey *s, bool named);

/* Takes note of the first reason why the record is not complete. */
void survey_incomplete(struct survey *s, const char *format, ...) _printf_(2, 3);

/* Opens for reading what stands at the inside path `path`, through the input that covers it, without links. */
int survey_open(const struct survey *s, const char *path, int flags);

/* walk.c: every name of the input that the worker sees: counted, listed for `digest: full`, scanned. */
void survey_walk(struct survey *s);

/* repository.c: commit, index, and what differs from it. */
void survey_repository(struct survey *s);

void survey_tell_change(struct survey *s, enum survey_change how, const char *path);
void survey_tell_secret(struct survey *s, uint64_t line, const char *rule, const char *path);

/* index.c: one entry of git's index (gitformat-index(5)), versions 2 to 4. */
struct index_entry {
    uint32_t mtime, mtime_ns, size, mode;
    unsigned stage;
    bool skip; /* not in the work tree by choice, or not to be compared */
    char oid[SURVEY_OID_MAX];
    char path[PLAN_PATH_MAX + 1];
};

/* Calls `visit` for each entry in order until it returns not 0. `oid` is the length of an object's name in bytes (20 or 32).
 * 0, what `visit` returned, -EBADMSG for bytes that are no index, -EOPNOTSUPP for one that is split. */
int index_each(const unsigned char *bytes, size_t n, size_t oid, int (*visit)(void *data, const struct index_entry *e),
               void *data);

/* blob.c: the name that git gives the `size` bytes of `fd`, in hex, with digests of `oid` bytes. 0 or -errno. */
int blob_name(int fd, uint64_t size, size_t oid, char ret[SURVEY_OID_MAX]);

void blob_name_of(const void *bytes, size_t size, size_t oid, char ret[SURVEY_OID_MAX]); /* of a link: its target */

/* scan.c: secrets by the form of their text. `found` is told each: line from 1, the rule's name. */
void scan_text(const char *bytes, size_t n, void (*found)(void *data, uint64_t line, const char *rule), void *data);

/* The rule that a file's name alone breaks, or NULL. */
const char *scan_name(const char *name);
