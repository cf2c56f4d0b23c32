/* front.c: `doorward` where it is linked with musl: a program of its own that starts in a fifth of the time.
 *
 * For `doorward run` it starts the launcher and then becomes doorward-main, which adopts it: the sandbox's namespaces are made
 * while the controller's C library still starts. Everything else it hands on as it is.
 * runs in: cli (untrusted input: none; it looks at one word; holds: nothing) */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "control/helper.h"

/* With one of them closed, a descriptor of ours would take its number: doorward-main sees to that first. */
static int has_standard_descriptors(void) {
    return fcntl(0, F_GETFD) >= 0 && fcntl(1, F_GETFD) >= 0 && fcntl(2, F_GETFD) >= 0;
}

int main(int argc, char **argv) {
    struct error err = {0};
    if (argc > 2 && !strcmp(argv[1], "run") && has_standard_descriptors())
        spawn_for_exec(); /* a failure shows when doorward-main starts one itself */
    spawn_exec("doorward-main", argv, &err);
    fprintf(stderr, "doorward: %s\n", err.message);
    return 125;
}
