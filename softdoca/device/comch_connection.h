/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection of the control channel.
 *
 *   GREETING ── handshake ──► OPEN ── soft_connection_close ──► CLOSING ── sent what fits, and BYE ──► CLOSED
 *                               └────── the peer left, died or violated the protocol ─────────────────► CLOSED
 *
 *   CLOSED ── unsent tasks failed, peer's consumers expired ──► GONE (program told) ── tasks freed ──► released
 *
 * A connection that does not get past GREETING is freed at once; the program sees it at most in a connection event that
 * reports failure. A server frees a released connection at once, a client when the client is destroyed.
 */
#ifndef DMA_COPY_SOFT_COMCH_CONNECTION_H
#define DMA_COPY_SOFT_COMCH_CONNECTION_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "background.h"
#include "comch_wire.h"
#include "doca_abi.h"

struct soft_endpoint;

enum soft_connection_state {
	SOFT_CONNECTION_GREETING,
	SOFT_CONNECTION_OPEN,
	SOFT_CONNECTION_CLOSING,
	SOFT_CONNECTION_CLOSED,
	SOFT_CONNECTION_GONE,
};

struct soft_message_counters {
	uint64_t sent_messages, sent_bytes, recv_messages, recv_bytes;
};

struct doca_comch_connection {
	TAILQ_ENTRY(doca_comch_connection) link;
	struct soft_endpoint *endpoint;
	enum soft_connection_state state;
	struct soft_fast *fast;
	int fd;             /* -1 from CLOSED on */
	bool blocked;       /* the socket is full: waits for EPOLLOUT */
	doca_error_t fault; /* result of tasks that can no longer be sent */
	uint32_t max_msg_size;
	uint32_t peer_queue_size;
	uint64_t allowed;    /* messages that have space in the peer's receive queue, counted from the first */
	uint64_t round;      /* of the last message, see soft_pe_rounds */
	uint32_t received;   /* messages in that round */
	bool asked_to_close; /* disconnected once, see SOFT_DISCONNECT_AGAIN */
	bool unannounced;    /* its end is no event */
	bool told;           /* the program has disconnected it, see SOFT_UNTOLD_CLIENTS */
	size_t holds;        /* allocated tasks, and callbacks on the stack: the memory stays while there are any */

	/* While the connection is OPEN, the background thread sends, too. */
	pthread_mutex_t lock;                      /* guards what follows, up to job */
	STAILQ_HEAD(, doca_comch_task_send) sends; /* submitted and not completed, in order */
	struct doca_comch_task_send *unsent;       /* the first of them that is not sent; NULL: all are */
	uint64_t sent;                             /* messages */
	uint32_t owed;                             /* messages that the program has taken, not yet granted again */
	int64_t granted;  /* messages that the peer may still send; negative: it has sent more, which waited outside */
	bool full;        /* the socket did not accept the last frame */
	bool send_failed; /* nothing can be sent any more, but messages from the peer may still be unread */
	struct soft_message_counters counters;
	struct soft_job job;

	struct soft_message_counters snapshot; /* of the last update_info */
	union doca_data user_data;
};

/*
 * Returns a connection in GREETING over fd, and takes ownership of fd. NULL: no memory, or the kernel refuses; fd is
 * closed.
 */
struct doca_comch_connection *soft_connection_open(struct soft_endpoint *endpoint, int fd);

/* In GREETING, or at the end of its endpoint: removes the connection without telling the program. */
void soft_connection_release(struct doca_comch_connection *connection);

/* Frees a released connection. */
void soft_connection_free(struct doca_comch_connection *connection);

/* Returns a HELLO or WELCOME with the limits of this side. */
struct soft_frame soft_connection_greeting(const struct soft_endpoint *endpoint, enum soft_frame_type type);

/* Reports whether the limits are compatible: if both sides chose a maximum message size, DOCA requires the same. */
bool soft_connection_sizes_agree(const struct soft_endpoint *endpoint, const struct soft_frame *peer);

/* The handshake is done; peer is the frame with the peer's limits. */
void soft_connection_established(struct doca_comch_connection *connection, const struct soft_frame *peer);

/* OPEN -> CLOSING, requested by this side. Its consumers and producers must be idle. */
void soft_connection_close(struct doca_comch_connection *connection);

/* Reports whether the program may use the connection with this endpoint. The pointer may be any. */
bool soft_connection_is_of(const struct doca_comch_connection *connection, const struct soft_endpoint *endpoint);

/*
 * Sends what fits into the socket of an OPEN connection; the rest is sent later, in progress or in the background.
 * Returns whether anything was sent.
 */
bool soft_connection_flush(struct doca_comch_connection *connection);

/* Returns the credits that the next frame must grant, and counts them as granted. With the lock. */
uint32_t soft_connection_take_owed(struct doca_comch_connection *connection);

/* Reports whether there is work that no descriptor announces. */
bool soft_connection_is_due(struct doca_comch_connection *connection);

/* Does one such piece of work. False if nothing was done: the socket is full. */
bool soft_connection_do_due(struct doca_comch_connection *connection);

/* The socket is writable again. */
void soft_connection_writable(struct doca_comch_connection *connection);

/* Receives one frame. If it returns true, connection and endpoint may no longer exist. */
bool soft_connection_receive(struct doca_comch_connection *connection);

void soft_connection_hold(struct doca_comch_connection *connection);
void soft_connection_unhold(struct doca_comch_connection *connection);

#endif
