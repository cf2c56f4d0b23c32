/* setup.c: the child that becomes the sandbox.
 *
 * It begins with every capability in a user namespace of its own and nothing outside it, and gives up in stages:
 *   1. enter: control groups, ids, a cgroup view of its own.          should not: touch a path yet
 *   2. build: the new root, from descriptors.                         must not: follow a link, write outside the space
 *   3. fork the reaper into the worker's pid namespace; it mounts /proc.
 *   4. leave: pivot into the root, let the old one go.                after this: no path of the host exists
 *   5. confine: capabilities, no_new_privs, Landlock, seccomp.        after this: nothing can be taken back
 *   6. exec doorward-init, as init here and as the reaper there: fresh address spaces.
 * runs in: launcher's set-up child (untrusted input: trees of inputs; holds: its user namespace) */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/linux_compat.h"
#include "base/str.h"
#include "jail/confine.h"
#include "jail/landlock.h"
#include "jail/mount.h"
#include "jail/ns.h"
#include "jail/seccomp.h"
#include "launch/launch.h"

#define PROGRAM_INSIDE "run/doorward/dw"
#define SOCKET_INSIDE  "/run/doorward/socket"

struct setup {
    struct launch *l;
    struct root root;
    int pair[2];  /* [0] init, [1] reaper; a byte each way while they set up, their channel afterwards */
    int listener; /* for dw */
    struct error err;
};

/* Tells the launcher why nothing will run, and ends. */
static void die(struct setup *s) {
    struct wire_message *m = &s->l->m;
    wire_begin(m, INNER_FAILED);
    wire_put_u32(m, (uint32_t)-s->err.code);
    wire_put_text(m, s->err.message);
    wire_send(s->l->inner, m);
    _exit(125);
}

static void must(struct setup *s, int code) {
    if (code < 0)
        die(s);
}

static void must_errno(struct setup *s, int code, const char *what) {
    if (code < 0) {
        error_errno(&s->err, code, "%s", what);
        die(s);
    }
}

static int sys(long r) {
    return r < 0 ? -errno : 0;
}

/* A byte to or from the other half of the set-up; the end of it means the other half has died and said why. */
static void pass(int fd) {
    if (send(fd, "", 1, MSG_NOSIGNAL) != 1)
        _exit(125);
}

static void await(int fd) {
    char byte;
    if (recv(fd, &byte, 1, 0) != 1)
        _exit(125);
}

/* --- 1. enter --- */

static void enter_groups(struct setup *s) {
    int fds[CGROUP_N];
    int n = cgroup_entries(&s->l->group, fds);
    must_errno(s, n, "cannot open the step's control groups");
    for (int i = 0; i < n; i++) {
        must_errno(s, fd_write_all(fds[i], "0", 1), "cannot enter the step's control groups");
        fd_close(fds[i]);
    }
}

static void enter_ids(struct setup *s) {
    uint32_t id = s->l->id;
    if (!wall_stands(s->l, PLAN_WALL_USERNS))
        return;
    if (s->l->root)
        must_errno(s, sys(setgroups(0, NULL)), "cannot drop groups");
    must_errno(s, sys(setresgid(id, id, id)), "cannot become the worker's group");
    must_errno(s, sys(setresuid(id, id, id)), "cannot become the worker's user");
}

static void enter_namespaces(struct setup *s) {
    must_errno(s, sys(prctl(PR_SET_PDEATHSIG, SIGKILL)), "cannot tie the step to doorward");
    if (wall_stands(s->l, PLAN_WALL_CGROUP))
        must_errno(s, sys(unshare(CLONE_NEWCGROUP)), "cannot make a cgroup namespace");
    if (wall_stands(s->l, PLAN_WALL_IPC))
        must_errno(s, sys(sethostname("doorward", 8)), "cannot name the sandbox");
    if (wall_stands(s->l, PLAN_WALL_NET))
        must_errno(s, ns_loopback_up(), "cannot bring the sandbox's loopback up");
    /* Nothing that is mounted outside from now on may appear inside. */
    must_errno(s, sys(syscall(SYS_mount, NULL, "/", NULL, 0x44000 /* MS_REC | MS_PRIVATE */, NULL)),
               "cannot cut off mounts");
}

/* --- 2. build --- */

/* As an ordinary user only the child, in its own namespaces, may clone mounts: so it opens the inputs. */
static void open_inputs(struct setup *s) {
    struct launch *l = s->l;
    must(s, space_make(&l->plan, -1, &l->space, &s->err));
    for (size_t i = 0; i < l->plan.n_inputs; i++) {
        _cleanup_fd_ int source = input_open(&l->plan.inputs[i], &s->err);
        must(s, source);
        l->trees[i] = input_mount(l, i, source, -1, &l->shows[i], &s->err);
        must(s, l->trees[i]);
    }
}

/* Hands the launcher what shows the step's files outside, so that they outlive every process here. */
static void send_space(struct setup *s) {
    struct launch *l = s->l;
    struct wire_message *m = &l->m;
    wire_begin(m, INNER_SPACE);
    wire_put_fd(m, l->space);
    for (size_t i = 0; i < l->plan.n_inputs; i++) {
        if (l->shows[i] < 0)
            continue;
        if (m->n_fds == WIRE_FDS_MAX) {
            must_errno(s, wire_send(l->inner, m), "launcher");
            wire_begin(m, INNER_SPACE);
        }
        wire_put_u32(m, (uint32_t)i);
        wire_put_fd(m, l->shows[i]);
    }
    must_errno(s, wire_send(l->inner, m), "launcher");
}

static void mount_program(struct setup *s) {
    struct launch *l = s->l;
    int tree = l->program_tree;
    if (tree < 0) {
        char path[40], name[4096];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", l->program);
        ssize_t n = readlink(path, name, sizeof(name) - 1);
        name[n > 0 ? n : 0] = 0;
        tree = mount_tree(AT_FDCWD, name, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    }
    must_errno(s, tree, "cannot take doorward-init into the sandbox");
    snprintf(s->root.parts[s->root.n_parts].target, sizeof(s->root.parts[0].target), PROGRAM_INSIDE);
    s->root.parts[s->root.n_parts++].tree = tree;
}

static void listen_for_dw(struct setup *s) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/run/doorward/socket", s->root.fd);
    must_errno(s, sys(s->listener), "cannot make the socket of dw");
    must_errno(s, sys(bind(s->listener, (struct sockaddr *)&address, sizeof(address))),
               "cannot place the socket of dw");
    must_errno(s, sys(fchmodat(s->root.fd, &SOCKET_INSIDE[1], 0666, 0)), "cannot open the socket of dw");
    must_errno(s, sys(listen(s->listener, 4)), "cannot listen for dw");
}

static void build_root(struct setup *s) {
    if (!s->l->root)
        open_inputs(s);
    if (!wall_stands(s->l, PLAN_WALL_MOUNTS))
        return;
    must(s, root_open_parts(s->l, &s->root, &s->err));
    mount_program(s);
    listen_for_dw(s);
    must(s, root_build(s->l, &s->root, &s->err));
}

/* --- 5. confine --- */

static int rule(struct landlock_rule *rules, size_t *n, const char *path, enum landlock_access access) {
    int fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    rules[(*n)++] = (struct landlock_rule){fd, access};
    return 0;
}

/* The worker may see everything the new root shows, use devices, and change what the plan lets it. */
static void landlock_worker(struct setup *s) {
    static const char *const changeable[] = {"/tmp", "/home/agent", "/out", "/dev/shm"};
    const struct plan *p = &s->l->plan;
    size_t n = 0;
    _cleanup_free_ struct landlock_rule *rules = calloc(p->n_inputs + ELEMENTS(changeable) + 3, sizeof(*rules));
    must_errno(s, rules ? 0 : -ENOMEM, "Landlock rules");
    must_errno(s, rule(rules, &n, "/", LANDLOCK_SEE), "Landlock rule for /");
    must_errno(s, rule(rules, &n, "/dev", LANDLOCK_USE), "Landlock rule for /dev");
    must_errno(s, rule(rules, &n, "/proc", LANDLOCK_USE), "Landlock rule for /proc");
    for (size_t i = 0; i < ELEMENTS(changeable); i++)
        must_errno(s, rule(rules, &n, changeable[i], LANDLOCK_CHANGE), changeable[i]);
    for (size_t i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].kind != PLAN_READ)
            must_errno(s, rule(rules, &n, p->inputs[i].target, LANDLOCK_CHANGE), p->inputs[i].target);
    must(s, landlock_confine(rules, n, true, &s->err));
    for (size_t i = 0; i < n; i++)
        fd_close(rules[i].fd);
}

/* init needs its own program and nothing else of the file system. */
static void landlock_init(struct setup *s) {
    struct landlock_rule rules[1];
    size_t n = 0;
    must_errno(s, rule(rules, &n, "/" PROGRAM_INSIDE, LANDLOCK_SEE), "Landlock rule for init");
    must(s, landlock_confine(rules, n, false, &s->err));
    fd_close(rules[0].fd);
}

static bool has_landlock(const struct setup *s) {
    return wall_stands(s->l, PLAN_WALL_LANDLOCK) && wall_stands(s->l, PLAN_WALL_MOUNTS) &&
           !(s->l->plan.degrade_wall[PLAN_WALL_LANDLOCK] && landlock_abi() < 0);
}

static void give_up_rights(struct setup *s) {
    if (!wall_stands(s->l, PLAN_WALL_CAPS)) {
        must_errno(s, confine_keep_capabilities(), "lab: cannot keep capabilities");
        return;
    }
    must_errno(s, confine_capabilities(-1), "cannot drop capabilities");
    must_errno(s, confine_no_new_privileges(), "cannot set no_new_privs");
}

static void close_all_but(struct setup *s, int from) {
    if (wall_stands(s->l, PLAN_WALL_FDS))
        must_errno(s, fd_close_from(from, NULL, 0), "cannot close the launcher's descriptors");
}

/* --- 6. exec --- */

/* The program as it is mounted inside, read-only (CVE-2019-5736); without a root of our own (lab) the host's. */
static int open_program(struct setup *s) {
    int fd = wall_stands(s->l, PLAN_WALL_MOUNTS) ? open("/" PROGRAM_INSIDE, O_PATH | O_CLOEXEC)
                                                 : fcntl(s->l->program, F_DUPFD_CLOEXEC, 3);
    must_errno(s, sys(fd), "cannot open doorward-init in the sandbox");
    return fd;
}

/* Puts `fds` on the numbers from `first` on, whatever they are now. */
static void place(struct setup *s, const int *fds, size_t n, int first) {
    int high[8];
    for (size_t i = 0; i < n; i++) {
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64);
        must_errno(s, sys(high[i]), "cannot place descriptors");
    }
    for (size_t i = 0; i < n; i++)
        must_errno(s, sys(dup2(high[i], first + (int)i)), "cannot place descriptors");
}

static void exec_program(struct setup *s, int program, char *const argv[], char *const env[]) {
    syscall(SYS_execveat, program, "", argv, env, AT_EMPTY_PATH);
    must_errno(s, -errno, "cannot run doorward-init in the sandbox (is it readable and executable for everybody?)");
}

/* --- the reaper's half --- */

static void send_fd(struct setup *s, uint16_t type, int fd) {
    wire_begin(&s->l->m, type);
    wire_put_fd(&s->l->m, fd);
    must_errno(s, wire_send(s->l->inner, &s->l->m), "launcher");
}

/* A terminal of the sandbox's own /dev/pts: the master goes outside, the slave becomes the standard streams. */
static void open_terminal(struct setup *s) {
    int unlock = 0;
    int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    must_errno(s, sys(master), "cannot open a terminal in the sandbox");
    must_errno(s, sys(ioctl(master, TIOCSPTLCK, &unlock)), "cannot unlock the sandbox's terminal");
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    must_errno(s, sys(slave), "cannot open the sandbox's terminal");
    send_fd(s, INNER_TERMINAL, master);
    fd_close(master);
    for (int i = 0; i < 3; i++)
        s->l->std[i] = slave;
}

static void reaper_confine(struct setup *s) {
    must(s, limits_carry(s->l, &s->err));
    bool landlock = has_landlock(s);
    give_up_rights(s);
    if (landlock)
        landlock_worker(s);
    if (wall_stands(s->l, PLAN_WALL_SECCOMP)) {
        int listener;
        must_errno(s, seccomp_install(&seccomp_worker, &listener), "cannot install the system call filter");
        send_fd(s, INNER_LISTENER, listener);
        fd_close(listener);
    }
}

static char **reaper_arguments(struct setup *s) {
    const struct plan *p = &s->l->plan;
    size_t n = strv_count(p->argv);
    char **argv = calloc(n + 4, sizeof(*argv));
    static char flags[4];
    snprintf(flags, sizeof(flags), "%s%s", p->terminal ? "t" : "", wall_stands(s->l, PLAN_WALL_SESSION) ? "s" : "");
    must_errno(s, argv ? 0 : -ENOMEM, "arguments");
    argv[0] = (char *)"reaper";
    argv[1] = flags;
    argv[2] = p->workdir;
    memcpy(argv + 3, p->argv, n * sizeof(*argv));
    return argv;
}

static void reaper_run(struct setup *s) {
    int channel = s->pair[1];
    fd_close(s->pair[0]);
    must_errno(s, sys(prctl(PR_SET_PDEATHSIG, SIGKILL)), "cannot tie the reaper to init");
    if (wall_stands(s->l, PLAN_WALL_MOUNTS))
        must(s, root_attach_proc(s->l, &s->root, &s->err));
    pass(channel);
    await(channel);
    if (s->l->plan.terminal)
        open_terminal(s);
    int program = open_program(s);
    char **argv = reaper_arguments(s);
    const int fds[] = {s->l->std[0], s->l->std[1], s->l->std[2], channel, program, s->l->inner};
    place(s, fds, ELEMENTS(fds), 0);
    close_all_but(s, (int)ELEMENTS(fds));
    s->l->inner = 5;
    must_errno(s, sys(fcntl(4, F_SETFD, FD_CLOEXEC) | fcntl(5, F_SETFD, FD_CLOEXEC)), "descriptors");
    reaper_confine(s);
    exec_program(s, 4, argv, s->l->plan.env);
}

static void fork_reaper(struct setup *s) {
    must_errno(s, sys(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->pair)), "cannot make init's channel");
    pid_t pid = ns_clone(wall_stands(s->l, PLAN_WALL_PIDS) ? CLONE_NEWPID : 0, -1, NULL);
    must_errno(s, pid, "cannot make the worker's pid namespace");
    if (pid == 0)
        reaper_run(s);
    s->pair[1] = fd_close(s->pair[1]);
}

/* --- init's half --- */

static void init_confine(struct setup *s) {
    bool landlock = has_landlock(s);
    must_errno(s, confine_no_core(), "cannot forbid core dumps");
    give_up_rights(s);
    if (landlock)
        landlock_init(s);
    if (wall_stands(s->l, PLAN_WALL_SECCOMP))
        must_errno(s, seccomp_install(&seccomp_init, NULL), "cannot install init's system call filter");
}

static void init_run(struct setup *s) {
    static char *const argv[] = {(char *)"init", NULL}, *const env[] = {NULL};
    int program = open_program(s);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    must_errno(s, sys(null), "cannot open /dev/null in the sandbox");
    if (!wall_stands(s->l, PLAN_WALL_MOUNTS))
        s->listener = eventfd(0, EFD_CLOEXEC); /* never readable: without a root of its own there is no place for dw */
    const int fds[] = {null, null, null, s->l->inner, s->pair[0], s->listener, program};
    place(s, fds, ELEMENTS(fds), 0);
    close_all_but(s, (int)ELEMENTS(fds));
    s->l->inner = INNER_CHANNEL;
    must_errno(s, sys(fcntl(6, F_SETFD, FD_CLOEXEC)), "descriptors");
    init_confine(s);
    exec_program(s, 6, argv, env);
}

void setup_run(struct launch *l, int inner) {
    static struct setup s;
    s = (struct setup){.l = l, .pair = {-1, -1}, .listener = -1};
    l->inner = inner;
    enter_groups(&s);
    await(inner); /* the id maps are written */
    enter_ids(&s);
    enter_namespaces(&s);
    build_root(&s);
    if (!l->root)
        send_space(&s);
    fork_reaper(&s);
    await(s.pair[0]); /* /proc is there, which needed the old root's */
    if (wall_stands(l, PLAN_WALL_MOUNTS))
        must(&s, root_enter(&s.root, &s.err));
    pass(s.pair[0]);
    init_run(&s);
    _exit(125);
}
