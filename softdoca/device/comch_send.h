/* SPDX-License-Identifier: Apache-2.0 */
/* Send tasks of the control channel. */
#ifndef DMA_COPY_SOFT_COMCH_SEND_H
#define DMA_COPY_SOFT_COMCH_SEND_H

#include <stdbool.h>
#include <sys/queue.h>

#include "ctx.h"
#include "doca_abi.h"

struct soft_endpoint;
struct soft_frame;

struct doca_comch_task_send {
	struct doca_task task; /* first */
	STAILQ_ENTRY(doca_comch_task_send) queued;
	struct doca_comch_connection *connection;
	struct soft_frame *frame; /* followed by the message */
	const void *late;         /* the message, not yet copied; NULL: copied */
	bool counted;             /* among the messages of this process, and fault is set */
	doca_error_t fault;       /* injected */
	doca_error_t result;      /* once sent, or found impossible to send */
	uint64_t number;          /* of the message on its connection, from 1, if it was sent */
	bool oversized;           /* longer than the limit and accepted, see SOFT_LARGE_MESSAGES */
};

/* The pool of an endpoint, from start to IDLE. NO_MEMORY. */
doca_error_t soft_send_pool_open(struct soft_endpoint *endpoint);
void soft_send_pool_close(struct soft_endpoint *endpoint);

/* The members of soft_ctx_class that are about tasks. */
doca_error_t soft_send_validate(const struct doca_task *task);
doca_error_t soft_send_submit(struct doca_task *task);
void soft_send_ended(struct doca_task *task);
void soft_send_release(struct doca_task *task);

/* With the lock of the connection: */

/*
 * Sends the first unsent message, or finds that it never can be sent. False if the socket did not accept it: see full
 * and send_failed.
 */
bool soft_send_next(struct doca_comch_connection *connection);

/* The socket has just refused a frame; errno says why. */
void soft_send_refused(struct doca_comch_connection *connection);

/* Reports whether the oldest task can complete: the peer's receive queue has space for its message, or it failed. */
bool soft_send_is_complete(const struct doca_comch_connection *connection);

/* Without it: */

/* Completes the oldest task if it can, or with the connection's fault if the connection has ended. False: neither. */
bool soft_send_complete_oldest(struct doca_comch_connection *connection);

#endif
