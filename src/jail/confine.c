/* confine.c: see confine.h. runs in: launcher's children, and any process of ours that confines itself */
#include "jail/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int set_capabilities(const struct __user_cap_data_struct data[2]) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static bool has(int capability) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    return syscall(SYS_capget, &header, data) == 0 && data[capability / 32].effective >> (capability % 32) & 1;
}

int confine_bounding_set(void) {
    /* An ordinary user holds nothing that the bounding set could bound, and may not change it. */
    bool may = has(CAP_SETPCAP);
    for (int c = 0; may && c < 64; c++)
        if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
            return errno == EINVAL ? 0 : -errno; /* past the kernel's last capability */
    return 0;
}

int confine_capabilities(int keep) {
    struct __user_cap_data_struct left[2] = {0};
    if (keep >= 0)
        left[keep / 32].effective = left[keep / 32].permitted = 1u << (keep % 32);
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    return set_capabilities(left);
}

int confine_keep_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    for (int i = 0; i < 2; i++)
        data[i].inheritable = data[i].permitted;
    int r = set_capabilities(data);
    for (int c = 0; r == 0 && c <= CAP_LAST_CAP; c++)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0);
    return r;
}

int confine_no_new_privileges(void) {
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int confine_limit(int resource, uint64_t value) {
    struct rlimit limit = {value, value};
    return syscall(SYS_prlimit64, 0, resource, &limit, NULL) < 0 ? -errno : 0;
}

uint64_t confine_core_value(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0 ? 0 : 1;
}

int confine_no_core(void) {
    return confine_limit(RLIMIT_CORE, confine_core_value());
}
