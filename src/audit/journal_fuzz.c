/* journal_fuzz.c: any bytes as a journal, through the whole-file check and through the reader: both must come to the
 * same answer. runs in: tests */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/reader.h"
#include "base/fd.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void must(int holds) {
    if (!holds)
        abort();
}

/* Every claim of a report fits the others. */
static void check_report(const struct journal_report *r, size_t n) {
    must(r->torn_bytes <= n && (r->torn_bytes > 0) == r->torn);
    must(digest_is_hex(r->head));
    must(r->records == 0 ? !r->run[0] && !r->ended : ulid_is_valid(r->run));
    must(r->first_bad == UINT64_MAX || r->first_bad == r->records);
    must(!(r->torn && r->first_bad != UINT64_MAX));
    must((r->why[0] != 0) == (r->torn || r->first_bad != UINT64_MAX));
    must(str_is_utf8(r->why, strlen(r->why), NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct journal_report whole;
    _cleanup_journal_reader_ struct journal_reader *reader = NULL;
    journal_check((const char *)bytes, n, &whole);
    check_report(&whole, n);

    _cleanup_fd_ int fd = fd_sealed("journal", bytes, n);
    must(fd >= 0 && journal_reader_over(fd, &reader, NULL) == 0);
    int k;
    do {
        _cleanup_json_ json_t *record = NULL;
        k = journal_reader_next(reader, &record, NULL);
        must((k > 0) == (record != NULL));
    } while (k > 0);
    const struct journal_report *read = journal_reader_report(reader);
    check_report(read, n);
    must((k < 0) == (read->first_bad != UINT64_MAX));
    must(read->records == whole.records && read->first_bad == whole.first_bad && read->torn == whole.torn);
    must(read->torn_bytes == whole.torn_bytes && read->ended == whole.ended && !strcmp(read->head, whole.head));
    return 0;
}
