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
 * Credits: every frame grants its receiver space in the receive queue of its sender for a number of messages. HELLO and
 * WELCOME grant the whole queue. Messages that the program has taken from the queue are granted again by the next
 * MESSAGE, or by a CREDIT once they are half of the queue. A message may be sent before there is space for it, because
 * its sender may not progress again; it then waits in the socket. The task completes when there is space. If the sender
 * ends before, the receiver drops the message.
 */
#ifndef DMA_COPY_SOFT_COMCH_WIRE_H
#define DMA_COPY_SOFT_COMCH_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "doca_abi.h"

#define SOFT_FRAME_MAGIC 0x436d6f43U
#define SOFT_FRAME_VERSION 4

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

/* Both ends are on one machine, so numbers are in its byte order. A MESSAGE's bytes or a CONSUMER's info follow. */
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

/* Reports whether the len bytes at data are one well-formed frame, and copies it to *frame. */
bool soft_frame_parse(const void *data, size_t len, struct soft_frame *frame);

/* Sends a frame without bytes, without waiting. False if it could not be sent. */
bool soft_frame_send(int fd, const struct soft_frame *frame);

/*
 * Receives one packet without waiting. Returns its full length, even if it was cut to size, or -1 with errno set. *fd
 * is set to the descriptor that came with it, if one did.
 */
ssize_t soft_frame_receive(int socket, void *packet, size_t size, int *fd);

/* The name of a server's socket in the runtime directory. */
struct soft_comch_address {
	char file[80]; /* short enough for socket.c */
};

void soft_comch_address_make(struct soft_comch_address *address, const char *rep_pci, const char *dev_pci,
			     const char *name);

/*
 * Advances dev_pci to the next DPU device, in order of addresses, on which name is served to rep_pci. "" is before the
 * first. False, and dev_pci is unchanged, at the end.
 */
bool soft_comch_next_server(const char *rep_pci, const char *name, char dev_pci[DOCA_DEVINFO_PCI_ADDR_SIZE]);

/* SUCCESS with a listening socket; ALREADY_EXIST if a live server has the address; OPERATING_SYSTEM. */
doca_error_t soft_comch_listen(const struct soft_comch_address *address, int *listener);
void soft_comch_unlisten(const struct soft_comch_address *address, int listener);

/* Returns a connection with a process of a trusted user, or -1. */
int soft_comch_accept(int listener);
int soft_comch_connect(const struct soft_comch_address *address);

#endif
