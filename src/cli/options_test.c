/* options_test.c: one table reads every verb's options. */
#include "base/test.h"

#include <errno.h>

#include "base/str.h"
#include "cli/cli.h"

static bool flag, other;
static const char *text;
static char **list;

static const struct cli_option options[] = {
    {"terminal", 't', CLI_FLAG, &flag, NULL, "a flag"},
    {"input", 'i', CLI_FLAG, &other, NULL, "another"},
    {"memory", 'm', CLI_TEXT, &text, "SIZE", "a text"},
    {"read", 0, CLI_LIST, &list, "FROM", "a list"},
    {.kind = CLI_END},
};

static const struct verb plain = {"plain", "[FILE]", "Test", options, 0, 2, false, NULL};
static const struct verb runner = {"runner", "[-- COMMAND]", "Test", options, 0, -1, true, NULL};

static struct cli_words words;
static struct error err;
static bool help;

static int read_words(const struct verb *verb, const char *const *given) {
    static char *args[32];
    int n = 0;
    for (; given[n]; n++)
        args[n] = (char *)given[n];
    args[n] = NULL;
    flag = other = help = false;
    text = NULL;
    strv_free(list);
    list = NULL;
    return cli_read_options(verb, args, n, &words, &help, &err);
}

#define READ(verb, ...) read_words(&(verb), (const char *const[]){__VA_ARGS__, NULL})

TEST(options_and_words_mix) {
    CHECK_EQ(READ(plain, "a", "--terminal", "--memory", "1GiB", "b", "--read=x=y", "--read", "z"), 0);
    CHECK(flag && !other);
    CHECK_STR(text, "1GiB");
    CHECK_EQ(strv_count(list), 2);
    CHECK_STR(list[0], "x=y");
    CHECK_STR(list[1], "z");
    CHECK_EQ(words.n, 2);
    CHECK_STR(words.args[1], "b");
    CHECK(words.args[2] == NULL);
    CHECK(words.command == NULL);
}

TEST(letters_stand_together) {
    CHECK_EQ(READ(plain, "-tim", "5"), 0);
    CHECK(flag && other);
    CHECK_STR(text, "5");
}

TEST(dashes_end_the_options) {
    CHECK_EQ(READ(plain, "--", "--terminal", "-x"), 0);
    CHECK(!flag);
    CHECK_EQ(words.n, 2);
    CHECK_STR(words.args[1], "-x");
    CHECK_EQ(READ(runner, "-t", "--", "true", "--", "--memory"), 0);
    CHECK_EQ(words.n, 0);
    CHECK_EQ(words.n_command, 3);
    CHECK_STR(words.command[2], "--memory");
    CHECK_EQ(READ(runner, "--"), 0);
    CHECK(words.command != NULL);
    CHECK_EQ(words.n_command, 0);
}

TEST(a_single_dash_is_a_word) {
    CHECK_EQ(READ(plain, "-"), 0);
    CHECK_EQ(words.n, 1);
}

TEST(wrong_options_are_named) {
    CHECK_EQ(READ(plain, "--memroy", "1"), -EINVAL);
    CHECK(strstr(err.message, "did you mean --memory?"));
    CHECK_EQ(READ(plain, "--memory"), -EINVAL);
    CHECK(strstr(err.message, "--memory SIZE"));
    CHECK_EQ(READ(plain, "--terminal=yes"), -EINVAL);
    CHECK_EQ(READ(plain, "--memory", "1", "--memory", "2"), -EINVAL);
    CHECK(strstr(err.message, "twice"));
    CHECK_EQ(READ(plain, "-tz"), -EINVAL);
    CHECK_EQ(READ(plain, "--\033[2J"), -EINVAL);
    CHECK(!strchr(err.message, '\033'));
    CHECK_EQ(READ(plain, "a", "b", "c"), -EINVAL);
    CHECK(strstr(err.message, "too many"));
}

TEST(help_goes_first) {
    CHECK_EQ(READ(plain, "a", "b", "c", "--help"), 0);
    CHECK(help);
}

TEST_MAIN()
