/* seccomp.c: see seccomp.h. runs in: launcher's children, and any process of ours that confines itself */
#include "jail/seccomp.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/seccomp_init.h"
#include "jail/seccomp_survey.h"
#include "jail/seccomp_worker.h"

const struct seccomp_filter seccomp_worker = {seccomp_worker_code, ELEMENTS(seccomp_worker_code)};
const struct seccomp_filter seccomp_survey = {seccomp_survey_code, ELEMENTS(seccomp_survey_code)};
const struct seccomp_filter seccomp_init = {seccomp_init_code, ELEMENTS(seccomp_init_code)};

int seccomp_install(const struct seccomp_filter *filter, int *ret_listener) {
    struct sock_fprog program = {filter->n, (struct sock_filter *)filter->code};
    unsigned flags = ret_listener ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
    long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (r < 0)
        return -errno;
    if (ret_listener)
        *ret_listener = (int)r;
    return 0;
}

bool seccomp_socket_allowed(uint64_t family, uint64_t protocol) {
    int f = (int)(uint32_t)family; /* the kernel takes int */
    return f == AF_INET || f == AF_INET6 || (f == AF_NETLINK && (uint32_t)protocol == NETLINK_ROUTE);
}

int seccomp_missing(void) {
    struct seccomp_notif_sizes sizes;
    return syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0 ? -errno : 0;
}

const struct seccomp_reported *seccomp_reported(int nr) {
    for (size_t i = 0; i < ELEMENTS(seccomp_worker_reported); i++)
        if (seccomp_worker_reported[i].nr == nr)
            return &seccomp_worker_reported[i];
    return NULL;
}
