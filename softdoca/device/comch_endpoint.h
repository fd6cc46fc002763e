/* SPDX-License-Identifier: Apache-2.0 */
/* The common parts of Comch servers and clients: configuration, sockets and progress. */
#ifndef DMA_COPY_SOFT_COMCH_ENDPOINT_H
#define DMA_COPY_SOFT_COMCH_ENDPOINT_H

#include <sys/queue.h>

#include "ctx.h"
#include "doca_abi.h"

struct soft_endpoint;
struct soft_frame;

/* How a server and a client differ. */
struct soft_endpoint_role {
	/* The first frame of a connection in GREETING. The role releases the connection or makes it OPEN. */
	void (*greeted)(struct doca_comch_connection *connection, const struct soft_frame *frame);

	/* A connection ended in GREETING. The role releases it. */
	void (*not_greeted)(struct doca_comch_connection *connection);

	/* The peer ended an OPEN connection; its tasks are still to be failed. */
	void (*lost)(struct doca_comch_connection *connection);

	/* The connection is GONE; the program must be notified. */
	void (*gone)(struct doca_comch_connection *connection);

	/* A connection that the program has seen is no longer in use. The role frees it, now or later. */
	void (*released)(struct doca_comch_connection *connection);

	/* The listening socket is readable. Returns whether a connection was accepted. Servers only. */
	bool (*called)(struct soft_endpoint *endpoint);
};

/* The first member of servers and clients. */
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
	int epoll;  /* sockets of all connections, wakeup, and the listener, whose data is NULL */
	int wakeup; /* eventfd by which the fast path wakes the endpoint */
	bool sockets_next;
	bool failing;    /* inside a callback of a send that failed */
	uint8_t *packet; /* the frame being received */
	size_t packet_size;
	struct doca_comch_task_send *tasks;
	uint8_t *frames;
	STAILQ_HEAD(, doca_comch_task_send) pool;
	TAILQ_HEAD(, doca_comch_connection) connections;
};

/* INVALID_VALUE: an empty or too long name. NO_MEMORY. */
doca_error_t soft_endpoint_init(struct soft_endpoint *endpoint, const struct soft_ctx_class *class,
				const struct soft_endpoint_role *role, struct doca_dev *dev, const char *name);
doca_error_t soft_endpoint_fini(struct soft_endpoint *endpoint);

/* Acquires what idle releases. INVALID_VALUE: mandatory configuration is missing. */
doca_error_t soft_endpoint_open(struct soft_endpoint *endpoint);
void soft_endpoint_close(struct soft_endpoint *endpoint);

/* The members of soft_ctx_class that servers and clients share. */
void soft_endpoint_stopping(struct doca_ctx *ctx);
doca_error_t soft_endpoint_stoppable(const struct doca_ctx *ctx);
bool soft_endpoint_quiet(const struct doca_ctx *ctx);
bool soft_endpoint_progress(struct doca_ctx *ctx);
uint64_t soft_endpoint_ready_at(const struct doca_ctx *ctx);

#endif
