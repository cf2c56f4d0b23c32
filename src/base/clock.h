/* clock.h: time and the names made from it. runs in: all */
#pragma once

#include <stdint.h>

/* Microseconds since the epoch (CLOCK_REALTIME) / of CLOCK_MONOTONIC. */
uint64_t clock_real_us(void);
uint64_t clock_monotonic_us(void);

#define CLOCK_TEXT 32 /* "2026-11-29T20:02:26.123456Z" */
/* RFC 3339, UTC, always six decimals. Returns `to`. */
const char *clock_text(char to[CLOCK_TEXT], uint64_t real_us);

#define ULID_TEXT 27 /* 26 characters and NUL */
/* A fresh ULID (48 bits of milliseconds, 80 random bits, Crockford base 32). 0 or -errno. */
int ulid_new(char ret[ULID_TEXT]);
/* True when `s` has the form of a ULID (upper case). */
int ulid_is_valid(const char *s);
