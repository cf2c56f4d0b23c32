/* survey_test.c: what is taken for a secret, and what is not; git's index. runs in: tests */
#include "base/test.h"

#include <errno.h>
#include <string.h>

#include "survey/survey.h"

struct seen {
    uint64_t line;
    const char *rule;
    unsigned times;
};

static void take(void *data, uint64_t line, const char *rule) {
    struct seen *s = data;
    *s = (struct seen){line, rule, s->times + 1};
}

/* The values are put together here, so that no tool that looks for keys finds one in this file. */
TEST(secrets_are_known_by_their_form) {
    static const char *const rows[][2] = {
        {"aws-access-key", "id = AKIA"
                           "Q3EGR7TYU5IOP2AB"},
        {"github-token", "x ghp_"
                         "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5 y"},
        {"github-token", "github_pat_"
                         "11ABCDEFG0aB3dE5fG7hI9_jK1lM3nO5pQ7rS9tU1vW3xY5"},
        {"gitlab-token", "glpat-"
                         "aB3dE5fG7hI9jK1lM3nO"},
        {"slack-token", "\"xoxb-"
                        "123456789012-abcdefGHIJKL\""},
        {"google-api-key", "key=AIza"
                           "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"},
        {"npm-token", "//r.test/:_authToken=npm_"
                      "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"},
        {"stripe-key", "sk_live_"
                       "4eC39HqLyjWDarjtT1zdp7dc"},
        {"private-key", "-----BEGIN OPENSSH "
                        "PRIVATE KEY-----"},
        {"private-key", "  -----BEGIN "
                        "PRIVATE KEY-----"},
        {"jwt", "a eyJhbGciOiJIUzI1NiJ9aaaa.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
                "dozjgNryP4J3jVmNHl0w5N"},
        {"assigned-secret", "DB_PASSWORD="
                            "gT5kq8Zx1Vb7Nn3Lw9Rr"},
        {"assigned-secret", "  api_key: \""
                            "9f8e7d6c5b4a39281706f5e4d3c2b1a0\""},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        struct seen s = {0};
        scan_text(rows[i][1], strlen(rows[i][1]), take, &s);
        if (s.times != 1)
            printf("# %s: %u times\n", rows[i][0], s.times);
        CHECK_EQ(s.times, 1);
        CHECK_STR(s.rule, rows[i][0]);
        CHECK_EQ(s.line, 1);
    }
}

TEST(what_looks_like_one_and_is_none_is_left_alone) {
    static const char *const rows[] = {
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "AKIAXXXXXXXXXXXXXXXX",
        "AKIAQ3EGR7TYU5IOP2ABMORE", /* longer than such a key is */
        "the prefix ghp_ marks a token of GitHub",
        "password: ${DB_PASSWORD}",
        "PASSWORD=changeme",
        "token = os.environ[\"TOKEN_OF_THE_SERVICE_12345\"]",
        "password_hash_function_name = default",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "commit 9f8e7d6c5b4a39281706f5e4d3c2b1a0deadbeef",
        "max_tokens: 1000000000000000",
        "eyJhbGciOiJIUzI1NiJ9aaaa.not-the-second-part",
        "",
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        struct seen s = {0};
        scan_text(rows[i], strlen(rows[i]), take, &s);
        if (s.times)
            printf("# %s: %s\n", rows[i], s.rule);
        CHECK_EQ(s.times, 0);
    }
    CHECK_STR(scan_name("id_rsa"), "secret-file");
    CHECK_STR(scan_name("store.p12"), "secret-file");
    CHECK(!scan_name("id_rsa.pub") && !scan_name(".p12") && !scan_name("README"));
}

TEST(lines_are_counted) {
    struct seen s = {0};
    static const char text[] = "a\n\nDB_PASSWORD="
                               "gT5kq8Zx1Vb7Nn3Lw9Rr\nb";
    scan_text(text, sizeof(text) - 1, take, &s);
    CHECK_EQ(s.line, 3);
}

static int count(void *data, const struct index_entry *e) {
    unsigned *n = data;
    ++*n;
    return strcmp(e->path, *n == 1 ? "a" : "ab/c") == 0 &&
                   !strcmp(e->oid, "0101010101010101010101010101010101010101") && e->mode == 0100644 && e->size == 7
               ? 0
               : -EINVAL;
}

/* Two entries, the second in version 4's short form too. */
static size_t make(unsigned char *to, unsigned version) {
    static const char *const paths[] = {"a", "ab/c"};
    size_t n = 12;
    memcpy(to, "DIRC\0\0\0", 7);
    to[7] = (unsigned char)version;
    memcpy(to + 8, "\0\0\0\2", 4);
    for (size_t i = 0; i < 2; i++) {
        size_t begin = n;
        memset(to + n, 0, 100);
        memcpy(to + n + 24, "\0\0\x81\xa4\0\0\0\0\0\0\0\0\0\0\0\7", 16);
        memset(to + n + 40, 1, 20);
        n += 62;
        if (version == 4)
            to[n++] = 0; /* nothing is cut from the path before */
        const char *rest = version == 4 && i ? paths[i] + 1 : paths[i];
        memcpy(to + n, rest, strlen(rest) + 1);
        n += strlen(rest) + 1;
        if (version != 4)
            n = begin + (n - begin + 7) / 8 * 8;
    }
    memset(to + n, 0, 20);
    return n + 20;
}

TEST(an_index_is_read_in_every_version) {
    for (unsigned version = 2; version <= 4; version++) {
        unsigned char bytes[512] = {0};
        unsigned found = 0;
        size_t n = make(bytes, version);
        CHECK_EQ(index_each(bytes, n, 20, count, &found), 0);
        CHECK_EQ(found, 2);
        for (size_t cut = 0; cut < n - 20; cut++) { /* cut short it is refused, and nothing is read past its end */
            found = 0;
            CHECK(index_each(bytes, cut, 20, count, &found) < 0 || found == 2);
        }
    }
    unsigned found = 0;
    CHECK_EQ(index_each((const unsigned char *)"DIRC\0\0\0\5aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 40, 20, count, &found),
             -EBADMSG);
}

TEST_MAIN()
