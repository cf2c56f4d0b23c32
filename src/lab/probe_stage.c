/* probe_stage.c: the stage, the outside half of the lab: canaries, listeners and a victim.
 *
 * `doorward-probe stage DIR` lays everything out below DIR (fresh, owned by the caller), prints the facts that probes
 * need as KEY=VALUE lines and "ready", and then answers questions on standard input, one line each:
 *
 *     heard            -> "heard NAME ..."     markers that any listener received since the last time
 *     digest           -> "digest HEX"         of names, modes and bytes of everything below DIR/victim
 *     lingering NAME   -> "lingering N"        processes of that probe that are there; they are ended
 *
 * End of file ends it: the victim is ended, everything it made is removed.
 * runs in: probe, outside (untrusted input: bytes that the listeners get; holds: the secret, which is made up) */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <ifaddrs.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <linux/capability.h>

#include "base/buf.h"
#include "base/digest.h"
#include "lab/probe.h"

#define LISTENERS      5
#define VICTIM_PID_MIN 400 /* higher than any process number of a sandbox gets in a probe */
#define HEARD_MAX      128
#define CLIENTS_MAX    64

struct stage {
    const char *dir;
    char nonce[25];
    char secret[PROBE_SECRET];
    struct pollfd polls[1 + LISTENERS + CLIENTS_MAX]; /* standard input, listeners, clients */
    size_t n_polls;
    char heard[HEARD_MAX][48];
    size_t n_heard;
    pid_t victim;
    uint64_t address; /* of the secret in the victim's memory */
    unsigned tcp, udp;
    int shm;
};

static void die(const char *what) {
    fprintf(stderr, "doorward-probe stage: %s: %s\n", what, strerror(errno));
    exit(LAB_BROKEN);
}

static const char *below(const struct stage *s, const char *name) {
    static char path[2][4096];
    static int turn;
    turn ^= 1;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", s->dir, name);
    return path[turn];
}

static void write_file(const char *path, mode_t mode, const char *bytes) {
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0 || fchmod(fd, mode) < 0 || fd_write_all(fd, bytes, strlen(bytes)) < 0)
        die(path);
}

static void make_folder(const char *path, mode_t mode) {
    if ((mkdir(path, mode) < 0 && errno != EEXIST) || chmod(path, mode) < 0)
        die(path);
}

/* A copy of this program, so that probes may try to run or change it. */
static void copy_program(const char *to, mode_t mode) {
    _cleanup_fd_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    char hex[DIGEST_HEX];
    uint64_t n;
    if (from < 0 || fd < 0 || digest_copy(from, fd, 64u << 20, hex, &n) < 0 || fchmod(fd, mode) < 0)
        die(to);
}

/* Set-id and file capabilities can be made by root only; elsewhere those rows have no control. */
static void lay_privileged(const struct stage *s) {
    if (geteuid() != 0)
        return;
    const char *set_id = below(s, "staged/set-id");
    copy_program(set_id, 0755);
    if (chown(set_id, 1, 1) < 0 || chmod(set_id, 06755) < 0)
        die(set_id);
    const char *capable = below(s, "staged/capable");
    copy_program(capable, 0755);
    struct vfs_cap_data caps = {.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                                .data[0].permitted = 1u << CAP_NET_BIND_SERVICE};
    if (setxattr(capable, "security.capability", &caps, sizeof(caps), 0) < 0)
        fprintf(stderr, "doorward-probe stage: no file capabilities here: %s\n", strerror(errno));
}

static void lay_files(const struct stage *s) {
    char text[128];
    make_folder(s->dir, 0755);
    make_folder(below(s, "victim"), 0777);
    make_folder(below(s, "staged"), 0755);
    make_folder(below(s, "sock"), 0755);
    make_folder(below(s, "small"), 0755);
    make_folder(below(s, "scratch"), 0777);
    make_folder(below(s, "links"), 0777);
    snprintf(text, sizeof(text), "%s\n", s->secret);
    write_file(below(s, "victim/secret"), 0644, text);
    write_file(below(s, "victim/write"), 0666, "untouched\n");
    write_file(below(s, "small/file"), 0644, "small\n");
    write_file(below(s, "links/file"), 0644, "workspace\n");
    copy_program(below(s, "victim/program"), 0777);
    copy_program(below(s, "program"), 0755);
    if (symlink(below(s, "victim"), below(s, "links/dot")) < 0 ||
        symlink("/proc/sys/kernel", below(s, "links/kernel")) < 0 || symlink("loop", below(s, "links/loop")) < 0)
        die("links");
    lay_privileged(s);
}

/* --- listeners --- */

static void add_poll(struct stage *s, int fd) {
    if (s->n_polls == ELEMENTS(s->polls)) {
        fd_close(fd);
        return;
    }
    s->polls[s->n_polls++] = (struct pollfd){fd, POLLIN, 0};
}

static unsigned listen_inet(struct stage *s, int type) {
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in b = {.sin_family = AF_INET};
    socklen_t len = sizeof(a);
    int off = 0, fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
        bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0) {
        getsockname(fd, (struct sockaddr *)&a, &len);
    } else { /* a host without IPv6 */
        fd_close(fd);
        len = sizeof(b);
        fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&b, sizeof(b)) < 0 ||
            getsockname(fd, (struct sockaddr *)&b, &len) < 0)
            die("listener");
        a.sin6_port = b.sin_port;
    }
    if (type == SOCK_STREAM && listen(fd, 16) < 0)
        die("listen");
    add_poll(s, fd);
    return ntohs(a.sin6_port);
}

static void listen_unix(struct stage *s, const char *name, bool abstract) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    if (n + 1 >= sizeof(a.sun_path)) {
        errno = ENAMETOOLONG;
        die(name);
    }
    memcpy(a.sun_path + abstract, name, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + n)) < 0 ||
        listen(fd, 16) < 0 || (!abstract && chmod(name, 0777) < 0))
        die(name);
    add_poll(s, fd);
}

/* Held open for both ways, so that a writer always finds a reader. */
static void listen_fifo(struct stage *s, const char *path) {
    int fd = mkfifo(path, 0666) < 0 || chmod(path, 0666) < 0 ? -1 : open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        die(path);
    add_poll(s, fd);
}

/* Puts addresses that only clouds and private networks have on the loopback interface of this network namespace,
 * which the harness made for the lab. Failure leaves the row with fewer addresses. */
static void add_addresses(const char *const *four, size_t n) {
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo"};
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
        return;
    r.ifr_flags |= IFF_UP;
    ioctl(fd, SIOCSIFFLAGS, &r);
    for (size_t i = 0; i < n; i++) {
        struct ifreq a = {0};
        struct sockaddr_in in = {.sin_family = AF_INET};
        snprintf(a.ifr_name, sizeof(a.ifr_name), "lo:%zu", i + 1);
        inet_pton(AF_INET, four[i], &in.sin_addr);
        memcpy(&a.ifr_addr, &in, sizeof(in));
        ioctl(fd, SIOCSIFADDR, &a);
    }
    struct {
        struct in6_addr address;
        uint32_t prefix;
        int index;
    } six = {.prefix = 128, .index = (int)if_nametoindex("lo")};
    _cleanup_fd_ int fd6 = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET6, "fd00:ec2::254", &six.address);
    if (fd6 >= 0)
        ioctl(fd6, SIOCSIFADDR, &six);
}

/* --- the victim --- */

int victim_main(int argc, char **argv) {
    static char memory[PROBE_SECRET];
    const char *s = getenv("LAB_SECRET");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(memory, sizeof(memory), "%s", s ? s : "");
    printf("%#lx\n", (unsigned long)(uintptr_t)memory);
    fflush(stdout);
    for (;;)
        pause();
}

/* Forks until process numbers are well beyond those of a small sandbox. */
static pid_t fork_high(void) {
    for (;;) {
        pid_t pid = fork();
        if (pid == 0 && getpid() < VICTIM_PID_MIN)
            _exit(0);
        if (pid <= 0 || pid >= VICTIM_PID_MIN)
            return pid;
        waitpid(pid, NULL, 0);
    }
}

static void start_victim(struct stage *s) {
    int ends[2];
    char variable[80], line[64] = "";
    snprintf(variable, sizeof(variable), "LAB_SECRET=%s", s->secret);
    if (pipe2(ends, O_CLOEXEC) < 0)
        die("pipe");
    s->victim = fork_high();
    if (s->victim < 0)
        die("fork");
    if (s->victim == 0) {
        char *argv[] = {(char *)own_path(), "victim", s->nonce, NULL}, *env[] = {variable, NULL};
        int secret = open(below(s, "victim/secret"), O_RDONLY | O_CLOEXEC);
        dup2(ends[1], 1);
        if (dup2(secret, 5) == 5)
            execve(own_path(), argv, env);
        _exit(127);
    }
    fd_close(ends[1]);
    if (read(ends[0], line, sizeof(line) - 1) <= 0)
        die("victim");
    fd_close(ends[0]);
    s->address = strtoull(line, NULL, 0);
}

/* --- memory and queues --- */

static void lay_ipc(struct stage *s) {
    char name[64];
    snprintf(name, sizeof(name), "%.7s", s->nonce);
    s->shm = shmget((key_t)(strtol(name, NULL, 16) | 0x100) & ~1, 4096, IPC_CREAT | IPC_EXCL | 0666);
    char *at = s->shm >= 0 ? shmat(s->shm, NULL, 0) : (char *)-1;
    if (at != (char *)-1) {
        memcpy(at, s->secret, PROBE_SECRET);
        shmdt(at);
    }
    snprintf(name, sizeof(name), "/lab-%s", s->nonce);
    mode_t old = umask(0);
    struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = PROBE_SECRET};
    mqd_t q = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0666, &a);
    if (q != (mqd_t)-1) {
        mq_send(q, s->secret, PROBE_SECRET, 0);
        mq_close(q);
    }
    _cleanup_fd_ int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0644);
    if (fd >= 0)
        fd_write_all(fd, s->secret, PROBE_SECRET);
    umask(old);
}

static key_t shm_key(const struct stage *s) {
    struct shmid_ds d;
    return s->shm >= 0 && shmctl(s->shm, IPC_STAT, &d) == 0 ? d.shm_perm.__key : 0;
}

static void remove_ipc(struct stage *s) {
    char name[64];
    key_t key = shm_key(s);
    int mark = key ? shmget(key + 1, 0, 0) : -1;
    if (mark >= 0)
        shmctl(mark, IPC_RMID, NULL);
    if (s->shm >= 0)
        shmctl(s->shm, IPC_RMID, NULL);
    const char *const forms[] = {"/lab-%s", "/mark-%s"};
    for (size_t i = 0; i < ELEMENTS(forms); i++) {
        i == 0 ? snprintf(name, sizeof(name), "/lab-%s", s->nonce) : snprintf(name, sizeof(name), "/mark-%s", s->nonce);
        mq_unlink(name);
        shm_unlink(name);
    }
    /* Marks of next-tenant that a sandbox without walls left on the host. */
    const char *home = getenv("HOME");
    const char *const places[] = {"/tmp", "/var/tmp", home ? home : "/", "/home/agent"};
    for (size_t i = 0; i < ELEMENTS(places); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/mark-%s", places[i], s->nonce);
        unlink(path);
    }
}

/* --- facts --- */

static void tell_object(const char *key, const char *path) {
    struct stat st;
    if (path && stat(path, &st) == 0)
        printf("%s=%s:%ju:%ju\n", key, path, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

static void tell_paths(const struct stage *s) {
    static const char *const paths[] = {"/root",         "/home",    "/var",     "/run",   "/boot",
                                        "/srv",          "/opt",     "/mnt",     "/media", "/etc/shadow",
                                        "/etc/hostname", "/var/lib", "/etc/ssh", "/tmp",   "/sys/kernel"};
    for (size_t i = 0; i < ELEMENTS(paths); i++)
        tell_object("look", paths[i]);
    tell_object("look", s->dir);
    tell_object("home", getenv("HOME") ? getenv("HOME") : geteuid() == 0 ? "/root" : "/home");
}

static void tell_namespaces(void) {
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    for (size_t i = 0; i < ELEMENTS(kinds); i++) {
        char path[64], ns[64] = "";
        snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
        if (readlink(path, ns, sizeof(ns) - 1) > 0)
            printf("ns_%s=%s\n", kinds[i], ns);
    }
}

static void tell_addresses(void) {
    struct ifaddrs *all, *a;
    if (getifaddrs(&all) < 0)
        return;
    for (a = all; a; a = a->ifa_next) {
        char text[INET6_ADDRSTRLEN] = "";
        if (!a->ifa_addr || !(a->ifa_flags & IFF_UP))
            continue;
        if (a->ifa_addr->sa_family == AF_INET)
            inet_ntop(AF_INET, &((struct sockaddr_in *)a->ifa_addr)->sin_addr, text, sizeof(text));
        else if (a->ifa_addr->sa_family == AF_INET6)
            inet_ntop(AF_INET6, &((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr, text, sizeof(text));
        if (text[0] && strcmp(text, "127.0.0.1") != 0 && strcmp(text, "::1") != 0 && strncmp(text, "fe80", 4) != 0)
            printf("addr=%s\n", text);
    }
    freeifaddrs(all);
}

static void tell(const struct stage *s) {
    printf("dir=%s\nnonce=%s\nsecret=", s->dir, s->nonce);
    for (size_t i = 0; s->secret[i]; i++)
        printf("%02x", (unsigned char)s->secret[i] ^ PROBE_SCRAMBLE);
    printf("\nvictim=%d\naddress=%#lx\ntcp=%u\nudp=%u\nabstract=lab-%s\nsock=%s/sock/host\nshm=%d\nmq=/lab-%s\n"
           "psm=/dev/shm/lab-%s\n",
           s->victim, (unsigned long)s->address, s->tcp, s->udp, s->nonce, s->dir, (int)shm_key(s), s->nonce, s->nonce);
    tell_paths(s);
    tell_namespaces();
    tell_addresses();
    printf("ready\n");
    fflush(stdout);
}

/* --- questions --- */

/* Takes "NONCE NAME\n" out of what a listener got; anything else is not ours. */
static void hear(struct stage *s, const char *bytes, size_t n) {
    size_t skip = strlen(s->nonce) + 1;
    for (const char *end; (end = memchr(bytes, '\n', n)); n -= (size_t)(end + 1 - bytes), bytes = end + 1) {
        size_t len = (size_t)(end - bytes);
        if (len <= skip || memcmp(bytes, s->nonce, skip - 1) != 0 || s->n_heard == HEARD_MAX)
            continue;
        snprintf(s->heard[s->n_heard++], sizeof(s->heard[0]), "%.*s", (int)(len - skip), bytes + skip);
    }
}

/* One readable socket: a listener gets a client, a client or a datagram socket bytes. True when it is used up. */
static bool serve(struct stage *s, size_t i) {
    char bytes[512];
    int fd = s->polls[i].fd, type = 0, listening = 0;
    socklen_t len = sizeof(type);
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len);
    if (listening) {
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client >= 0)
            add_poll(s, client);
        return false;
    }
    ssize_t n = read(fd, bytes, sizeof(bytes)); /* all are non-blocking; the FIFO is no socket */
    if (n > 0)
        hear(s, bytes, (size_t)n);
    return type == SOCK_STREAM && (n == 0 || (n < 0 && errno != EAGAIN));
}

/* Serves everything that is readable now or within `ms`. */
static void serve_all(struct stage *s, int ms) {
    while (poll(s->polls + 1, (nfds_t)(s->n_polls - 1), ms) > 0)
        for (size_t i = 1; i < s->n_polls; i++)
            if (s->polls[i].revents && serve(s, i)) {
                fd_close(s->polls[i].fd);
                s->polls[i--] = s->polls[--s->n_polls];
            }
}

static void answer_heard(struct stage *s) {
    serve_all(s, 20); /* bytes on their way through a local socket are there by then */
    printf("heard");
    for (size_t i = 0; i < s->n_heard; i++)
        printf(" %s", s->heard[i]);
    printf("\n");
    s->n_heard = 0;
}

static void answer_digest(struct stage *s) {
    _cleanup_buf_ struct buf b = {0};
    struct dirent **names = NULL;
    int n = scandir(below(s, "victim"), &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char path[4400], hex[DIGEST_HEX] = "-";
        uint64_t size;
        struct stat st = {0};
        snprintf(path, sizeof(path), "%s/victim/%s", s->dir, names[i]->d_name);
        lstat(path, &st);
        _cleanup_fd_ int fd = S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (fd >= 0)
            digest_copy(fd, -1, 64u << 20, hex, &size);
        buf_printf(&b, "%s %o %s\n", names[i]->d_name, st.st_mode, hex);
        free(names[i]);
    }
    free(names);
    char hex[DIGEST_HEX];
    digest_hex(b.n ? b.bytes : "", b.n, hex);
    printf("digest %s\n", hex);
}

/* Ends the processes that a probe left, known by the nonce in their command line. */
static void answer_lingering(struct stage *s, const char *name) {
    char want[128];
    int n = 0;
    snprintf(want, sizeof(want), "%s-%s", s->nonce, name);
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], line[8192];
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        ssize_t len = pid > 0 ? slurp(path, line, sizeof(line)) : 0;
        if (len > 0 && memmem(line, (size_t)len, "\0linger\0", 8) && memmem(line, (size_t)len, want, strlen(want))) {
            kill(pid, SIGKILL);
            n++;
        }
    }
    if (d)
        closedir(d);
    printf("lingering %d\n", n);
}

static void answer(struct stage *s, char *line) {
    line[strcspn(line, "\n")] = '\0';
    if (!strcmp(line, "heard"))
        answer_heard(s);
    else if (!strcmp(line, "digest"))
        answer_digest(s);
    else if (!strncmp(line, "lingering ", 10))
        answer_lingering(s, line + 10);
    else
        printf("what\n");
    fflush(stdout);
}

static void loop(struct stage *s) {
    for (;;) {
        if (poll(s->polls, (nfds_t)s->n_polls, -1) < 0 && errno != EINTR)
            return;
        serve_all(s, 0);
        if (!s->polls[0].revents)
            continue;
        char line[256];
        ssize_t n = read(0, line, sizeof(line) - 1);
        if (n <= 0)
            return;
        line[n] = '\0';
        answer(s, line);
    }
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) {
    return remove(path);
}

static void make_names(struct stage *s) {
    unsigned char random[12];
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        die("getrandom");
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(s->nonce + 2 * i, 3, "%02x", random[i]);
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        die("getrandom");
    size_t n = (size_t)snprintf(s->secret, sizeof(s->secret), "doorward-canary-");
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(s->secret + n + 2 * i, 3, "%02x", random[i]);
}

int stage_main(int argc, char **argv) {
    static const char *const four[] = {"169.254.169.254", "100.100.100.200", "10.255.255.1", "192.168.255.1",
                                       "172.31.255.1"};
    static struct stage s;
    if (argc < 3 || argv[2][0] != '/') {
        fprintf(stderr, "usage: doorward-probe stage /DIR [own-network]\n");
        return LAB_BROKEN;
    }
    s.dir = argv[2];
    /* It ends by end of file, whatever became of the harness, and only after it has cleared up. */
    static const int deaf[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < ELEMENTS(deaf); i++)
        signal(deaf[i], SIG_IGN);
    umask(022);
    make_names(&s);
    lay_files(&s);
    if (argc > 3 && !strcmp(argv[3], "own-network"))
        add_addresses(four, ELEMENTS(four));
    add_poll(&s, 0);
    s.tcp = listen_inet(&s, SOCK_STREAM);
    s.udp = listen_inet(&s, SOCK_DGRAM);
    char abstract[64];
    snprintf(abstract, sizeof(abstract), "lab-%s", s.nonce);
    listen_unix(&s, abstract, true);
    listen_unix(&s, below(&s, "sock/host"), false);
    listen_fifo(&s, below(&s, "sock/fifo"));
    start_victim(&s);
    lay_ipc(&s);
    tell(&s);
    loop(&s);
    kill(s.victim, SIGKILL);
    remove_ipc(&s);
    nftw(s.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
