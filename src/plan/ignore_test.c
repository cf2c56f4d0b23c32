/* ignore_test.c: patterns by example, and beside git's own answers. runs in: tests */
#include "plan/ignore.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/test.h"

static bool one(const char *pattern, const char *path, bool directory) {
    char *const list[] = {(char *)pattern, NULL};
    return ignore_matches(list, path, directory);
}

TEST(examples_of_the_manual_page_hold) {
    static const struct {
        const char *pattern, *path;
        bool directory, want;
    } rows[] = {
        {"*.o", "a.o", false, true},
        {"*.o", "x/y/a.o", false, true},
        {"*.o", "a.oo", false, false},
        {"/*.c", "a.c", false, true},
        {"/*.c", "x/a.c", false, false},
        {"doc/*.txt", "doc/a.txt", false, true},
        {"doc/*.txt", "doc/x/a.txt", false, false},
        {"doc/*.txt", "y/doc/a.txt", false, false},
        {"frotz/", "frotz", true, true},
        {"frotz/", "frotz", false, false},
        {"frotz/", "a/frotz", true, true},
        {"doc/frotz/", "a/doc/frotz", true, false},
        {"**/foo", "foo", false, true},
        {"**/foo", "a/b/foo", false, true},
        {"**/foo/bar", "a/foo/bar", false, true},
        {"abc/**", "abc/x/y", false, true},
        {"abc/**", "abc", true, false},
        {"a/**/b", "a/b", false, true},
        {"a/**/b", "a/x/y/b", false, true},
        {"a/**/b", "a/x/yb", false, false},
        {"a/**/b/**/c", "a/b/x/b/y/c", false, true},
        {"?.c", "a.c", false, true},
        {"a?c", "a/c", false, false},
        {"[a-c]x", "bx", false, true},
        {"[!a-c]x", "bx", false, false},
        {"[^a-c]x", "dx", false, true},
        {"[]]x", "]x", false, true},
        {"[[:digit:]]", "7", false, true},
        {"[[:digit:]]", "x", false, false},
        {"[[:digits:]]", "7", false, false},
        {"[a", "[a", false, false},
        {"#x", "#x", false, false},
        {"\\#x", "#x", false, true},
        {"\\!x", "!x", false, true},
        {"x ", "x", false, true},
        {"x\\ ", "x ", false, true},
        {"", "x", false, false},
        {"/", "x", true, false},
        {".env*", "a/.env.local", false, true},
        {"a\\", "a\\", false, false},
    };
    for (size_t i = 0; i < ELEMENTS(rows); i++)
        if (one(rows[i].pattern, rows[i].path, rows[i].directory) != rows[i].want) {
            printf("# \"%s\" and \"%s\": not %d\n", rows[i].pattern, rows[i].path, rows[i].want);
            CHECK(!"as the manual page says");
        }
}

TEST(the_last_match_counts) {
    char *const list[] = {"*.log", "!keep.log", "keep.*", "!/top/keep.log", NULL};
    CHECK(ignore_matches(list, "a.log", false));
    CHECK(ignore_matches(list, "keep.log", false));
    CHECK(!ignore_matches(list, "top/keep.log", false));
    CHECK(!ignore_matches(NULL, "x", false));
}

TEST(lines_that_match_nothing_are_told) {
    static const char *const bad[] = {"", " ", "#x", "/", "!", "!/", "a\\", "a\\/", "a\nb"};
    static const char *const good[] = {"a", "!a", "\\#x", "/a", "a/", "\\\\", "**", " a"};
    for (size_t i = 0; i < ELEMENTS(bad); i++)
        CHECK(!ignore_is_pattern(bad[i]));
    for (size_t i = 0; i < ELEMENTS(good); i++)
        CHECK(ignore_is_pattern(good[i]));
}

TEST(hard_patterns_stay_cheap) {
    char pattern[4001], path[4001];
    for (int i = 0; i < 4000; i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[4000] = 0;
    memset(path, 'a', 4000);
    memcpy(path + 1990, "/b/", 3);
    path[3999] = 'b';
    path[4000] = 0;
    clock_t start = clock();
    CHECK(!one(pattern, path, false));
    for (int i = 0; i + 5 < 4000; i += 5)
        memcpy(pattern + i, "**/*a", 5);
    pattern[3995] = 0;
    CHECK(!one(pattern, path, false));
    CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 2.0);
}

/* -- beside git -- */

static unsigned long seed = 88172645463325252UL;

static unsigned below(unsigned n) { /* xorshift64: the same patterns in every run */
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % n);
}

static const char *const tree[] = {
    "a/",      "a/a/",  "a/a/a",  "a/a/b", "a/b/", "a/b/a/", "a/b/a/b", "a/b/ab", "a/ab", "b",    "ab/",
    "ab/b",    "ab/a/", "ab/a/b", "aa",    "ba",   "abb",    "a b",     "#a",     "!a",   "[a]",  "a-b",
    "b/",      "b]",    "a\\b",   "ac/",   "ac/-", "ac/b/",  "ac/b/c",  "c/",     "c/a",  "c/c/", "c/c/c/",
    "c/c/c/a", "c/ b",  "c/*",    "c/?",   "^",    "-",      "]",       "A",      "z",    "7",    "b ",
};

static const char *const pieces[] = {"a",           "b",       "c",
                                     "a",           "b",       "/",
                                     "/",           "/",       "*",
                                     "*",           "**",      "**/",
                                     "/**",         "/**/",    "?",
                                     "[ab]",        "[!a]",    "[^b]",
                                     "[]a]",        "[a-b]",   "[b-a]",
                                     "[[:alpha:]]", "[[:x:]]", "[a",
                                     "\\a",         "\\",      "-",
                                     " ",           "#",       "!",
                                     "[a-c-]",      "[-a]",    "[\\]a]",
                                     "[[:a]",       "\\/",     "]",
                                     "^",           "[--b]",   "[[:digit:]-b]",
                                     "***"};

static void make_pattern(struct buf *b) {
    unsigned n = 1 + below(5);
    b->n = 0;
    if (below(4) == 0)
        buf_puts(b, below(2) ? "!" : "/");
    while (n--)
        buf_puts(b, pieces[below(ELEMENTS(pieces))]);
}

static int write_file(const char *name, const char *bytes, size_t n) {
    _cleanup_fd_ int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : fd_write_all(fd, bytes, n);
}

/* Makes the tree and the list of its paths; folders are told by their "/", which git is not shown. */
static int make_tree(void) {
    _cleanup_buf_ struct buf paths = {0};
    for (size_t i = 0; i < ELEMENTS(tree); i++) {
        size_t n = strlen(tree[i]);
        bool folder = tree[i][n - 1] == '/';
        int r = folder ? mkdir(tree[i], 0700) : write_file(tree[i], "", 0);
        if (r < 0 && strcmp(tree[i], "b/") != 0) /* "b" is a file: git is asked about it twice */
            return -1;
        buf_put(&paths, tree[i], n - folder);
        buf_put(&paths, "", 1);
    }
    return write_file("../paths", paths.bytes, paths.n);
}

/* What git means by ignored: a folder above is excluded, or the path itself. */
static bool ignored(char *const *patterns, const char *entry) {
    char path[64];
    for (const char *slash = strchr(entry, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof(path), "%.*s", (int)(slash - entry), entry);
        if (ignore_matches(patterns, path, strcmp(entry, "b/") != 0))
            return true;
    }
    return entry[strlen(entry) - 1] != '/' && ignore_matches(patterns, entry, false);
}

/* Asks git about every path; 1 in ret[i] when it ignores tree[i]. */
static int ask_git(char ret[ELEMENTS(tree)]) {
    static const char command[] = "git check-ignore --no-index -z --stdin <../paths >../answer 2>/dev/null";
    int status = system(command);
    _cleanup_free_ char *answer = NULL;
    size_t n = 0;
    _cleanup_fd_ int fd = open("../answer", O_RDONLY | O_CLOEXEC);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1 || fd < 0 || fd_read_file(fd, 1 << 20, &answer, &n, NULL) < 0)
        return -1;
    const char *at = answer;
    for (size_t i = 0; i < ELEMENTS(tree); i++) { /* git answers in the order it was asked */
        size_t length = strlen(tree[i]);
        length -= tree[i][length - 1] == '/';
        ret[i] = at < answer + n && strlen(at) == length && !strncmp(at, tree[i], length);
        at += ret[i] ? length + 1 : 0;
    }
    return 0;
}

static int compare_with_git(int rounds) {
    int differences = 0;
    for (int r = 0; r < rounds; r++) {
        _cleanup_strv_ char **patterns = NULL;
        _cleanup_buf_ struct buf file = {0}, b = {0};
        char want[ELEMENTS(tree)];
        for (unsigned k = 1 + below(3); k; k--) {
            make_pattern(&b);
            strv_add(&patterns, b.bytes);
            buf_puts(&file, b.bytes);
            buf_puts(&file, "\n");
        }
        if (write_file(".gitignore", file.bytes, file.n) < 0 || ask_git(want) < 0)
            return -1;
        for (size_t i = 0; i < ELEMENTS(tree); i++)
            if (ignored(patterns, tree[i]) != want[i] && differences++ < 20)
                printf("# git says %d for \"%s\" under:\n# %s", want[i], tree[i], file.bytes);
    }
    return differences;
}

TEST(git_gives_the_same_answers) {
    char folder[] = "/tmp/doorward-ignore-XXXXXX", command[128];
    if (system("git --version >/dev/null 2>&1") != 0)
        SKIP("git is not installed");
    CHECK(mkdtemp(folder) && chdir(folder) == 0 && mkdir("repo", 0700) == 0 && chdir("repo") == 0);
    CHECK_EQ(system("git -c init.defaultBranch=main init -q . && rm -f .git/info/exclude"), 0);
    CHECK_EQ(make_tree(), 0);
    const char *rounds = getenv("ROUNDS");
    int differences = compare_with_git(rounds ? atoi(rounds) : 250);
    CHECK(chdir("/") == 0);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    CHECK_EQ(system(command), 0);
    CHECK_EQ(differences, 0);
}

TEST_MAIN()
