/* git_fuzz.c: any bytes as a file .git; what is accepted is a path that stays one, and the search for its repository never
 * answers with a place that the made-up host does not have. */
#include <stdint.h>
#include <stdlib.h>

#include "plan/pointer.h"
#include "policy/fake_host.h"
#include "policy/git.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char *fuzzed;
static size_t fuzzed_n;

static int read_fuzzed(void *data, const char *base, const char *path, size_t max, char **ret, size_t *ret_n,
                       struct error *err) {
    if (strcmp(path, ".git") != 0)
        return fake_read(data, base, path, max, ret, ret_n, err);
    *ret = malloc(fuzzed_n + 1);
    if (!*ret)
        return -ENOMEM;
    memcpy(*ret, fuzzed, fuzzed_n);
    *ret_n = fuzzed_n;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static const char *const places[][2] = {
        {"/data/tree", "/work"}, {"/data/main/lib", "/work/lib"}, {"/data/odd", "/a/b/c"}};
    struct policy_host host = fake_host;
    char path[PLAN_PATH_MAX + 1];
    fuzzed = (const char *)bytes;
    fuzzed_n = n;
    host.read = read_fuzzed;
    if (pointer_read(fuzzed, n, "gitdir: ", path) == 0 && path[0] != '/' && strncmp(path, "../", 3) != 0)
        abort();
    for (size_t i = 0; i < ELEMENTS(places); i++) {
        _cleanup_git_place_ struct git_place g = {0};
        if (git_find(&host, places[i][0], places[i][1], &g) < 0)
            abort();
        bool placed = g.kind == GIT_WORKTREE || g.kind == GIT_MODULE;
        if (placed != (g.outside && g.inside) || (placed && !plan_path_is_canonical(g.inside)) ||
            (g.kind == GIT_STRANGE) != (g.why[0] != 0))
            abort();
        if (g.kind == GIT_WORKTREE && (strcmp(g.outside, "/data/main/.git") != 0 || i != 0))
            abort();
    }
    return 0;
}
