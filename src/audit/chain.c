/* chain.c: see chain.h.
 *
 * A line is accepted only byte for byte as chain_make would have written it: one canonical form leaves no room for
 * two readings of one record. The digest is taken of the line with the member "hash" cut out, which is the canonical
 * JSON without it because the keys are sorted.
 * runs in: controller, cli (untrusted input: a journal's bytes, which somebody may have changed; holds: nothing) */
#include "audit/chain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

enum { TIME_LENGTH = 27, BODY_DEPTH_MAX = JSON_DEPTH_MAX - 2 };

static const char zeros[DIGEST_HEX] = "0000000000000000000000000000000000000000000000000000000000000000";

void chain_start(struct chain *c) {
    *c = (struct chain){0};
    memcpy(c->head, zeros, sizeof(zeros));
}

void chain_step(struct chain *c, const char *type, const char hash[DIGEST_HEX]) {
    c->seq++;
    memcpy(c->head, hash, DIGEST_HEX);
    c->ended = !strcmp(type, "run.end") || !strcmp(type, "run.lost");
}

/* "word.word" in lower case. */
static bool type_is_valid(const char *s) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    size_t first = strspn(s, letters), second = s[first] == '.' ? strspn(s + first + 1, letters) : 0;
    return first > 0 && second > 0 && !s[first + 1 + second] && first + 1 + second <= JOURNAL_TYPE_MAX;
}

/* "2026-11-29T20:02:26.123456Z": the form; the calendar is not judged. */
static bool time_is_valid(const char *s) {
    static const char form[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";
    if (strlen(s) != TIME_LENGTH)
        return false;
    for (size_t i = 0; i < TIME_LENGTH; i++)
        if (form[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != form[i])
            return false;
    return true;
}

/* Only values with one spelling: fractions have several, and NUL inside text cannot be read back. */
static const char *unsound(const json_t *v) {
    const char *key, *why = NULL;
    json_t *value;
    size_t i;
    if (json_is_real(v))
        return "it holds a fraction; figures are whole numbers in a named unit";
    if (json_is_string(v) && memchr(json_string_value(v), 0, json_string_length(v)))
        return "it holds text with a NUL in it";
    if (json_is_object(v))
        json_object_foreach((json_t *)v, key, value) if (!why) why = unsound(value);
    if (json_is_array(v))
        json_array_foreach(v, i, value) if (!why) why = unsound(value);
    return why;
}

static const char *unsound_body(const json_t *body) {
    if (!body)
        return "its body could not be made: text in it is not UTF-8, or memory ran out";
    if (!json_is_object(body))
        return "its body is not an object";
    if (json_deeper_than(body, BODY_DEPTH_MAX))
        return "its body is nested too deep";
    return unsound(body);
}

static int put_bytes(const char *bytes, size_t n, void *data) {
    return buf_put(data, bytes, n);
}

static int put_canonical(const json_t *j, struct buf *b) {
    return json_dump_callback(j, put_bytes, b, JSON_COMPACT | JSON_SORT_KEYS) < 0 || b->failed ? -ENOMEM : 0;
}

int chain_make(const struct chain *c, const char *type, const json_t *body, uint64_t real_us, struct buf *line,
               char hash[DIGEST_HEX], struct error *err) {
    static const char hash_key[] = ",\"hash\":\"";
    _cleanup_buf_ struct buf rest = {0};
    char time[CLOCK_TEXT];
    const char *why = type_is_valid(type) ? unsound_body(body) : "its type is not two lower-case words";
    if (why)
        return error_set(err, -EINVAL, "journal: record %s cannot be written: %s", type, why);
    buf_puts(line, "{\"body\":");
    int r = put_canonical(body, line);
    size_t split = line->n;
    buf_printf(&rest, ",\"prev\":\"%s\",\"run\":\"%s\",\"seq\":%" PRIu64 ",\"time\":\"%s\",\"type\":\"%s\"}", c->head,
               c->run, c->seq, clock_text(time, real_us), type);
    buf_put(line, rest.bytes, rest.n);
    if (r < 0 || rest.failed || line->failed)
        return error_set(err, -ENOMEM, "journal: record %s cannot be written: out of memory", type);
    digest_hex(line->bytes, line->n, hash);
    line->n = split;
    buf_puts(line, hash_key);
    buf_puts(line, hash);
    buf_puts(line, "\"");
    buf_put(line, rest.bytes, rest.n);
    if (buf_puts(line, "\n") < 0)
        return error_set(err, -ENOMEM, "journal: record %s cannot be written: out of memory", type);
    if (line->n > JOURNAL_LINE_MAX)
        return error_set(err, -EMSGSIZE, "journal: record %s has %zu bytes, at most %u are written", type, line->n,
                         JOURNAL_LINE_MAX);
    return 0;
}

struct record {
    const char *hash, *prev, *run, *time, *type;
    uint64_t seq;
};

/* Members and their forms; NULL when all are there and nothing else is. */
static const char *read_members(const json_t *j, struct record *ret) {
    static const char *const known[] = {"body", "hash", "prev", "run", "seq", "time", "type", NULL};
    json_t *body;
    if (!json_is_object(j) || json_only(j, "record", known, NULL) < 0)
        return "it is not a record's object";
    if (json_get_object(j, "record", "body", &body, NULL) < 0 || unsound_body(body))
        return "its body is not one that is written here";
    if (json_get_string(j, "record", "hash", &ret->hash, NULL) < 0 || !digest_is_hex(ret->hash))
        return "its hash has the wrong form";
    if (json_get_string(j, "record", "prev", &ret->prev, NULL) < 0 || !digest_is_hex(ret->prev))
        return "its prev has the wrong form";
    if (json_get_string(j, "record", "run", &ret->run, NULL) < 0 || !ulid_is_valid(ret->run))
        return "its run is not a run's name";
    if (json_get_u64(j, "record", "seq", &ret->seq, NULL) < 0)
        return "its seq is not a number";
    if (json_get_string(j, "record", "time", &ret->time, NULL) < 0 || !time_is_valid(ret->time))
        return "its time has the wrong form";
    if (json_get_string(j, "record", "type", &ret->type, NULL) < 0 || !type_is_valid(ret->type))
        return "its type has the wrong form";
    return NULL;
}

/* Length of `,"prev":...}`: everything in it has a form that is known by now. */
static size_t rest_length(const struct record *r) {
    return (size_t)snprintf(NULL, 0,
                            ",\"prev\":\"%s\",\"run\":\"%s\",\"seq\":%" PRIu64 ",\"time\":\"%s\",\"type\":\"%s\"}",
                            r->prev, r->run, r->seq, r->time, r->type);
}

/* The hash of a canonical line, without its member "hash". */
static void line_hash(const struct record *r, const char *line, size_t n, struct buf *scratch, char ret[DIGEST_HEX]) {
    size_t rest = rest_length(r), member = strlen(",\"hash\":\"\"") + DIGEST_HEX - 1;
    scratch->n = 0;
    buf_put(scratch, line, n - rest - member);
    buf_put(scratch, line + n - rest, rest);
    digest_hex(scratch->bytes, scratch->n, ret);
}

static int bad(char why[256], const char *text) {
    snprintf(why, 256, "%s", text);
    return -EBADMSG;
}

/* Does a well-formed, untouched record stand where it belongs? */
static int check_place(const struct chain *c, const struct record *r, char why[256]) {
    if (r->seq != c->seq) {
        snprintf(why, 256, "it is numbered %" PRIu64 ": a record was removed, inserted or moved", r->seq);
        return -EBADMSG;
    }
    if (strcmp(r->prev, c->head) != 0)
        return bad(why, "it does not follow from the record before it: one of the two was replaced");
    if (c->seq && strcmp(r->run, c->run) != 0)
        return bad(why, "it belongs to another run");
    return 0;
}

int chain_read(struct chain *c, const char *line, size_t n, json_t **ret, char why[256]) {
    _cleanup_json_ json_t *j = NULL;
    _cleanup_buf_ struct buf scratch = {0};
    struct record r;
    char hash[DIGEST_HEX];
    if (n >= JOURNAL_LINE_MAX)
        return bad(why, "its line is longer than a record can be");
    if (memchr(line, 0, n))
        return bad(why, "NUL bytes stand where its text should be");
    if (json_read(line, n, &j, NULL) < 0)
        return bad(why, "it is not JSON");
    const char *wrong = read_members(j, &r);
    if (wrong)
        return bad(why, wrong);
    if (put_canonical(j, &scratch) < 0)
        return bad(why, "memory ran out while it was checked");
    if (scratch.n != n || memcmp(scratch.bytes, line, n) != 0)
        return bad(why, "it is not in canonical form");
    line_hash(&r, line, n, &scratch, hash);
    if (strcmp(hash, r.hash) != 0)
        return bad(why, "its text does not match its hash");
    int k = check_place(c, &r, why);
    if (k < 0)
        return k;
    if (!c->seq)
        memcpy(c->run, r.run, ULID_TEXT);
    chain_step(c, r.type, r.hash);
    if (ret)
        *ret = TAKE_PTR(j);
    return 0;
}

bool chain_is_torn(const char *tail, size_t n) {
    const char *end = memchr(tail, '\n', n);
    if (end && end + 1 != tail + n)
        return false;
    return memchr(tail, 0, n) || (!end && n < JOURNAL_LINE_MAX);
}

/* The first line that does not fit is torn when it is the last, else it is bad. */
static void judge_tail(const char *tail, size_t n, struct journal_report *ret) {
    if (n > 0 && chain_is_torn(tail, n)) {
        ret->torn = true;
        ret->torn_bytes = n;
        snprintf(ret->why, sizeof(ret->why), "the last line is torn");
    } else if (n > 0) {
        ret->first_bad = ret->records;
        if (!ret->why[0])
            snprintf(ret->why, sizeof(ret->why), "its line is longer than a record can be");
    }
}

void journal_check(const char *bytes, size_t n, struct journal_report *ret) {
    struct chain c;
    size_t at = 0;
    const char *end;
    *ret = (struct journal_report){.first_bad = UINT64_MAX};
    chain_start(&c);
    while (at < n && (end = memchr(bytes + at, '\n', n - at)) &&
           chain_read(&c, bytes + at, (size_t)(end - bytes) - at, NULL, ret->why) == 0)
        at = (size_t)(end - bytes) + 1;
    ret->records = c.seq;
    ret->ended = c.ended;
    memcpy(ret->run, c.run, ULID_TEXT);
    memcpy(ret->head, c.head, DIGEST_HEX);
    judge_tail(bytes + at, n - at, ret);
}
