/* no_loading.c: a static doorward loads nothing.
 *
 * SQLite can load extensions with dlopen, which a static program cannot do without the very C library that it was
 * linked with. Static builds link with --wrap=dlopen, which leads every such call here. runs in: cli */
#include <stddef.h>

void *__wrap_dlopen(const char *file, int mode); // NOLINT: the linker's name for it

void *__wrap_dlopen(const char *file, int mode) { // NOLINT
    return NULL;
}
