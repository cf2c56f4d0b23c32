/* setup.c: the child that becomes the sandbox.
 *
 * It begins with every capability in a user namespace of its own and nothing outside it. It forks the reaper's half into the
 * worker's pid namespace, makes the network namespace meanwhile, and becomes init; the reaper's half does the rest:
 *   1. enter: ids, control groups, a cgroup view of its own.          should not: touch a path of the worker's choice
 *   2. build: the new root, from descriptors; /proc.                  must not: follow a link, write outside the space
 *   3. leave: pivot into the root, let the old one go.                after this: no path of the host exists
 *   4. confine: capabilities, no_new_privs, Landlock, seccomp.        after this: nothing can be taken back (both halves)
 *   5. exec doorward-init, as init here and as the reaper there: fresh address spaces.
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
    int channel; /* to the launcher: init's half or the reaper's */
    struct root root;
    int pair[2];    /* between the halves: [0] init's, [1] the reaper's */
    int listener;   /* for dw */
    int namespaces; /* /proc/self/ns of init's half, as it was before the root changed */
    int net;        /* the network namespace while it is init's half's, or -1 */
    int loopback;   /* a socket of the network namespace, or -1 */
    struct error err;
};

/* Tells the launcher why nothing will run, and ends. */
static void die(struct setup *s) {
    struct wire_message *m = &s->l->m;
    wire_begin(m, INNER_FAILED);
    wire_put_u32(m, (uint32_t)-s->err.code);
    wire_put_text(m, s->err.message);
    wire_send(s->channel, m);
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

/* The same for a step of the set-up that is one of the walls. */
static void must_wall(struct setup *s, enum plan_wall wall, int code) {
    if (code >= 0)
        return;
    error_wrap(&s->err, "wall %s", plan_wall_names[wall]);
    die(s);
}

static void must_wall_errno(struct setup *s, enum plan_wall wall, int code, const char *what) {
    if (code < 0)
        error_errno(&s->err, code, "%s", what);
    must_wall(s, wall, code);
}

static int sys(long r) {
    return r < 0 ? -errno : 0;
}

/* A byte from the launcher; the end of it means that the launcher is gone. */
static void await(int fd) {
    char byte;
    if (recv(fd, &byte, 1, 0) != 1)
        _exit(125);
}

/* --- 1. enter --- */

/* Descriptors of `tasks` files: a fresh, single-threaded process writes "0" to move itself. */
static void enter_groups(struct setup *s) {
    struct wire_message *m = &s->l->m;
    while (m->n_fds) {
        _cleanup_fd_ int fd = wire_take_fd(m);
        must_errno(s, fd_write_all(fd, "0", 1), "cannot enter the step's control groups");
    }
    must_errno(s, wire_end(m), "launcher");
    if (wall_stands(s->l, PLAN_WALL_CGROUP))
        must_wall_errno(s, PLAN_WALL_CGROUP, sys(unshare(CLONE_NEWCGROUP)), "cannot make a cgroup namespace");
}

static void enter_session(struct setup *s) {
    if (wall_stands(s->l, PLAN_WALL_SESSION))
        setsid(); /* the terminal's signals are the controller's to forward */
}

static void enter_ids(struct setup *s) {
    uint32_t id = s->l->id;
    if (!wall_stands(s->l, PLAN_WALL_USERNS))
        return;
    if (s->l->root)
        must_wall_errno(s, PLAN_WALL_USERNS, sys(setgroups(0, NULL)), "cannot drop groups");
    must_wall_errno(s, PLAN_WALL_USERNS, sys(setresgid(id, id, id)), "cannot become the worker's group");
    must_wall_errno(s, PLAN_WALL_USERNS, sys(setresuid(id, id, id)), "cannot become the worker's user");
    must_errno(s, sys(prctl(PR_SET_PDEATHSIG, SIGKILL)),
               "cannot tie the step to doorward"); /* a change of ids undid it */
}

static void receive(struct setup *s, int fd, enum inner_type type) {
    struct wire_message *m = &s->l->m;
    int got = wire_receive(fd, m);
    if (got == 0)
        _exit(125); /* the other side has died and said why */
    must_errno(s, got == 1 && m->type == type ? 0 : -EPROTO, "launcher");
}

/* Sends to the other half; when that has died, it has said why. */
static void pass_on(struct setup *s, int fd) {
    int r = wire_send(fd, &s->l->m);
    if (r == -EPIPE || r == -ECONNRESET)
        _exit(125);
    if (r == -ETOOMANYREFS) /* unix(7); musl has no words for it */
        must(s, error_set(&s->err, r,
                          "more descriptors of this user are on their way between processes of the host than the "
                          "limit of open files allows; raise it (ulimit -n), or end what holds them"));
    must_errno(s, r, "the other half of the set-up");
}

uint32_t setup_walls(const struct launch *l) {
    uint32_t walls = 0;
    for (unsigned w = 0; w < PLAN_WALL_N; w++)
        walls |= (uint32_t)wall_stands(l, w) << w;
    if (l->plan.degrade_wall[PLAN_WALL_LANDLOCK] && landlock_abi() < 0)
        walls &= ~(1u << PLAN_WALL_LANDLOCK);
    if (l->plan.degrade_wall[PLAN_WALL_SECCOMP] && seccomp_missing() < 0)
        walls &= ~(1u << PLAN_WALL_SECCOMP);
    return walls;
}

static void take_walls(struct launch *l, uint32_t walls) {
    for (unsigned w = 0; w < PLAN_WALL_N; w++)
        l->plan.lab_off[w] = !(walls >> w & 1);
}

/* --- 2. build --- */

/* What the launcher decided and made: the plan, the worker's streams, and as host root the mounts. */
static void take_build(struct setup *s) {
    struct launch *l = s->l;
    struct wire_message *m = &l->m;
    _cleanup_free_ char *bytes = NULL;
    size_t n;
    receive(s, s->channel, INNER_BUILD);
    uint32_t there = wire_get_u32(m), walls = wire_get_u32(m);
    uint32_t id = wire_get_u32(m);
    _cleanup_fd_ int plan = wire_take_fd(m);
    for (int i = 0; i < 3; i++)
        l->std[i] = wire_take_fd(m);
    l->program = wire_take_fd(m);
    l->space = there & 1 ? wire_take_fd(m) : -1;
    l->devices = there & 2 ? wire_take_fd(m) : -1;
    l->program_tree = there & 4 ? wire_take_fd(m) : -1;
    must_errno(s, wire_end(m), "launcher");
    must_errno(s, lseek(plan, 0, SEEK_SET) < 0 ? -errno : 0, "plan");
    must(s, fd_read_file(plan, PLAN_ENCODED_MAX, &bytes, &n, &s->err));
    plan_free(&l->plan);
    must(s, plan_unpack(bytes, n, &l->plan, &s->err));
    take_walls(l, walls);
    l->id = id;
}

static void take_groups(struct setup *s) {
    struct wire_message *m = &s->l->m;
    receive(s, s->channel, INNER_GROUPS);
    take_walls(s->l, wire_get_u32(m));
    s->l->id = wire_get_u32(m);
    s->l->held.limits[PLAN_PROCESSES].by = wire_get_u32(m) ? "rlimit" : NULL;
    enter_session(s);
    enter_groups(s);
}

static void take_trees(struct setup *s) {
    struct launch *l = s->l;
    size_t have = 0;
    l->trees = calloc(l->plan.n_inputs + 1, sizeof(int));
    l->shows = malloc(sizeof(int) * (l->plan.n_inputs + 1));
    must_errno(s, l->trees && l->shows ? 0 : -ENOMEM, "inputs");
    for (size_t i = 0; i < l->plan.n_inputs; i++)
        l->shows[i] = -1;
    while (l->root && have < l->plan.n_inputs) {
        receive(s, s->channel, INNER_TREES);
        for (uint32_t n = wire_get_u32(&l->m); n > 0 && !l->m.broken; n--, have++) {
            uint32_t i = wire_get_u32(&l->m);
            must_errno(s, i < l->plan.n_inputs ? 0 : -EPROTO, "launcher");
            l->trees[i] = wire_take_fd(&l->m);
        }
        must_errno(s, wire_end(&l->m), "launcher");
    }
}

/* Kernels before 6.15 clone folders of the space, and layer them, only where it is attached; here that goes with the old root. */
static void park_space(struct setup *s) {
    if (!mount_knows_detached())
        must_wall_errno(s, PLAN_WALL_MOUNTS, mount_park(s->l->space), "cannot attach the step's space");
}

/* As an ordinary user only the child, in its own namespaces, may clone mounts: so it opens the inputs. */
static void open_inputs(struct setup *s) {
    struct launch *l = s->l;
    must(s, space_make(&l->plan, -1, &l->space, &s->err));
    park_space(s);
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
            must_errno(s, wire_send(s->channel, m), "launcher");
            wire_begin(m, INNER_SPACE);
        }
        wire_put_u32(m, (uint32_t)i);
        wire_put_fd(m, l->shows[i]);
    }
    must_errno(s, wire_send(s->channel, m), "launcher");
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

/* What is dropped here no exec brings back; what the set-up still needs is held until confine. */
static void drop_bounding_set(struct setup *s) {
    if (wall_stands(s->l, PLAN_WALL_CAPS))
        must_wall_errno(s, PLAN_WALL_CAPS, confine_bounding_set(), "cannot empty the bounding set");
}

/* The part that needs no plan comes first: it runs while the controller still makes one. */
static void build_root(struct setup *s) {
    struct launch *l = s->l;
    bool mounts = wall_stands(l, PLAN_WALL_MOUNTS);
    if (mounts)
        must_wall(s, PLAN_WALL_MOUNTS, root_make(l, &s->root, &s->err));
    take_build(s);
    take_trees(s);
    if (!l->root)
        open_inputs(s);
    if (!mounts)
        return;
    if (l->root)
        park_space(s);
    if (l->devices < 0)
        must_wall(s, PLAN_WALL_MOUNTS, root_open_devices(&s->root, &s->err));
    mount_program(s);
    listen_for_dw(s);
    must_wall(s, PLAN_WALL_MOUNTS, root_build(l, &s->root, &s->err));
    must_wall(s, PLAN_WALL_MOUNTS, root_attach_proc(&s->root, &s->err));
    must_wall(s, PLAN_WALL_MOUNTS, root_enter(&s->root, &s->err));
}

/* The network namespace that init's half has made meanwhile, and the news that the root is entered, with dw's socket. */
static void join_halves(struct setup *s) {
    struct wire_message *m = &s->l->m;
    if (wall_stands(s->l, PLAN_WALL_NET)) {
        receive(s, s->pair[1], INNER_NET);
        _cleanup_fd_ int net = wire_take_fd(m);
        s->loopback = wire_take_fd(m);
        must_errno(s, wire_end(m), "init");
        must_wall_errno(s, PLAN_WALL_NET, sys(setns(net, CLONE_NEWNET)),
                        "cannot enter the sandbox's network namespace");
    }
    if (s->listener < 0)
        s->listener = eventfd(0, EFD_CLOEXEC); /* never readable: without a root of its own there is no place for dw */
    must_errno(s, sys(s->listener), "cannot make dw's socket");
    wire_begin(m, INNER_ENTERED);
    wire_put_fd(m, s->listener);
    pass_on(s, s->pair[1]);
}

/* --- 4. confine --- */

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
    _cleanup_free_ struct landlock_rule *rules = calloc(p->n_inputs + ELEMENTS(changeable) + 2, sizeof(*rules));
    must_errno(s, rules ? 0 : -ENOMEM, "Landlock rules");
    must_errno(s, rule(rules, &n, "/", LANDLOCK_SEE), "Landlock rule for /");
    must_errno(s, rule(rules, &n, "/dev", LANDLOCK_USE), "Landlock rule for /dev");
    for (size_t i = 0; i < ELEMENTS(changeable); i++)
        must_errno(s, rule(rules, &n, changeable[i], LANDLOCK_CHANGE), changeable[i]);
    for (size_t i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].kind != PLAN_READ)
            must_errno(s, rule(rules, &n, p->inputs[i].target, LANDLOCK_CHANGE), p->inputs[i].target);
    must_wall(s, PLAN_WALL_LANDLOCK, landlock_confine(rules, n, true, &s->err));
    for (size_t i = 0; i < n; i++)
        fd_close(rules[i].fd);
}

/* init needs its own program and nothing else of the file system. */
static void landlock_init(struct setup *s) {
    struct landlock_rule rules[1];
    size_t n = 0;
    must_errno(s, rule(rules, &n, "/" PROGRAM_INSIDE, LANDLOCK_SEE), "Landlock rule for init");
    must_wall(s, PLAN_WALL_LANDLOCK, landlock_confine(rules, n, false, &s->err));
    fd_close(rules[0].fd);
}

static bool has_landlock(const struct setup *s) {
    return wall_stands(s->l, PLAN_WALL_LANDLOCK) && wall_stands(s->l, PLAN_WALL_MOUNTS);
}

static void give_up_rights(struct setup *s) {
    if (!wall_stands(s->l, PLAN_WALL_CAPS)) {
        must_errno(s, confine_keep_capabilities(), "lab: cannot keep capabilities");
        return;
    }
    must_wall_errno(s, PLAN_WALL_CAPS, confine_capabilities(-1), "cannot drop capabilities");
    must_wall_errno(s, PLAN_WALL_CAPS, confine_no_new_privileges(), "cannot set no_new_privs");
}

/* /proc inside shows the reaper's pid namespace: init's half, where it has no close_range, finds its list in the /proc that
 * it had before, by the descriptor it kept of its own folder there. */
static void close_all_but(struct setup *s, int from) {
    if (!wall_stands(s->l, PLAN_WALL_FDS))
        return;
    int r = fd_close_from(from, NULL, 0);
    if (r == -ENOSYS && s->namespaces >= 0)
        r = fd_close_listed(openat(s->namespaces, "../fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), from, NULL, 0);
    must_wall_errno(s, PLAN_WALL_FDS, r, "cannot close the launcher's descriptors");
}

/* --- 5. exec --- */

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
    must_errno(s, wire_send(s->channel, &s->l->m), "launcher");
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
    _cleanup_fd_ int listener = -1;
    if (wall_stands(s->l, PLAN_WALL_SECCOMP))
        must_wall_errno(s, PLAN_WALL_SECCOMP, seccomp_install(&seccomp_worker, &listener),
                        "cannot install the system call filter");
    const int fds[] = {listener, s->loopback};
    wire_begin(&s->l->m, INNER_LISTENER);
    for (size_t i = 0; i < ELEMENTS(fds); i++)
        if (fds[i] >= 0)
            wire_put_fd(&s->l->m, fds[i]);
    must_errno(s, wire_send(s->channel, &s->l->m), "launcher");
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
    fd_close(s->pair[0]);
    fd_close(s->l->inner);
    s->channel = s->l->build;
    must_errno(s, sys(prctl(PR_SET_PDEATHSIG, SIGKILL)), "cannot tie the reaper to init");
    if (wall_stands(s->l, PLAN_WALL_MOUNTS))
        must_wall(s, PLAN_WALL_MOUNTS, root_open_parts(&s->root, &s->err));
    await(s->channel); /* the id maps are written */
    enter_ids(s);
    build_root(s);
    if (!s->l->root)
        send_space(s);
    take_groups(s);
    join_halves(s);
    if (s->l->plan.terminal)
        open_terminal(s);
    int program = open_program(s);
    char **argv = reaper_arguments(s);
    const int fds[] = {s->l->std[0], s->l->std[1], s->l->std[2], s->channel, program, s->loopback};
    size_t n = ELEMENTS(fds) - (s->loopback < 0);
    place(s, fds, n, 0);
    s->channel = INNER_CHANNEL;
    close_all_but(s, (int)n);
    s->loopback = s->loopback < 0 ? -1 : 5;
    must_errno(s, sys(fcntl(4, F_SETFD, FD_CLOEXEC) | (s->loopback < 0 ? 0 : fcntl(5, F_SETFD, FD_CLOEXEC))),
               "descriptors");
    reaper_confine(s);
    exec_program(s, 4, argv, s->l->plan.env);
}

static void fork_reaper(struct setup *s) {
    must_errno(s, sys(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->pair)), "cannot make init's channel");
    pid_t pid = ns_clone(wall_stands(s->l, PLAN_WALL_PIDS) ? CLONE_NEWPID : 0, -1, NULL);
    must_wall_errno(s, PLAN_WALL_PIDS, pid, "cannot make the worker's pid namespace");
    if (pid == 0)
        reaper_run(s);
    s->pair[1] = fd_close(s->pair[1]);
    s->l->build = fd_close(s->l->build);
}

/* --- init's half --- */

static void init_confine(struct setup *s) {
    bool landlock = has_landlock(s);
    must_errno(s, confine_no_core(), "cannot forbid core dumps");
    give_up_rights(s);
    if (landlock)
        landlock_init(s);
    if (wall_stands(s->l, PLAN_WALL_SECCOMP))
        must_wall_errno(s, PLAN_WALL_SECCOMP, seccomp_install(&seccomp_init, NULL),
                        "cannot install init's system call filter");
}

/* A network namespace takes the kernel longer than all the others together, so it is made here while the reaper's half
 * builds the root. Its loopback interface stays down until the worker asks for a socket: to bring it up and to take it down
 * again keeps the kernel's one lock over network configuration for milliseconds, which the next start then waits for. */
static void make_network(struct setup *s) {
    must_wall_errno(s, PLAN_WALL_NET, sys(unshare(CLONE_NEWNET)), "cannot make a network namespace");
    s->loopback = ns_loopback();
    must_wall_errno(s, PLAN_WALL_NET, s->loopback, "cannot make a socket in the sandbox's network namespace");
    if (!wall_stands(s->l, PLAN_WALL_SECCOMP)) /* lab: no filter tells the launcher of the first socket */
        must_wall_errno(s, PLAN_WALL_NET, ns_loopback_up(s->loopback), "cannot bring the sandbox's loopback up");
    s->net = openat(s->namespaces, "net", O_RDONLY | O_CLOEXEC);
    must_wall_errno(s, PLAN_WALL_NET, sys(s->net), "cannot open the network namespace");
}

/* Once this half has the step's own ids: descriptors on their way count against a user's limit of open files (unix(7)),
 * and as host root, without its rights here, that would be all that root's processes have on their way. */
static void send_network(struct setup *s) {
    wire_begin(&s->l->m, INNER_NET);
    wire_put_fd(&s->l->m, s->net);
    wire_put_fd(&s->l->m, s->loopback);
    pass_on(s, s->pair[0]);
    s->net = fd_close(s->net);
    s->loopback = fd_close(s->loopback);
}

static void init_run(struct setup *s) {
    static char *const argv[] = {(char *)"init", NULL}, *const env[] = {NULL};
    receive(s, s->pair[0], INNER_ENTERED);
    s->listener = wire_take_fd(&s->l->m);
    must_errno(s, wire_end(&s->l->m), "reaper");
    must_errno(s, sys(chdir("/")),
               "cannot leave the host's folder"); /* the pivot moved this half's root, not its cwd */
    int program = open_program(s);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    must_errno(s, sys(null), "cannot open /dev/null in the sandbox");
    const int fds[] = {null, null, null, s->channel, s->listener, program};
    s->namespaces = fcntl(s->namespaces, F_DUPFD_CLOEXEC, 64); /* out of the way of those numbers */
    place(s, fds, ELEMENTS(fds), 0);
    s->channel = INNER_CHANNEL;
    close_all_but(s, (int)ELEMENTS(fds));
    must_errno(s, sys(fcntl(5, F_SETFD, FD_CLOEXEC)), "descriptors");
    init_confine(s);
    wire_begin(&s->l->m, INNER_CONFINED);
    must_errno(s, wire_send(s->channel, &s->l->m), "launcher");
    exec_program(s, 5, argv, env);
}

void setup_run(struct launch *l, int inner, int build) {
    static struct setup s;
    s = (struct setup){
        .l = l, .channel = inner, .pair = {-1, -1}, .listener = -1, .net = -1, .loopback = -1, .namespaces = -1};
    l->inner = inner;
    l->build = build;
    must_errno(&s, sys(prctl(PR_SET_PDEATHSIG, SIGKILL)), "cannot tie the step to doorward");
    if (wall_stands(l, PLAN_WALL_IPC))
        must_wall_errno(&s, PLAN_WALL_IPC, sys(sethostname("doorward", 8)), "cannot name the sandbox");
    /* In a mount namespace of a new user namespace nothing inside is seen outside, and the root that is left at the end
     * takes what appears outside with it. Without one (lab) it must be cut off. */
    if (!wall_stands(l, PLAN_WALL_USERNS))
        must_errno(&s, sys(syscall(SYS_mount, NULL, "/", NULL, 0x44000 /* MS_REC | MS_PRIVATE */, NULL)),
                   "cannot cut off mounts");
    /* Opened before the reaper's half changes the root under this one. */
    s.namespaces = open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);
    must_errno(&s, sys(s.namespaces), "cannot open /proc/self/ns");
    drop_bounding_set(&s); /* both halves' */
    fork_reaper(&s);
    if (wall_stands(l, PLAN_WALL_NET))
        make_network(&s);
    await(inner); /* the id maps are written */
    take_groups(&s);
    enter_ids(&s);
    if (wall_stands(l, PLAN_WALL_NET))
        send_network(&s);
    init_run(&s);
    _exit(125);
}
