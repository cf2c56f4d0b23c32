/* ignore_fuzz.c: any lines as patterns and any last line as a path. A pattern followed by its negation matches nothing;
 * a line that is no pattern matches nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "plan/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_line(const char *line, const char *path, bool directory) {
    char *const alone[] = {(char *)line, NULL};
    bool matched = ignore_matches(alone, path, directory);
    if (matched && (!ignore_is_pattern(line) || line[0] == '!'))
        abort();
    if (line[0] == '!' || line[0] == '#')
        return;
    _cleanup_buf_ struct buf negated = {0};
    buf_printf(&negated, "!%s", line);
    char *const both[] = {(char *)line, negated.bytes, NULL};
    if (ignore_matches(both, path, directory))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    _cleanup_strv_ char **lines = NULL;
    if (n > 4096 || memchr(bytes, 0, n))
        return 0;
    for (size_t at = 0; at <= n;) {
        const uint8_t *end = at < n ? memchr(bytes + at, '\n', n - at) : NULL;
        size_t length = end ? (size_t)(end - bytes) - at : n - at;
        _cleanup_free_ char *line = length ? strndup((const char *)bytes + at, length) : strdup("");
        if (!line || strv_add(&lines, line) < 0)
            abort();
        at += length + 1;
    }
    size_t count = strv_count(lines);
    _cleanup_free_ char *path = lines[count - 1];
    lines[count - 1] = NULL;
    for (size_t i = 0; lines[i]; i++)
        for (int directory = 0; directory < 2; directory++)
            check_line(lines[i], path, directory);
    ignore_matches(lines, path, false);
    return 0;
}
