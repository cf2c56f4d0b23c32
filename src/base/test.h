/* test.h: unit tests in plain TAP.
 *
 *     #include "base/test.h"
 *     TEST(parses_a_size) { CHECK(str_parse_size("1KiB", &n) == 0); CHECK_EQ(n, 1024); }
 *     TEST_MAIN()
 *
 * A failed CHECK ends its test, not the program. No setjmp: it does not survive fork.
 * runs in: tests */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct test {
    const char *name;
    void (*run)(struct test *);
    struct test *next;
    int failed;
    const char *skipped;
};

extern struct test *test_first, **test_last;

#define TEST(n)                                                                                                        \
    static void test_##n(struct test *t_);                                                                             \
    __attribute__((constructor)) static void test_register_##n(void) {                                                 \
        static struct test t = {#n, test_##n, NULL, 0, NULL};                                                          \
        *test_last = &t;                                                                                               \
        test_last = &t.next;                                                                                           \
    }                                                                                                                  \
    static void test_##n(struct test *t_ __attribute__((unused)))

#define CHECK(x)                                                                                                       \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            printf("# %s:%d: CHECK(%s) does not hold\n", __FILE__, __LINE__, #x);                                      \
            t_->failed = 1;                                                                                            \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

#define CHECK_EQ(a, b)                                                                                                 \
    do {                                                                                                               \
        long long a_ = (long long)(a), b_ = (long long)(b);                                                            \
        if (a_ != b_) {                                                                                                \
            printf("# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a, a_, b_);                                 \
            t_->failed = 1;                                                                                            \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

#define CHECK_STR(a, b)                                                                                                \
    do {                                                                                                               \
        const char *a_ = (a), *b_ = (b);                                                                               \
        if (!a_ || !b_ || strcmp(a_, b_) != 0) {                                                                       \
            printf("# %s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #a, a_ ? a_ : "(null)",                  \
                   b_ ? b_ : "(null)");                                                                                \
            t_->failed = 1;                                                                                            \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

/* Leaves the test as skipped: a failure where STRICT=1 is set (CI). */
#define SKIP(why)                                                                                                      \
    do {                                                                                                               \
        t_->skipped = (why);                                                                                           \
        return;                                                                                                        \
    } while (0)

#define TEST_MAIN()                                                                                                    \
    struct test *test_first, **test_last = &test_first;                                                                \
    int main(void) {                                                                                                   \
        const char *ci = getenv("STRICT");                                                                             \
        int n = 0, bad = 0, strict = ci && !strcmp(ci, "1");                                                           \
        for (struct test *t = test_first; t; t = t->next, n++) {                                                       \
            fflush(NULL);                                                                                              \
            t->run(t);                                                                                                 \
            int failed = t->failed || (t->skipped && strict);                                                          \
            bad += failed;                                                                                             \
            printf("%sok %d - %s%s%s\n", failed ? "not " : "", n + 1, t->name, t->skipped ? " # SKIP " : "",           \
                   t->skipped ? t->skipped : "");                                                                      \
        }                                                                                                              \
        printf("1..%d\n", n);                                                                                          \
        return bad ? 1 : 0;                                                                                            \
    }
