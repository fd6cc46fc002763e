/* SPDX-License-Identifier: Apache-2.0 */
/* A server or client of the control channel with its own engine, for the tests. */
#ifndef DMA_COPY_COMCH_END_H
#define DMA_COPY_COMCH_END_H

#include "fixture.h"

#define NAME "dma copy server"
#define NUM_SENDS 64

struct end {
	struct doca_pe *pe;
	struct doca_ctx *ctx;
	struct doca_comch_server *server; /* one of the two */
	struct doca_comch_client *client;
	struct doca_comch_connection *connection; /* the last one; NULL after its end */
	unsigned sent, failed, received, connects, disconnects;
	unsigned failed_connects, failed_disconnects; /* set by a test */
	bool events_fail;
	doca_error_t last_failure;
	uint32_t last_len;
	uint32_t next_number; /* the number that the next message must begin with */
	unsigned new_consumers, expired_consumers;
	uint32_t consumer_id; /* of the last event */
	bool saw_failed_start, failed_after_end;
	void (*on_received)(struct end *end, struct doca_comch_connection *connection);
	void (*on_sent)(struct end *end);
	void (*on_not_sent)(struct end *end);
	void (*on_connected)(struct end *end, struct doca_comch_connection *connection);
	void (*on_disconnected)(struct end *end, struct doca_comch_connection *connection);
	struct doca_task *kept; /* freed by a callback */
};

/* Devices and directory of all ends. */
extern struct fixture fixture;

/* The configuration of every end. */
void on_sent(struct doca_comch_task_send *task, union doca_data task_data, union doca_data ctx_data);
void on_not_sent(struct doca_comch_task_send *task, union doca_data task_data, union doca_data ctx_data);
void on_received(struct doca_comch_event_msg_recv *event, uint8_t *bytes, uint32_t len,
		 struct doca_comch_connection *connection);
void on_connect(struct doca_comch_event_connection_status_changed *event, struct doca_comch_connection *connection,
		uint8_t successful);
void on_disconnect(struct doca_comch_event_connection_status_changed *event, struct doca_comch_connection *connection,
		   uint8_t successful);

/* Connects the end to its engine. */
void end_connect(struct end *end);

/* Configured, not started. */
void server_open_as(struct end *end, struct doca_dev_rep *rep, const char *name);
void server_open(struct end *end);
void client_open_as(struct end *end, const char *name);
void client_open(struct end *end);
enum doca_ctx_states state_of(const struct end *end);

/* One thread drives all ends of this process, so once none moves there is nothing to wait for. */
void settle(struct end *ends[], size_t n);
void settle_one(struct end *end);
void settle_both(struct end *a, struct end *b);
void end_close(struct end *end);
void close_both(struct end *client, struct end *server);

/* Both running, with a connection. */
void open_both(struct end *client, struct end *server);

/* On the last connection. */
doca_error_t alloc_send(struct end *end, const void *msg, uint32_t len, struct doca_task **task);

/*
 * A message begins with its number and its other bytes follow from it, so that the receiver can check both. Its memory
 * is overwritten after submission.
 */
doca_error_t send_number(struct end *end, uint32_t number, uint32_t len);

/* For on_received: sends the received number back. */
void answer(struct end *end, struct doca_comch_connection *connection);

/* Sends until the socket is full and the pool is empty. Returns how many messages were submitted. */
unsigned fill(struct end *end, uint32_t len);

#endif
