/* cleanup.h: ownership by scope.
 *
 * A variable marked _cleanup_(f) is released by f when its scope ends; TAKE_PTR
 * and TAKE_FD hand the value on and leave "nothing" behind. Destructors used
 * with it accept the empty value. runs in: all */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f)   __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _must_check_   __attribute__((warn_unused_result))

static inline void freep(void *p) {
    free(*(void **)p);
}

#define _cleanup_free_ _cleanup_(freep)

/* Moves a pointer out of a variable that owns it. */
#define TAKE_PTR(p)                                                                                                    \
    ({                                                                                                                 \
        __typeof__(p) t_ = (p);                                                                                        \
        (p) = NULL;                                                                                                    \
        t_;                                                                                                            \
    })

/* Moves a descriptor out of a variable that owns it. */
#define TAKE_FD(fd)                                                                                                    \
    ({                                                                                                                 \
        int t_ = (fd);                                                                                                 \
        (fd) = -1;                                                                                                     \
        t_;                                                                                                            \
    })

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))
