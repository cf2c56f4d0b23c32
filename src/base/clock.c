/* clock.c: see clock.h. runs in: all */
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static uint64_t us_of(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t clock_real_us(void) {
    return us_of(CLOCK_REALTIME);
}

uint64_t clock_monotonic_us(void) {
    return us_of(CLOCK_MONOTONIC);
}

const char *clock_text(char to[CLOCK_TEXT], uint64_t real_us) {
    time_t s = (time_t)(real_us / 1000000);
    struct tm tm;
    gmtime_r(&s, &tm);
    size_t n = strftime(to, CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(to + n, CLOCK_TEXT - n, ".%06uZ", (unsigned)(real_us % 1000000));
    return to;
}

static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

int ulid_new(char ret[ULID_TEXT]) {
    unsigned char raw[16];
    uint64_t ms = clock_real_us() / 1000;
    for (int i = 0; i < 6; i++)
        raw[i] = (unsigned char)(ms >> (40 - 8 * i));
    if (getrandom(raw + 6, 10, 0) != 10)
        return -EIO;
    for (int i = 0; i < 26; i++) { /* 130 bits, the first two are always zero */
        unsigned v = 0;
        for (int b = 0; b < 5; b++) {
            int at = i * 5 + b - 2;
            v = v << 1 | (at < 0 ? 0 : (raw[at / 8] >> (7 - at % 8)) & 1u);
        }
        ret[i] = crockford[v];
    }
    ret[26] = 0;
    return 0;
}

int ulid_is_valid(const char *s) {
    return strlen(s) == 26 && s[0] <= '7' && strspn(s, crockford) == 26;
}
