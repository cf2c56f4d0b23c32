/* seccomp_gen.c: compiles a table of system calls (*.calls) to a seccomp program, when doorward is built.
 *
 * The program is a binary search over ranges of call numbers with the same verdict: its depth is about eight, where a
 * linear list has hundreds of comparisons. The kernel walks it once for every call number when a filter is installed
 * (to fill its cache of plain allows), so depth is start-up time.
 * runs in: the build only */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#if defined(__x86_64__)
#define ARCH        AUDIT_ARCH_X86_64
#define FOREIGN_BIT 0x40000000u /* x32 calls carry this bit: arch/x86/entry/syscalls */
#elif defined(__aarch64__)
#define ARCH        AUDIT_ARCH_AARCH64
#define FOREIGN_BIT 0x40000000u
#else
#error "no system call table for this machine; add its AUDIT_ARCH"
#endif

enum {
    CALLS_MAX = 1024,
    CODE_MAX = 4096,
    NEW_NAMESPACES = 0x7e020000 /* CLONE_NEW* but NEWTIME, which clone(2) cannot say */
};

typedef void rule_function(int nr);

static struct sock_filter code[CODE_MAX];
static size_t n_code;

struct verdict {
    unsigned action;     /* SECCOMP_RET_*, when there is no rule */
    rule_function *rule; /* judges the arguments */
};

static struct verdict verdicts[CALLS_MAX]; /* by call number; zero = stands nowhere */
static int reported[CALLS_MAX];            /* the errno that the supervisor answers */
static const char *names[CALLS_MAX];
static const char *file;
static int line;

static void die(const char *what, const char *name) {
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, name);
    exit(1);
}

static void emit(unsigned short op, unsigned k, unsigned char jt, unsigned char jf) {
    if (n_code == CODE_MAX)
        die("program too long", "");
    code[n_code++] = (struct sock_filter){op, jt, jf, k};
}

static void answer(unsigned action) {
    emit(BPF_RET | BPF_K, action, 0, 0);
}

static unsigned errno_action(int e) {
    return SECCOMP_RET_ERRNO | (unsigned)e;
}

static void load_low(int argument) {
    emit(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offsetof(struct seccomp_data, args) + 8 * (size_t)argument), 0, 0);
}

/* The answer that follows is for "the loaded word is k"; everything else goes on behind it. */
static void when(unsigned k, unsigned action) {
    emit(BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1);
    answer(action);
}

static void when_any_bit(unsigned bits, unsigned action) {
    emit(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    answer(action);
}

static unsigned report(int nr, int e) {
    reported[nr] = e;
    return SECCOMP_RET_USER_NOTIF;
}

/* clone and unshare without a new namespace: clone(2). The flags stand in the low word; the high one must be 0 or the
 * kernel refuses. unshare also knows NEWTIME, where clone has the exit signal. */
static void rule_namespaces(int nr) {
    load_low(0);
    when_any_bit(NEW_NAMESPACES | (strcmp(names[nr], "unshare") == 0 ? CLONE_NEWTIME : 0), report(nr, EPERM));
    answer(SECCOMP_RET_ALLOW);
}

/* socket(2): unix, inet and inet6 with everyday protocols (others load kernel modules), netlink for routes only. The
 * kernel takes int arguments, so the low words are what counts. Whatever can see the network goes by the supervisor, which
 * brings the loopback interface up for the first and lets it go on (denied.c); the rest it refuses. */
static void rule_family(int nr) {
    static const unsigned protocols[] = {IPPROTO_IP,  IPPROTO_ICMP,   IPPROTO_TCP,
                                         IPPROTO_UDP, IPPROTO_ICMPV6, IPPROTO_RAW};
    load_low(0);
    when(AF_UNIX, SECCOMP_RET_ALLOW);
    emit(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0);
    emit(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0);
    answer(report(nr, EAFNOSUPPORT));
    load_low(2);
    for (size_t i = 0; i < sizeof(protocols) / sizeof(*protocols); i++)
        when(protocols[i], report(nr, EAFNOSUPPORT));
    answer(errno_action(EPROTONOSUPPORT));
}

static void rule_pair(int nr) {
    load_low(0);
    when(AF_UNIX, SECCOMP_RET_ALLOW);
    answer(report(nr, EAFNOSUPPORT));
}

/* ioctl(2): nothing may type into a terminal. The kernel takes the request as unsigned int, so high bits do not hide it
 * (CVE-2019-7303, CVE-2023-28100). */
static void rule_terminal(int nr) {
    load_low(1);
    when(TIOCSTI, report(nr, EPERM));
    when(TIOCLINUX, report(nr, EPERM));
    answer(SECCOMP_RET_ALLOW);
}

/* personality(2): plain Linux, 32-bit uname, the 2.6 version, no address randomisation, and asking. */
static void rule_persona(int nr __attribute__((unused))) {
    static const unsigned allowed[] = {0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff};
    load_low(0);
    for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
        when(allowed[i], SECCOMP_RET_ALLOW);
    answer(errno_action(EPERM));
}

/* prlimit64 and its kin succeed on every process of one's own uid, so the reaper (pid 1 here) must not be named. */
static void rule_not_init_first(int nr) {
    load_low(0);
    when(1, report(nr, EPERM));
    answer(SECCOMP_RET_ALLOW);
}

/* setpriority(PRIO_PROCESS, 1) and ioprio_set(IOPRIO_WHO_PROCESS, 1), the same. */
static void rule_not_init_second(int nr) {
    load_low(1);
    when(1, report(nr, EPERM));
    answer(SECCOMP_RET_ALLOW);
}

/* open(2) and openat(2) for reading only. O_TMPFILE and O_CREAT come with bits of their own. */
static void rule_reading(int nr) {
    load_low(strcmp(names[nr], "openat") == 0 ? 2 : 1);
    when_any_bit(O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | 020000000, errno_action(EPERM)); /* __O_TMPFILE */
    answer(SECCOMP_RET_ALLOW);
}

static const struct {
    const char *name;
    rule_function *rule;
} rules[] = {
    {"reading", rule_reading},
    {"namespaces", rule_namespaces},
    {"family", rule_family},
    {"pair", rule_pair},
    {"terminal", rule_terminal},
    {"persona", rule_persona},
    {"not-init-first", rule_not_init_first},
    {"not-init-second", rule_not_init_second},
};

static rule_function *find_rule(const char *name) {
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
        if (!strcmp(rules[i].name, name))
            return rules[i].rule;
    die("no such rule", name);
    return NULL;
}

static int find_errno(const char *name) {
    if (!strcmp(name, "EPERM"))
        return EPERM;
    if (!strcmp(name, "ENOSYS"))
        return ENOSYS;
    die("no such error", name);
    return 0;
}

/* Number of "name" or "name=number"; -1 when this machine has no such call. */
static int number_of(char *word) {
    char *equals = strchr(word, '=');
    int nr;
    if (equals) {
        *equals = 0;
        nr = atoi(equals + 1);
    } else {
        nr = seccomp_syscall_resolve_name(word);
        if (nr == __NR_SCMP_ERROR)
            die("no such system call", word);
    }
    if (nr >= CALLS_MAX)
        die("number out of range", word);
    return nr;
}

static void read_table(FILE *in) {
    char text[512];
    for (line = 1; fgets(text, sizeof(text), in); line++) {
        char *save, *verb = strtok_r(text, " \n", &save), *word;
        if (!verb || *verb == '#')
            continue;
        struct verdict v = {0};
        int e = 0;
        if (!strcmp(verb, "allow"))
            v.action = SECCOMP_RET_ALLOW;
        else if (!strcmp(verb, "refuse"))
            v.action = errno_action(find_errno(strtok_r(NULL, " \n", &save)));
        else if (!strcmp(verb, "report")) {
            v.action = SECCOMP_RET_USER_NOTIF;
            e = find_errno(strtok_r(NULL, " \n", &save));
        } else if (!strcmp(verb, "check"))
            v.rule = find_rule(strtok_r(NULL, " \n", &save));
        else
            die("no such verb", verb);
        while ((word = strtok_r(NULL, " \n", &save))) {
            int nr = number_of(word);
            if (nr < 0)
                continue; /* another machine's call (open on aarch64) */
            if (verdicts[nr].action || verdicts[nr].rule)
                die("stands twice", word);
            verdicts[nr] = v;
            reported[nr] = e;
            names[nr] = strdup(word);
        }
    }
}

struct range {
    unsigned first;
    struct verdict verdict;
};

static struct range ranges[CALLS_MAX + 1];
static size_t n_ranges;

static void make_ranges(void) {
    for (unsigned nr = 0; nr < CALLS_MAX; nr++) {
        struct verdict v = verdicts[nr];
        if (!v.action && !v.rule)
            v.action = errno_action(ENOSYS);
        struct verdict *before = n_ranges ? &ranges[n_ranges - 1].verdict : NULL;
        if (!before || v.rule || before->rule || before->action != v.action)
            ranges[n_ranges++] = (struct range){nr, v};
    }
}

/* The subtree over ranges [from, to); the call number is loaded. */
static void emit_tree(size_t from, size_t to) {
    if (to - from == 1) {
        struct verdict v = ranges[from].verdict;
        if (v.rule)
            v.rule((int)ranges[from].first);
        else
            answer(v.action);
        return;
    }
    size_t middle = (from + to) / 2, at = n_code;
    emit(BPF_JMP | BPF_JGE | BPF_K, ranges[middle].first, 0, 0);
    emit_tree(from, middle);
    size_t left = n_code - (at + 1);
    if (left > UINT8_MAX) { /* a conditional jump reaches 255 instructions; a plain one behind it reaches any number */
        emit(BPF_JMP | BPF_JA, 0, 0, 0);
        memmove(&code[at + 2], &code[at + 1], left * sizeof(*code));
        code[at + 1] = (struct sock_filter){BPF_JMP | BPF_JA, 0, 0, (unsigned)left};
        code[at].jf = 1;
    } else {
        code[at].jt = (unsigned char)left;
    }
    emit_tree(middle, to);
}

static void emit_program(void) {
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    emit(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    answer(errno_action(ENOSYS)); /* i386 by int 0x80: another table of numbers */
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    emit(BPF_JMP | BPF_JSET | BPF_K, FOREIGN_BIT, 0, 1);
    answer(errno_action(ENOSYS));
    emit_tree(0, n_ranges);
}

static void write_header(const char *name) {
    printf("/* made by seccomp_gen from %s: %zu ranges, %zu instructions */\n#pragma once\n", file, n_ranges, n_code);
    printf("#include <linux/filter.h>\n#include \"jail/seccomp.h\"\nstatic const struct sock_filter seccomp_%s_code[] "
           "= {\n",
           name);
    for (size_t i = 0; i < n_code; i++)
        printf("    {0x%02x, %u, %u, 0x%08x},\n", code[i].code, code[i].jt, code[i].jf, code[i].k);
    printf("};\n");
    int any = 0;
    for (int nr = 0; nr < CALLS_MAX; nr++) {
        if (!reported[nr])
            continue;
        if (!any++)
            printf("static const struct seccomp_reported seccomp_%s_reported[] = {\n", name);
        printf("    {%d, %d, \"%s\"},\n", nr, reported[nr], names[nr]);
    }
    if (any)
        printf("};\n");
}

int main(int argc, char **argv) {
    FILE *in = argc == 3 ? fopen(argv[2], "re") : NULL;
    if (!in) {
        fprintf(stderr, "usage: seccomp_gen NAME FILE.calls > HEADER\n");
        return 1;
    }
    const char *slash = strrchr(argv[2], '/');
    file = slash ? slash + 1 : argv[2];
    read_table(in);
    make_ranges();
    emit_program();
    write_header(argv[1]);
    return 0;
}
