/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control channel between two processes: SOCK_SEQPACKET sockets in the runtime directory, one frame per packet.
 *
 *   client                                   server
 *   HELLO   max message size, set or not ──►
 *                                        ◄── WELCOME  max message size, set or not      the connection is open
 *                                        ◄── REFUSE   a DOCA error code                 or closed
 *   MESSAGE length, bytes               ◄──► MESSAGE  length, bytes
 *   CREDIT                              ◄──► CREDIT
 *   CONSUMER id, info, descriptor       ◄──► CONSUMER id, info, descriptor
 *   EXPIRED id                          ◄──► EXPIRED  id
 *   BYE                                 ◄──► BYE                                        the last frame of its sender
 *
 * Every frame grants its receiver credits: so many more messages it may send. HELLO and WELCOME grant the whole receive
 * queue, and what the program has taken out of it is granted again by the next MESSAGE, or by a CREDIT when that is
 * half of the queue. So a receiver that does not progress holds at most a queue of messages, and its peer's wait.
 */
#ifndef DMA_COPY_SOFT_COMCH_WIRE_H
#define DMA_COPY_SOFT_COMCH_WIRE_H

#include "fast.h"

#define SOFT_FRAME_MAGIC 0x436d6f43U
#define SOFT_FRAME_VERSION 3

enum soft_frame_type {
	SOFT_FRAME_HELLO = 1,
	SOFT_FRAME_WELCOME,
	SOFT_FRAME_REFUSE,
	SOFT_FRAME_MESSAGE,
	SOFT_FRAME_BYE,
	SOFT_FRAME_CONSUMER,
	SOFT_FRAME_EXPIRED,
	SOFT_FRAME_CREDIT,
};

/* Both ends are on one machine, so the byte order is the machine's. A MESSAGE's bytes or a CONSUMER's info follow. */
struct soft_frame {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t value;  /* HELLO, WELCOME: max message size. REFUSE: error code. MESSAGE: length. BYE: 0.
			  * CONSUMER, EXPIRED: the consumer's id */
	uint32_t chosen; /* HELLO, WELCOME: 1 if the program chose that size, 0 if it is the device's. Else 0 */
	uint32_t credits;
};
_Static_assert(sizeof(struct soft_frame) == 20, "frames have a fixed layout");

struct soft_frame soft_frame_make(enum soft_frame_type type, uint32_t value, uint32_t chosen);

/* True if len bytes at data are one well-formed frame; it is copied out. */
bool soft_frame_parse(const void *data, size_t len, struct soft_frame *frame);

/* Sends a frame without bytes, without waiting. False if it could not be sent. */
bool soft_frame_send(int fd, const struct soft_frame *frame);

/* Takes one packet without waiting: its full length, even if it was cut to size, or -1 with errno set. *fd is set to the
 * descriptor that came with it, if one did. */
ssize_t soft_frame_receive(int socket, void *packet, size_t size, int *fd);

/* What a server is found by: the name of its socket in the runtime directory. */
struct soft_comch_address {
	char file[80]; /* short enough for socket.c */
};

void soft_comch_address_make(struct soft_comch_address *address, const char *rep_pci, const char *dev_pci,
			     const char *name);

/* Steps dev_pci to the next DPU device, in order of addresses, on which name is served to rep_pci. "" begins; at the
 * end dev_pci stays. */
bool soft_comch_next_server(const char *rep_pci, const char *name, char dev_pci[DOCA_DEVINFO_PCI_ADDR_SIZE]);

/* SUCCESS with a listening socket, ALREADY_EXIST if a live server has the address, OPERATING_SYSTEM. */
doca_error_t soft_comch_listen(const struct soft_comch_address *address, int *listener);
void soft_comch_unlisten(const struct soft_comch_address *address, int listener);

/* A connection with a process of our user or root, or -1. */
int soft_comch_accept(int listener);
int soft_comch_connect(const struct soft_comch_address *address);

#endif
