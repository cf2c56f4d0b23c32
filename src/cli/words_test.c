/* words_test.c: figures and records in words. */
#include "base/test.h"

#include "cli/words.h"

static const char *took(struct buf *b, uint64_t us) {
    b->n = 0;
    words_took(b, us);
    return b->bytes;
}

static const char *size(struct buf *b, uint64_t bytes) {
    b->n = 0;
    words_size(b, bytes);
    return b->bytes;
}

TEST(figures_are_rounded_to_read) {
    _cleanup_buf_ struct buf b = {0};
    CHECK_STR(took(&b, 0), "0.0 ms");
    CHECK_STR(took(&b, 1234), "1.2 ms");
    CHECK_STR(took(&b, 12345), "12 ms");
    CHECK_STR(took(&b, 999999), "999 ms");
    CHECK_STR(took(&b, 1250000), "1.25 s");
    CHECK_STR(took(&b, 200000000), "3 min 20 s");
    CHECK_STR(took(&b, 7500000000), "2 h 05 min");
    CHECK_STR(size(&b, 1023), "1023 B");
    CHECK_STR(size(&b, 1024), "1.0 KiB");
    CHECK_STR(size(&b, 1048575), "1.0 MiB");
    CHECK_STR(size(&b, UINT64_MAX), "16.0 EiB");
    b.n = 0;
    words_time(&b, 1790000000123456);
    CHECK_STR(b.bytes, "2026-09-21 14:13:20 UTC");
}

TEST(padding_counts_characters) {
    _cleanup_buf_ struct buf b = {0};
    buf_puts(&b, "gr\xc3\xbc\xc3\x9f");
    words_pad(&b, 0, 6);
    buf_puts(&b, "|");
    CHECK_STR(b.bytes, "gr\xc3\xbc\xc3\x9f  |");
    b.n = 0;
    buf_puts(&b, "too long");
    words_pad(&b, 0, 3);
    CHECK_STR(b.bytes, "too long ");
}

struct sample {
    const char *record, *words;
};

TEST(records_read_as_sentences) {
    static const struct sample samples[] = {
        {"{'type':'step.end','body':{'step':'main','stop':'failed','exit':3,'used':{'wall_us':1500000},'message':''}}",
         "main: failed, exit 3, after 1.50 s"},
        {"{'type':'step.end','body':{'step':'main','stop':'failed','exit':3}}", "main: failed, exit 3"},
        {"{'type':'limit.hit','body':{'step':'a','limit':'memory','hard':true,'cap':1048576,'peak':null,'remedy':'r'}}",
         "a: limit memory, 1MiB allowed; it ended the step; r"},
        {"{'type':'limit.hit','body':{'step':'a','limit':'cpus','hard':false,'cap':1500,'peak':2000}}",
         "a: limit cpus: 2 used, 1.5 allowed"},
        {"{'type':'limit.hit','body':{'step':'a','limit':'odd','cap':1500,'peak':'x'}}",
         "a: limit odd: x used, 1500 allowed"},
        {"{'type':'step.enforced','body':{'step':'a','enforced':{'walls':{'net':'held','ipc':'off','x':1},'notes':[]}}"
         "}",
         "a: 1 of 3 walls hold, ipc off, x 1; notes: none"},
        {"{'type':'door.denied','body':{'step':'a','attempt':'bpf\\n','times':1}}", "a: denied: bpf\\x0a, 1 time"},
        {"{'type':'un.known','body':{'a':1,'b':[true,null,'\\u009b'],'c':{'d':false}}}",
         "a 1, b yes, not known, \\u{009b}, c (d no)"},
        {"{'type':'run.end','body':{}}", ", exit "},
    };
    for (size_t i = 0; i < ELEMENTS(samples); i++) {
        _cleanup_buf_ struct buf b = {0};
        char text[512];
        snprintf(text, sizeof(text), "%s", samples[i].record);
        for (char *s = text; *s; s++)
            *s = *s == '\'' ? '"' : *s;
        _cleanup_json_ json_t *record = NULL;
        CHECK(json_read(text, strlen(text), &record, NULL) == 0);
        words_record(&b, record);
        CHECK_STR(b.bytes, samples[i].words);
    }
}

TEST_MAIN()
