/* wire.c: see wire.h. runs in: all; trusts: nothing that it reads */
#include "wire/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"

int wire_pair(int ret[2]) {
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0 ? -errno : 0;
}

void wire_begin(struct wire_message *m, uint16_t type) {
    m->type = type;
    m->length = m->at = m->n_fds = 0;
    m->broken = 0;
}

static void put(struct wire_message *m, const void *bytes, size_t n) {
    if (m->broken || n > WIRE_BODY_MAX - m->length) {
        m->broken = 1;
        return;
    }
    memcpy(m->body + m->length, bytes, n);
    m->length += (uint32_t)n;
}

void wire_put_u32(struct wire_message *m, uint32_t v) {
    put(m, &v, sizeof(v));
}

void wire_put_u64(struct wire_message *m, uint64_t v) {
    put(m, &v, sizeof(v));
}

void wire_put_text(struct wire_message *m, const char *s) {
    size_t n = strlen(s);
    if (n > WIRE_BODY_MAX) {
        m->broken = 1;
        return;
    }
    wire_put_u32(m, (uint32_t)n);
    put(m, s, n);
}

void wire_put_fd(struct wire_message *m, int fd) {
    if (fd < 0 || m->n_fds == WIRE_FDS_MAX)
        m->broken = 1;
    else
        m->fds[m->n_fds++] = fd;
}

int wire_send(int fd, const struct wire_message *m) {
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
    } control = {0};
    if (m->broken)
        return -EMSGSIZE;
    struct wire_header header = {WIRE_MAGIC, WIRE_VERSION, m->type, m->length, m->n_fds};
    struct iovec parts[2] = {{&header, sizeof(header)}, {(void *)m->body, m->length}};
    struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2};
    if (m->n_fds) {
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * m->n_fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * m->n_fds);
        memcpy(CMSG_DATA(c), m->fds, sizeof(int) * m->n_fds);
    }
    for (;;) {
        ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL);
        if (n >= 0)
            return 0;
        if (errno != EINTR)
            return errno == ECONNRESET ? -EPIPE : -errno; /* it closed with something of ours unread */
    }
}

/* Takes the descriptors out of the control part; more than we have room for were closed by the kernel. */
static void take_descriptors(struct msghdr *msg, struct wire_message *m) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (m->n_fds < WIRE_FDS_MAX)
                m->fds[m->n_fds++] = fd;
            else
                fd_close(fd);
        }
    }
}

int wire_receive(int fd, struct wire_message *m) {
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
    } control;
    struct wire_header header;
    struct iovec parts[2] = {{&header, sizeof(header)}, {m->body, sizeof(m->body)}};
    struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t n;
    wire_begin(m, 0);
    do /* ECONNRESET is said once, when the other side closed without reading all; what it had sent comes after */
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    take_descriptors(&msg, m);
    if (n == 0 && m->n_fds == 0)
        return 0;
    if ((size_t)n < sizeof(header) || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || header.magic != WIRE_MAGIC ||
        header.version != WIRE_VERSION || header.length != (size_t)n - sizeof(header) || header.n_fds != m->n_fds) {
        wire_drop(m);
        return -EPROTO;
    }
    m->type = header.type;
    m->length = header.length;
    return 1;
}

static const void *get(struct wire_message *m, size_t n) {
    if (m->broken || n > m->length - m->at) {
        m->broken = 1;
        return NULL;
    }
    const void *p = m->body + m->at;
    m->at += (uint32_t)n;
    return p;
}

uint32_t wire_get_u32(struct wire_message *m) {
    uint32_t v = 0;
    const void *p = get(m, sizeof(v));
    if (p)
        memcpy(&v, p, sizeof(v));
    return v;
}

uint64_t wire_get_u64(struct wire_message *m) {
    uint64_t v = 0;
    const void *p = get(m, sizeof(v));
    if (p)
        memcpy(&v, p, sizeof(v));
    return v;
}

int wire_get_code(struct wire_message *m) {
    enum { ERRNO_MAX = 4095 }; /* as the kernel's own MAX_ERRNO */
    uint32_t v = wire_get_u32(m);
    if (v == 0 || v > ERRNO_MAX)
        m->broken = 1;
    return m->broken ? -EPROTO : -(int)v;
}

void wire_get_text(struct wire_message *m, char *to, size_t room) {
    uint32_t n = wire_get_u32(m);
    const char *p = get(m, n);
    *to = 0;
    if (!p || n >= room || memchr(p, 0, n)) {
        m->broken = 1;
        return;
    }
    memcpy(to, p, n);
    to[n] = 0;
}

int wire_take_fd(struct wire_message *m) {
    if (m->n_fds == 0) {
        m->broken = 1;
        return -1;
    }
    int fd = m->fds[0];
    m->n_fds--;
    memmove(m->fds, m->fds + 1, sizeof(int) * m->n_fds);
    return fd;
}

void wire_drop(struct wire_message *m) {
    while (m->n_fds)
        fd_close(m->fds[--m->n_fds]);
}

int wire_end(struct wire_message *m) {
    int whole = !m->broken && m->at == m->length && m->n_fds == 0;
    wire_drop(m);
    return whole ? 0 : -EPROTO;
}
