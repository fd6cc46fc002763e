/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What server and client share: each sends a "ping" with its own name, answers the other's with a "pong", and is finished
 * when both have been answered.
 */
#ifndef EXAMPLES_PING_H
#define EXAMPLES_PING_H

#include <stdbool.h>
#include <stdint.h>

#include <doca_comch.h>

#define PING_SERVICE "examples ping"

struct ping {
	const char *own_name;
	struct doca_pe *pe;
	struct doca_ctx *ctx;
	struct doca_comch_server *server; /* one of the two */
	struct doca_comch_client *client;
	struct doca_comch_connection *peer; /* NULL: not connected */
	bool answered, was_answered;
	doca_error_t result;
};

/* For doca_comch_..._event_msg_recv_register; ..._task_send_set_conf, for success and failure alike. */
void ping_on_message(struct doca_comch_event_msg_recv *event, uint8_t *message, uint32_t len,
		     struct doca_comch_connection *peer);
void ping_on_sent(struct doca_comch_task_send *task, union doca_data task_user_data, union doca_data ctx_user_data);

/* Connects the context to the progress engine and makes `ping` its user data. */
doca_error_t ping_attach(struct ping *ping, struct doca_ctx *ctx);

/* "ping NAME" */
doca_error_t ping_send_first(struct ping *ping);

/* Makes progress until the context is in this state, or something failed. */
doca_error_t ping_wait_for_state(struct ping *ping, enum doca_ctx_states wanted);

/* Stops the context and waits until it is IDLE. */
void ping_stop(struct ping *ping);

doca_error_t ping_serve(struct ping *ping, struct doca_dev *dev, struct doca_dev_rep *rep);
doca_error_t ping_call(struct ping *ping, struct doca_dev *dev);

#endif
