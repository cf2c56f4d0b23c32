/* replay.c: runs a fuzzer's corpus again as a test, with any compiler.
 *
 * usage: fuzz-NAME FOLDER...   (TAP, one line per file). Each file is handed to the fuzzer whole, and then cut short at
 * up to CUTS_MAX places, since what comes from outside may end anywhere. Each input is an exact allocation of its own,
 * so that the address sanitizer sees one byte read too far. runs in: tests */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CUTS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int run_exact(const uint8_t *bytes, size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        return -1;
    memcpy(copy, bytes, n);
    int r = LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    return r;
}

/* The file's bytes, owned by the caller; NULL when it cannot be read. */
static uint8_t *read_file(const char *path, size_t *ret_n) {
    FILE *f = fopen(path, "re");
    struct stat st;
    uint8_t *bytes = NULL;
    if (f && fstat(fileno(f), &st) == 0 && (bytes = malloc((size_t)st.st_size + 1)))
        *ret_n = fread(bytes, 1, (size_t)st.st_size, f);
    if (f)
        fclose(f);
    return bytes;
}

static int replay_file(const char *path) {
    size_t n = 0;
    uint8_t *bytes = read_file(path, &n);
    if (!bytes)
        return -1;
    size_t step = n / CUTS_MAX + 1;
    int bad = run_exact(bytes, n) != 0;
    for (size_t cut = 0; cut < n; cut += step)
        bad |= run_exact(bytes, cut) != 0;
    free(bytes);
    return bad ? -1 : 0;
}

static int no_dots(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static void replay_folder(const char *folder, int *count, int *failed) {
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, no_dots, alphasort);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        int r = replay_file(path);
        *failed += r < 0;
        printf("%sok %d - %s\n", r < 0 ? "not " : "", ++*count, entries[i]->d_name);
        fflush(stdout);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv) {
    int count = 0, failed = 0;
    for (int i = 1; i < argc; i++)
        replay_folder(argv[i], &count, &failed);
    if (count == 0) {
        printf("not ok 1 - the corpus has at least one file\n");
        count = failed = 1;
    }
    printf("1..%d\n", count);
    return failed ? 1 : 0;
}
