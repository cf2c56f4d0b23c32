/* wire.h: framed, typed messages between our own processes.
 *
 * One channel is one SOCK_SEQPACKET pair; one message is one packet: a fixed header, then `length`
 * bytes of body, then at most WIRE_FDS_MAX descriptors. Each channel has its own header file with the
 * table of what each side may say and when. Bodies are put and got field by field in native byte order
 * (both ends are the same build on the same machine); a body that is too short, too long or not wholly
 * read is a broken sibling and ends the run.
 * runs in: all; trusts: nothing that it reads */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WIRE_MAGIC    0x44574152u /* "DWAR" */
#define WIRE_VERSION  1
#define WIRE_BODY_MAX 16384
#define WIRE_FDS_MAX  16

struct wire_header {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t length;
    uint32_t n_fds;
};
_Static_assert(sizeof(struct wire_header) == 16, "the header is on the wire");

/* One message, to be sent or as received. Descriptors of a received message are owned by it until taken. */
struct wire_message {
    uint16_t type;
    uint32_t length;
    uint32_t at; /* where the next get reads */
    int broken;  /* a put did not fit or a get read past the end */
    int fds[WIRE_FDS_MAX];
    uint32_t n_fds;
    unsigned char body[WIRE_BODY_MAX];
};

/* A connected pair, both close-on-exec. 0 or -errno. */
int wire_pair(int ret[2]);

void wire_begin(struct wire_message *m, uint16_t type);
void wire_put_u32(struct wire_message *m, uint32_t v);
void wire_put_u64(struct wire_message *m, uint64_t v);
void wire_put_text(struct wire_message *m, const char *s); /* length, then bytes */
void wire_put_fd(struct wire_message *m, int fd);          /* borrowed until sent */

/* Sends; 0, -EMSGSIZE when a put did not fit, -EPIPE when the other side is gone, or -errno. Never raises SIGPIPE. */
int wire_send(int fd, const struct wire_message *m);

/* Receives one message. 1 = got one, 0 = the other side closed, -EAGAIN on an empty non-blocking socket,
 * -EPROTO for a packet that is not ours (its descriptors are closed), or -errno. Received descriptors are
 * close-on-exec. */
int wire_receive(int fd, struct wire_message *m);

uint32_t wire_get_u32(struct wire_message *m);
uint64_t wire_get_u64(struct wire_message *m);
/* An errno that the other side sent: -errno. A number that is none breaks the message. */
int wire_get_code(struct wire_message *m);
/* The next text, copied NUL-terminated into `to`; one that does not fit or holds NUL breaks the message. */
void wire_get_text(struct wire_message *m, char *to, size_t room);
/* Takes the next descriptor (the caller owns it); -1 and a broken message when there is none. */
int wire_take_fd(struct wire_message *m);
/* 0 when everything was read, in bounds and no descriptor is left; else -EPROTO. Closes descriptors that are left. */
int wire_end(struct wire_message *m);
/* Closes the descriptors that nobody took. */
void wire_drop(struct wire_message *m);
