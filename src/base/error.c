/* error.c: see error.h. runs in: all */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Writes into the message and marks a cut with "..." so that nobody takes a cut text for a whole one. */
static void store(struct error *err, const char *format, va_list args) {
    int n = vsnprintf(err->message, sizeof(err->message), format, args);
    if (n >= (int)sizeof(err->message))
        memcpy(err->message + str_boundary(err->message, sizeof(err->message) - 4), "...", 4);
}

int(error_set)(struct error *err, int code, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = code;
        store(err, format, args);
        va_end(args);
    }
    return code;
}

int(error_errno)(struct error *err, int code, const char *format, ...) {
    if (err) {
        va_list args;
        char text[ERROR_MESSAGE_MAX];
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        error_set(err, code, "%s: %s", text, strerror(-code));
    }
    return code;
}

int(error_wrap)(struct error *err, const char *format, ...) {
    if (!err)
        return -EINVAL;
    char old[ERROR_MESSAGE_MAX], front[ERROR_MESSAGE_MAX];
    va_list args;
    memcpy(old, err->message, sizeof(old));
    va_start(args, format);
    vsnprintf(front, sizeof(front), format, args);
    va_end(args);
    return error_set(err, err->code, "%s: %s", front, old);
}
