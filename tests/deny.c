/* deny.c: runs a program on a kernel that lacks something.
 *
 *     test-deny CALL:ERRNO[:N:MASK=VALUE] ... -- PROGRAM ARGUMENTS...
 *
 * Each system call named answers with the errno (ENOSYS: the kernel does not have it; EPERM: the host forbids it; OK: it
 * says that it was done, and it was not), for the program and everything that it starts; with N:MASK=VALUE only where
 * argument N (from 0), under the mask, has that value. So a test sees what doorward does on hosts that are not at hand, and
 * whether it believes what it is told. Nothing else changes; no tracer is in between.
 * runs in: tests */
#include <errno.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int code_of(const char *name) {
    static const struct {
        const char *name;
        int code;
    } rows[] = {{"OK", 0},          {"ENOSYS", ENOSYS}, {"EPERM", EPERM},          {"ENOSPC", ENOSPC},
                {"EAGAIN", EAGAIN}, {"EACCES", EACCES}, {"EOPNOTSUPP", EOPNOTSUPP}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!strcmp(rows[i].name, name))
            return rows[i].code;
    return -1;
}

static int deny(scmp_filter_ctx filter, const char *rule) {
    char call[64], code[16];
    unsigned which = 0;
    long long mask = 0, value = 0;
    int n = sscanf(rule, "%63[a-z0-9_]:%15[A-Z]:%u:%lli=%lli", call, code, &which, &mask, &value);
    int nr = n >= 2 ? seccomp_syscall_resolve_name(call) : __NR_SCMP_ERROR;
    if (nr == __NR_SCMP_ERROR || code_of(code) < 0 || (n != 2 && n != 5))
        return -EINVAL;
    struct scmp_arg_cmp argument = SCMP_CMP64(which, SCMP_CMP_MASKED_EQ, (uint64_t)mask, (uint64_t)value);
    return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((uint32_t)code_of(code)), nr, n == 5, &argument);
}

int main(int argc, char **argv) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int i = 1;
    for (; filter && i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (deny(filter, argv[i]) < 0) {
            fprintf(stderr, "test-deny: %s is no rule\n", argv[i]);
            return 2;
        }
    }
    /* Root needs no no_new_privs for it, and doorward's own is then seen to be doorward's. */
    if (filter && geteuid() == 0)
        seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
    if (!filter || i + 1 >= argc || seccomp_load(filter) < 0) {
        fprintf(stderr, "test-deny: usage: CALL:ERRNO[:N:MASK=VALUE] ... -- PROGRAM ARGUMENTS...\n");
        return 2;
    }
    execv(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 2;
}
