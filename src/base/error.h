/* error.h: the one shape of an error.
 *
 * A function that can fail returns 0 or -errno and fills `struct error`; on the
 * way up each caller may put its own context in front. Library code never
 * prints. A refusal names door, object, rule and remedy in its message.
 * runs in: all */
#pragma once

#include "base/cleanup.h"

#define ERROR_MESSAGE_MAX 1024

struct error {
    int code;                        /* -errno, 0 while nothing went wrong */
    char message[ERROR_MESSAGE_MAX]; /* UTF-8, always terminated; cut with "..." when longer */
};

/* Records an error and returns `code`, so that `return error_set(...)` reads well.
 * `code` is a negative errno. `err` may be NULL (only the code is returned). */
int error_set(struct error *err, int code, const char *format, ...) _printf_(3, 4);

/* Records `format` followed by ": " and strerror(-code). */
int error_errno(struct error *err, int code, const char *format, ...) _printf_(3, 4);

/* Puts `format` and ": " in front of the message that is there; returns err->code. */
int error_wrap(struct error *err, const char *format, ...) _printf_(2, 3);

/* The three always return a negative code. Said so that the compiler and the analyzer see it too: what a function fills
 * when it returns 0 is then known to be filled. */
static inline int error_code(int code) {
    return code < 0 ? code : -1;
}
#define error_set(...)   error_code(error_set(__VA_ARGS__))
#define error_errno(...) error_code(error_errno(__VA_ARGS__))
#define error_wrap(...)  error_code(error_wrap(__VA_ARGS__))
