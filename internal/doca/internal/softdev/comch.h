/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the control channel share.
 *
 *   comch             what servers and clients configure alike
 *   comch_caps        capabilities
 *   comch_server      listening, and the server's half of the handshake
 *   comch_client      finding a server, and the client's half
 *   comch_connection  a connection from its first frame to its end
 *   comch_progress    whose turn it is
 *   comch_send        send tasks
 *   comch_wire        frames and socket addresses
 *   fast              what a connection shares with the fast path: lane, consumer*, producer
 */
#ifndef DMA_COPY_SOFT_COMCH_H
#define DMA_COPY_SOFT_COMCH_H

#include <sys/queue.h>

#include "comch_wire.h"
#include "fast.h"
#include "quirk.h"

/*
 *   GREETING ── handshake ──► OPEN ── soft_connection_close ──► CLOSING ── sent what fits, and BYE ──► CLOSED
 *                               └─────────── the peer left, died or misbehaved ──────────────────────────► CLOSED
 *
 *   CLOSED ── unsent tasks failed, peer's consumers expired ──► GONE (program told) ── tasks freed ──► released
 *
 * A connection that does not get past GREETING is freed at once; the program sees it at most in a connection event that
 * reports failure. One that is released is freed at once by a server, and with the client by a client.
 */
enum soft_connection_state {
	SOFT_CONNECTION_GREETING,
	SOFT_CONNECTION_OPEN,
	SOFT_CONNECTION_CLOSING,
	SOFT_CONNECTION_CLOSED,
	SOFT_CONNECTION_GONE,
};

struct doca_comch_task_send {
	struct doca_task task; /* first */
	STAILQ_ENTRY(doca_comch_task_send) queued;
	struct doca_comch_connection *connection;
	struct soft_frame *frame; /* with the message behind it */
	const void *late;         /* the message, still to be copied; NULL: it has been */
	bool counted;             /* among the messages of this process, and fault decided */
	doca_error_t fault;       /* on request */
	bool oversized;           /* longer than the limit, and accepted all the same */
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
	bool send_failed;   /* the socket takes nothing any more, but may still hold messages from the peer */
	doca_error_t fault; /* what tasks get that can no longer be sent */
	uint32_t max_msg_size;
	uint32_t peer_queue_size;
	uint32_t credits;    /* messages that may be sent, up to peer_queue_size */
	uint32_t granted;    /* messages that the peer may send */
	uint32_t owed;       /* messages that the program has taken, not yet granted again */
	bool asked_to_close; /* disconnected once, see SOFT_DISCONNECT_AGAIN */
	bool unannounced;    /* its end is no event */
	size_t holds;        /* allocated tasks, and callbacks on the stack: memory stays while there are any */
	STAILQ_HEAD(, doca_comch_task_send) unsent;
	struct soft_message_counters counters;
	struct soft_message_counters snapshot; /* of the last update_info */
	union doca_data user_data;
};

/* What tells a server from a client. */
struct soft_endpoint_role {
	/* The first frame of a connection in GREETING. The role releases the connection or makes it OPEN. */
	void (*greeted)(struct doca_comch_connection *connection, const struct soft_frame *frame);

	/* A connection ended in GREETING, by itself. The role releases it. */
	void (*not_greeted)(struct doca_comch_connection *connection);

	/* An OPEN connection was ended by the peer; its tasks are still to be failed. */
	void (*lost)(struct doca_comch_connection *connection);

	/* All is over; the program is to be told. */
	void (*gone)(struct doca_comch_connection *connection);

	/* A connection that the program has seen has nothing left to do. The role frees it, now or later. */
	void (*released)(struct doca_comch_connection *connection);

	/* The listening socket has a caller. True if one was let in. Servers only. */
	bool (*called)(struct soft_endpoint *endpoint);
};

/* Embedded first in servers and clients. */
struct soft_endpoint {
	struct doca_ctx ctx; /* first */
	const struct soft_endpoint_role *role;
	char *name;

	uint32_t max_msg_size;
	bool max_msg_size_chosen;
	uint32_t recv_queue_size;
	uint32_t num_send_tasks;
	doca_comch_task_send_completion_cb_t sent, not_sent;
	doca_comch_event_msg_recv_cb_t received;
	doca_comch_event_consumer_cb_t new_consumer, expired_consumer;

	/* From start to IDLE. */
	int epoll;  /* sockets of all connections, the wakeup, and the listener, whose data is NULL */
	int wakeup; /* eventfd by which the fast path calls */
	bool sockets_next;
	bool failing;    /* inside a callback of a send that failed */
	uint8_t *packet; /* the frame being received */
	size_t packet_size;
	struct doca_comch_task_send *tasks;
	uint8_t *frames;
	STAILQ_HEAD(, doca_comch_task_send) pool;
	TAILQ_HEAD(, doca_comch_connection) connections;
};

struct doca_comch_server {
	struct soft_endpoint endpoint; /* first */
	struct doca_dev_rep *rep;
	doca_comch_event_connection_status_changed_cb_t connected, disconnected;
	struct soft_comch_address address;
	int listener;
	uint32_t dead_clients; /* see SOFT_DEAD_CLIENTS_COUNT */
};

struct doca_comch_client {
	struct soft_endpoint endpoint; /* first */
	struct doca_comch_connection *connection;
	TAILQ_HEAD(, doca_comch_connection) past; /* released, but for the program to look at */
	char dev_pci[DOCA_DEVINFO_PCI_ADDR_SIZE]; /* the DPU device tried last; "": none yet */
	doca_error_t refusal;                     /* of the last server that answered, since start */
};

/* ---- comch ---- */

/* INVALID_VALUE: an empty or too long name. NO_MEMORY. */
doca_error_t soft_endpoint_init(struct soft_endpoint *endpoint, const struct soft_ctx_class *class,
				const struct soft_endpoint_role *role, struct doca_dev *dev, const char *name);
doca_error_t soft_endpoint_fini(struct soft_endpoint *endpoint);

/* What start acquires, and idle releases, on both sides. INVALID_VALUE: mandatory configuration is missing. */
doca_error_t soft_endpoint_open(struct soft_endpoint *endpoint);
void soft_endpoint_close(struct soft_endpoint *endpoint);

/* ---- comch_progress ---- */

/* The parts of a class that are the same on both sides. */
void soft_endpoint_stopping(struct doca_ctx *ctx);
doca_error_t soft_endpoint_stoppable(const struct doca_ctx *ctx);
bool soft_endpoint_quiet(const struct doca_ctx *ctx);
bool soft_endpoint_progress(struct doca_ctx *ctx);
uint64_t soft_endpoint_ready_at(const struct doca_ctx *ctx);

/* ---- comch_connection ---- */

/* A connection in GREETING over fd, which it takes over. NULL: no memory, or the kernel refuses; fd is closed. */
struct doca_comch_connection *soft_connection_open(struct soft_endpoint *endpoint, int fd);

/* GREETING only, or at the end of its endpoint: gone without anybody being told. */
void soft_connection_release(struct doca_comch_connection *connection);

/* One that was released. */
void soft_connection_free(struct doca_comch_connection *connection);

/* HELLO or WELCOME, with the limits of this side. */
struct soft_frame soft_connection_greeting(const struct soft_endpoint *endpoint, enum soft_frame_type type);

/* The handshake is done; peer is the frame in which the peer gave its limits. */
void soft_connection_established(struct doca_comch_connection *connection, const struct soft_frame *peer);

/* OPEN -> CLOSING, on this side's wish. Its consumers and producers must be idle. */
void soft_connection_close(struct doca_comch_connection *connection);

/* False also for a pointer that was never a connection. */
bool soft_connection_is_of(const struct doca_comch_connection *connection, const struct soft_endpoint *endpoint);

/* Takes the credits out of the connection that the next frame grants. */
uint32_t soft_connection_take_owed(struct doca_comch_connection *connection);

/* True if it has something to do that no descriptor announces. */
bool soft_connection_is_due(const struct doca_comch_connection *connection);

/* Does one such thing. False if nothing came of it: the socket is full. */
bool soft_connection_do_due(struct doca_comch_connection *connection);

/* The socket takes more. */
void soft_connection_writable(struct doca_comch_connection *connection);

/* Takes one frame from the socket. Unless it returns false, connection and endpoint may be gone. */
bool soft_connection_receive(struct doca_comch_connection *connection);

void soft_connection_hold(struct doca_comch_connection *connection);
void soft_connection_unhold(struct doca_comch_connection *connection);

/* True if the limits can work together: where both sides chose a size of messages, DOCA wants the same. */
bool soft_connection_sizes_agree(const struct soft_endpoint *endpoint, const struct soft_frame *peer);

/* ---- comch_send ---- */

doca_error_t soft_send_pool_open(struct soft_endpoint *endpoint);
void soft_send_pool_close(struct soft_endpoint *endpoint);

doca_error_t soft_send_alloc(struct soft_endpoint *endpoint, struct doca_comch_connection *connection, const void *msg,
			     uint32_t len, struct doca_comch_task_send **task);
doca_error_t soft_send_validate(const struct doca_task *task);
doca_error_t soft_send_submit(struct doca_task *task);
void soft_send_ended(struct doca_task *task);
void soft_send_release(struct doca_task *task);

/* Sends the oldest unsent task and completes it. False if the peer's receive queue is full, or the socket did not take
 * it: see blocked and send_failed. */
bool soft_send_oldest(struct doca_comch_connection *connection);

/* The socket has just refused a frame; errno says why. */
void soft_send_blocked(struct doca_comch_connection *connection);

/* Completes the oldest unsent task with the connection's fault. */
void soft_send_fail_oldest(struct doca_comch_connection *connection);

#endif
