/* probe_network.c: probes of sockets. A probe sends "NONCE NAME" and a new line; what counts is whether the
 * stage's listener heard it, the probe's own answer only says why not.
 * runs in: probe, inside and outside */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "lab/probe.h"

/* Sends the marker to an address; 0 when the bytes went out, else errno. Waits at most half a second. */
static int send_marker(const struct call *c, const struct sockaddr *to, socklen_t len, int type) {
    char line[160];
    snprintf(line, sizeof(line), "%s %s\n", fact(c, "nonce"), c->row->name);
    _cleanup_fd_ int fd = socket(to->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, to, len) < 0) {
        struct pollfd p = {fd, POLLOUT, 0};
        int err = errno;
        socklen_t n = sizeof(err);
        if (err != EINPROGRESS)
            return err;
        if (poll(&p, 1, 500) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0)
            return ETIMEDOUT;
        if (err)
            return err;
    }
    if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
        return errno;
    return 0;
}

/* `text` is an IPv4 or IPv6 address. */
static int send_to(const struct call *c, const char *text, int type, unsigned port) {
    struct sockaddr_in six4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, text, &six4.sin_addr) == 1)
        return send_marker(c, (struct sockaddr *)&six4, sizeof(six4), type);
    if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
        return send_marker(c, (struct sockaddr *)&six, sizeof(six), type);
    return EINVAL;
}

static enum lab_result loopback(struct call *c, int type, const char *port) {
    int four = send_to(c, "127.0.0.1", type, (unsigned)fact_number(c, port));
    int six = send_to(c, "::1", type, (unsigned)fact_number(c, port));
    if (four == 0 || six == 0)
        /* A datagram to nobody goes out without an error: inside, only the listener tells. */
        return type == SOCK_DGRAM && !c->control ? held(c, 0, "sent; the listener tells whether it arrived")
                                                 : is_open(c, 0, "connected over %s", four == 0 ? "127.0.0.1" : "::1");
    return held(c, four, "%s", strerror(four));
}

static enum lab_result loopback_tcp(struct call *c) {
    return loopback(c, SOCK_STREAM, "tcp");
}

static enum lab_result loopback_udp(struct call *c) {
    return loopback(c, SOCK_DGRAM, "udp");
}

static enum lab_result private_addresses(struct call *c) {
    size_t at = 0;
    int n = 0, last = 0;
    for (const char *a; (a = fact_next(c, "addr", &at)); n++) {
        int err = send_to(c, a, SOCK_STREAM, (unsigned)fact_number(c, "tcp"));
        if (err == 0)
            return is_open(c, 0, "connected to %s", a);
        last = err;
        send_to(c, a, SOCK_DGRAM, (unsigned)fact_number(c, "udp"));
    }
    if (n == 0)
        return absent(c, 0, "this host has no address but loopback");
    return held(c, last, "%d addresses: %s", n, strerror(last));
}

static enum lab_result unix_socket(struct call *c, const char *name, bool abstract) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    if (n + 1 >= sizeof(a.sun_path))
        return broken(c, ENAMETOOLONG, "the stage's path is too long for a socket");
    memcpy(a.sun_path + abstract, name, n);
    int err = send_marker(c, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + n),
                          SOCK_STREAM);
    return err ? held(c, err, "%s", strerror(err)) : is_open(c, 0, "connected");
}

static enum lab_result abstract_socket(struct call *c) {
    return unix_socket(c, fact(c, "abstract"), true);
}

/* Landlock's scope came with ABI 6: landlock(7). */
static enum lab_result landlock_scope(struct call *c) {
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
    if (abi < 6)
        return absent(c, 0, "this kernel's Landlock has no scope for sockets");
    return abstract_socket(c);
}

static enum lab_result path_socket(struct call *c) {
    return unix_socket(c, fact(c, "sock"), false);
}

/* A FIFO needs no socket: a read-only mount does not stop writing to one either. */
static enum lab_result path_fifo(struct call *c) {
    char path[4096], line[160];
    snprintf(path, sizeof(path), "%s/sock/fifo", fact(c, "dir"));
    snprintf(line, sizeof(line), "%s %s\n", fact(c, "nonce"), c->row->name);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, line, strlen(line)) < 0)
        return held(c, errno, "%s", strerror(errno));
    return is_open(c, 0, "written");
}

static enum lab_result raw_socket(struct call *c) {
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    return fd >= 0 ? is_open(c, 0, "made") : held(c, errno, "%s", strerror(errno));
}

struct family {
    int family, type, protocol;
};

/* Tries each family. A type that cannot be is answered EINVAL by any kernel that is reached, whether it has the
 * family or not; a filter on the family answers first. */
static enum lab_result families(struct call *c, const struct family *f, size_t n) {
    int last = 0;
    for (size_t i = 0; i < n; i++) {
        _cleanup_fd_ int fd = socket(f[i].family, f[i].type | SOCK_CLOEXEC, f[i].protocol);
        if (fd >= 0)
            return is_open(c, 0, "family %d, protocol %d: made", f[i].family, f[i].protocol);
        int type = f[i].family == AF_NETLINK ? SOCK_SEQPACKET : 15 /* beyond SOCK_MAX */;
        int made = socket(f[i].family, type, f[i].protocol);
        last = errno;
        if (made >= 0 || !refused(c, last)) {
            if (f[i].family == AF_NETLINK && last == ESOCKTNOSUPPORT)
                return is_open(c, last, "netlink protocol %d: the kernel's own code answered", f[i].protocol);
            return is_open(c, last, "family %d: the kernel's own code answered (%s)", f[i].family, strerror(last));
        }
    }
    return held(c, last, "%s", strerror(last));
}

#define FAMILIES(symbol, ...)                                                                                          \
    static enum lab_result symbol(struct call *c) {                                                                    \
        static const struct family f[] = {__VA_ARGS__};                                                                \
        return families(c, f, ELEMENTS(f));                                                                            \
    }
FAMILIES(family_vsock, {AF_VSOCK, SOCK_STREAM, 0}, {AF_VSOCK, SOCK_DGRAM, 0})
FAMILIES(family_packet, {AF_PACKET, SOCK_RAW, 0}, {AF_PACKET, SOCK_DGRAM, 0})
FAMILIES(family_alg, {AF_ALG, SOCK_SEQPACKET, 0})
/* 9 audit, 15 kobject uevent, 12 netfilter, 6 xfrm, 16 generic, 4 sock diag, 10 fib lookup, 11 connector, 21 crypto */
FAMILIES(family_netlink, {AF_NETLINK, SOCK_RAW, 9}, {AF_NETLINK, SOCK_RAW, 15}, {AF_NETLINK, SOCK_RAW, 12},
         {AF_NETLINK, SOCK_RAW, 6}, {AF_NETLINK, SOCK_RAW, 16}, {AF_NETLINK, SOCK_RAW, 4}, {AF_NETLINK, SOCK_RAW, 10},
         {AF_NETLINK, SOCK_RAW, 11}, {AF_NETLINK, SOCK_RAW, 21})
FAMILIES(family_others, {AF_AX25, SOCK_DGRAM, 0}, {AF_X25, SOCK_SEQPACKET, 0}, {AF_KEY, SOCK_RAW, 2},
         {AF_APPLETALK, SOCK_DGRAM, 0}, {AF_RDS, SOCK_SEQPACKET, 0}, {AF_CAN, SOCK_RAW, 1}, {AF_TIPC, SOCK_RDM, 0},
         {AF_BLUETOOTH, SOCK_RAW, 1}, {AF_PHONET, SOCK_DGRAM, 0}, {AF_IEEE802154, SOCK_DGRAM, 0}, {AF_NFC, SOCK_RAW, 0},
         {AF_KCM, SOCK_DGRAM, 0}, {AF_QIPCRTR, SOCK_DGRAM, 0}, {AF_SMC, SOCK_STREAM, 0}, {AF_XDP, SOCK_RAW, 0},
         {AF_LLC, SOCK_DGRAM, 0}, {AF_ISDN, SOCK_RAW, 0}, {AF_IUCV, SOCK_STREAM, 0}, {AF_RXRPC, SOCK_DGRAM, AF_INET})

const struct probe probes_network[] = {
    {"loopback-tcp", loopback_tcp},       {"loopback-udp", loopback_udp},     {"private-addresses", private_addresses},
    {"abstract-socket", abstract_socket}, {"landlock-scope", landlock_scope}, {"path-socket", path_socket},
    {"path-socket-input", path_socket},   {"path-fifo-input", path_fifo},     {"raw-socket", raw_socket},
    {"family-vsock", family_vsock},       {"family-packet", family_packet},   {"family-alg", family_alg},
    {"family-netlink", family_netlink},   {"family-others", family_others},   {0}};
