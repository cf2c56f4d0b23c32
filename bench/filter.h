/* filter.h: a system-call filter of the size and shape of ours, for the floor and for bubblewrap.
 * runs in: bench */
#pragma once

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#define SYSTEM_CALLS 256 /* leaves of the filter's tree; numbers past them are refused */

static struct sock_filter filter[8 + 2 * SYSTEM_CALLS];
static unsigned filter_length;

static void emit(unsigned code, unsigned jt, unsigned jf, unsigned k) {
    filter[filter_length++] = (struct sock_filter){(unsigned short)code, (unsigned char)jt, (unsigned char)jf, k};
}

/* A binary search over system-call numbers [from, to), in ranges of eight that share one answer, as a compiled list
 * has. */
static void emit_tree(unsigned from, unsigned to) {
    if (to - from <= 8) {
        emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
        return;
    }
    unsigned middle = from + (to - from) / 2, test = filter_length;
    emit(BPF_JMP | BPF_JGE | BPF_K, 0, 0, middle);
    emit_tree(from, middle);
    filter[test].jt = (unsigned char)(filter_length - test - 1);
    emit_tree(middle, to);
}

/* Fills `filter`: refuses other machines' calls and high numbers, then searches. */
static void build_filter(void) {
    emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
    emit(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
    emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    emit(BPF_JMP | BPF_JGE | BPF_K, 0, 1, 512);
    emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM);
    emit_tree(0, 512);
}
