/* pointer.c: see pointer.h. runs in: controller, cli, surveyor (untrusted input: what the files say) */
#include "plan/pointer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define UP "../"

int pointer_read(const char *bytes, size_t n, const char *word, char ret[PLAN_PATH_MAX + 1]) {
    char below[PLAN_PATH_MAX + 2];
    size_t skip = strlen(word);
    if (n < skip || memcmp(bytes, word, skip) != 0 || !str_is_utf8(bytes, n, NULL))
        return -EINVAL;
    bytes += skip;
    n -= skip;
    while (n && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r')) /* as git reads it */
        n--;
    if (n == 0 || n > PLAN_PATH_MAX)
        return -EINVAL;
    snprintf(ret, PLAN_PATH_MAX + 1, "%.*s", (int)n, bytes);
    const char *rest = ret;
    while (!strncmp(rest, UP, strlen(UP)))
        rest += strlen(UP);
    if (rest == ret)
        return plan_path_is_canonical(ret) ? 0 : -EINVAL;
    snprintf(below, sizeof(below), "/%s", rest);
    return !strcmp(rest, "..") || plan_path_is_canonical(below) ? 0 : -EINVAL;
}

char *pointer_follow(const char *base, const char *pointer) {
    size_t n = strlen(base);
    char *path;
    if (*pointer == '/')
        return strdup(pointer);
    for (; !strncmp(pointer, "..", 2) && (pointer[2] == '/' || !pointer[2]); pointer += pointer[2] ? 3 : 2) {
        if (n <= 1)
            return NULL;
        while (n > 0 && base[n - 1] != '/')
            n--;
        n = n > 1 ? n - 1 : n;
    }
    bool root = n == 1 && base[0] == '/';
    return asprintf(&path, "%.*s%s%s", (int)(root ? 0 : n), base, *pointer || root ? "/" : "", pointer) < 0 ? NULL
                                                                                                            : path;
}
