/* wire_fuzz.c: any packet, read as any sequence of fields, stays in bounds. */
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "wire/launch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct wire_message m;
    static char text[4096];
    struct launch_end end;
    int pair[2];
    if (n < 2 || n > 65536 || wire_pair(pair) < 0)
        return 0;
    unsigned pattern = bytes[0];
    if (send(pair[0], bytes + 1, n - 1, MSG_DONTWAIT) == (ssize_t)(n - 1) && wire_receive(pair[1], &m) == 1) {
        for (unsigned i = 0; i < 8; i++) {
            if (pattern >> i & 1)
                wire_get_text(&m, text, sizeof(text));
            else if (i & 1)
                wire_get_u64(&m);
            else
                wire_get_u32(&m);
        }
        m.at = 0;
        launch_get_end(&m, &end);
        wire_end(&m);
    }
    fd_close(pair[0]);
    fd_close(pair[1]);
    return 0;
}
