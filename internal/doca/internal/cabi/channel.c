/* SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A message in flight: DOCA requires that its bytes stay unchanged until the send has completed. */
struct send {
	uint64_t tag;
	uint8_t bytes[];
};

/* ---- events ---- */

/*
 * The channel that this thread is polling. DOCA's connection events carry no user data, and finding the channel of a
 * connection takes the function table; but each channel has its own progress engine, so callbacks during its poll are
 * its own.
 */
static _Thread_local struct channel *current;

/* Returns the array with space for `needed` elements, perhaps moved; on NULL nothing has changed. */
static void *reserve(void *array, uint32_t *capacity, uint32_t needed, size_t element)
{
	if (needed <= *capacity)
		return array;
	uint32_t bigger = needed < 64 ? 64 : 2 * needed;
	void *moved = realloc(array, (size_t)bigger * element);
	if (moved != NULL)
		*capacity = bigger;
	return moved;
}

static struct channel_event *append_event(struct channel *channel, enum channel_event_kind kind)
{
	struct channel_event *events =
		reserve(channel->events, &channel->event_capacity, channel->event_count + 1, sizeof(*events));
	if (events == NULL) {
		channel->out_of_memory = 1;
		return NULL;
	}
	channel->events = events;
	struct channel_event *event = &channel->events[channel->event_count++];
	*event = (struct channel_event){.kind = kind};
	return event;
}

static void append_message(struct channel *channel, struct doca_comch_connection *connection, const uint8_t *bytes,
			   uint32_t len)
{
	uint8_t *arena = reserve(channel->arena, &channel->arena_capacity, channel->arena_used + len, 1);
	if (arena == NULL) {
		channel->out_of_memory = 1;
		return;
	}
	channel->arena = arena;
	struct channel_event *event = append_event(channel, CHANNEL_MESSAGE);
	if (event == NULL)
		return;
	memcpy(channel->arena + channel->arena_used, bytes, len);
	event->connection = connection;
	event->offset = channel->arena_used;
	event->len = len;
	channel->arena_used += len;
}

static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *bytes, uint32_t len,
		       struct doca_comch_connection *connection)
{
	(void)event;
	append_message(current, connection, bytes, len);
}

static void append_connection_event(struct doca_comch_connection *connection, enum channel_event_kind kind)
{
	struct channel_event *event = append_event(current, kind);
	if (event != NULL)
		event->connection = connection;
}

static void on_connect(struct doca_comch_event_connection_status_changed *event,
		       struct doca_comch_connection *connection, uint8_t successful)
{
	(void)event;
	if (successful)
		append_connection_event(connection, CHANNEL_CONNECTED);
}

static void on_disconnect(struct doca_comch_event_connection_status_changed *event,
			  struct doca_comch_connection *connection, uint8_t successful)
{
	(void)event;
	(void)successful;
	append_connection_event(connection, CHANNEL_DISCONNECTED);
	/*
	 * A server may refuse the next client until it has disconnected one that left by itself, and the connection is
	 * valid until this returns. A server without that need refuses the call.
	 */
	current->progress.ops->doca_comch_server_disconnect(current->server, connection);
}

static void append_consumer_event(struct doca_comch_connection *connection, enum channel_event_kind kind, uint32_t id)
{
	struct channel_event *event = append_event(current, kind);
	if (event == NULL)
		return;
	event->connection = connection;
	event->tag = id;
}

static void on_new_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *connection,
			    uint32_t id)
{
	(void)event;
	append_consumer_event(connection, CHANNEL_NEW_CONSUMER, id);
}

static void on_expired_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *connection,
				uint32_t id)
{
	(void)event;
	append_consumer_event(connection, CHANNEL_EXPIRED_CONSUMER, id);
}

static void on_sent(struct doca_comch_task_send *send_task, union doca_data task_data, union doca_data ctx_data)
{
	struct channel *channel = ctx_data.ptr;
	const struct doca_ops *ops = channel->progress.ops;
	struct doca_task *task = ops->doca_comch_task_send_as_task(send_task);
	struct send *send = task_data.ptr;

	struct channel_event *event = append_event(channel, CHANNEL_SENT);
	if (event != NULL) {
		event->tag = send->tag;
		event->status = ops->doca_task_get_status(task);
	}
	free(send);
	ops->doca_task_free(task);
}

/* A client has no connection events: RUNNING means connected. */
static void announce_client_connection(struct channel *channel)
{
	struct doca_comch_connection *connection = NULL;
	doca_error_t status = channel->progress.ops->doca_comch_client_get_connection(channel->client, &connection);
	struct channel_event *event = append_event(channel, CHANNEL_CONNECTED);
	if (event != NULL) {
		event->status = status;
		event->connection = connection;
	}
}

static void on_state(const union doca_data user_data, struct doca_ctx *ctx, enum doca_ctx_states previous,
		     enum doca_ctx_states next)
{
	(void)ctx;
	(void)previous;
	struct channel *channel = user_data.ptr;
	struct channel_event *event = append_event(channel, CHANNEL_STATE);
	if (event != NULL)
		event->state = next;
	if (next == DOCA_CTX_STATE_RUNNING && channel->client != NULL)
		announce_client_connection(channel);
}

/* ---- set-up ---- */

static struct outcome create_server(struct channel *channel, const struct channel_config *c)
{
	const struct doca_ops *ops = channel->progress.ops;
	TRY(ops, doca_comch_server_create, c->dev, c->rep, c->name, &channel->server);
	channel->progress.ctx = ops->doca_comch_server_as_ctx(channel->server);
	TRY(ops, doca_comch_server_set_max_msg_size, channel->server, c->max_message);
	TRY(ops, doca_comch_server_set_recv_queue_size, channel->server, c->receive_queue);
	TRY(ops, doca_comch_server_task_send_set_conf, channel->server, on_sent, on_sent, c->sends);
	TRY(ops, doca_comch_server_event_msg_recv_register, channel->server, on_message);
	TRY(ops, doca_comch_server_event_consumer_register, channel->server, on_new_consumer, on_expired_consumer);
	TRY(ops, doca_comch_server_event_connection_status_changed_register, channel->server, on_connect,
	    on_disconnect);
	return OUTCOME_SUCCESS;
}

static struct outcome create_client(struct channel *channel, const struct channel_config *c)
{
	const struct doca_ops *ops = channel->progress.ops;
	TRY(ops, doca_comch_client_create, c->dev, c->name, &channel->client);
	channel->progress.ctx = ops->doca_comch_client_as_ctx(channel->client);
	TRY(ops, doca_comch_client_set_max_msg_size, channel->client, c->max_message);
	TRY(ops, doca_comch_client_set_recv_queue_size, channel->client, c->receive_queue);
	TRY(ops, doca_comch_client_task_send_set_conf, channel->client, on_sent, on_sent, c->sends);
	TRY(ops, doca_comch_client_event_msg_recv_register, channel->client, on_message);
	TRY(ops, doca_comch_client_event_consumer_register, channel->client, on_new_consumer, on_expired_consumer);
	return OUTCOME_SUCCESS;
}

static struct outcome open_parts(struct channel *channel, const struct doca_ops *ops, const struct channel_config *c)
{
	struct outcome o = progress_open(&channel->progress, ops);
	if (o.status != DOCA_SUCCESS)
		return o;
	o = c->rep != NULL ? create_server(channel, c) : create_client(channel, c);
	if (o.status != DOCA_SUCCESS)
		return o;
	TRY(ops, doca_ctx_set_state_changed_cb, channel->progress.ctx, on_state);
	return progress_connect(&channel->progress, channel);
}

struct outcome channel_open(const struct doca_ops *ops, const struct channel_config *config, struct channel **out)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	if (channel == NULL)
		return (struct outcome){DOCA_ERROR_NO_MEMORY, "calloc"};
	struct outcome o = open_parts(channel, ops, config);
	if (o.status == DOCA_SUCCESS)
		*out = channel;
	else
		channel_close(channel);
	return o;
}

struct outcome channel_start(struct channel *channel)
{
	current = channel;
	doca_error_t status = channel->progress.ops->doca_ctx_start(channel->progress.ctx);
	if (status == DOCA_ERROR_IN_PROGRESS)
		return OUTCOME_SUCCESS;
	return (struct outcome){status, "doca_ctx_start"};
}

/* ---- use ---- */

static struct outcome alloc_send(struct channel *channel, struct doca_comch_connection *connection,
				 const struct send *send, uint32_t len, struct doca_comch_task_send **task)
{
	const struct doca_ops *ops = channel->progress.ops;
	if (channel->server != NULL)
		TRY(ops, doca_comch_server_task_send_alloc_init, channel->server, connection, send->bytes, len, task);
	else
		TRY(ops, doca_comch_client_task_send_alloc_init, channel->client, connection, send->bytes, len, task);
	return OUTCOME_SUCCESS;
}

/* A full pool and a full queue are the same for the caller. */
static doca_error_t full_is_again(doca_error_t status)
{
	return status == DOCA_ERROR_NO_MEMORY ? DOCA_ERROR_AGAIN : status;
}

static struct outcome submit_send(struct channel *channel, struct doca_comch_connection *connection, struct send *send,
				  uint32_t len)
{
	const struct doca_ops *ops = channel->progress.ops;
	struct doca_comch_task_send *send_task;
	struct outcome o = alloc_send(channel, connection, send, len, &send_task);
	if (o.status != DOCA_SUCCESS)
		return (struct outcome){full_is_again(o.status), o.op};
	struct doca_task *task = ops->doca_comch_task_send_as_task(send_task);
	ops->doca_task_set_user_data(task, (union doca_data){.ptr = send});
	doca_error_t status = ops->doca_task_submit(task);
	if (status != DOCA_SUCCESS)
		ops->doca_task_free(task);
	return (struct outcome){status, "doca_task_submit"};
}

struct outcome channel_send(struct channel *channel, struct doca_comch_connection *connection, const void *message,
			    uint32_t len, uint64_t tag)
{
	/* DOCA crashes if a task is allocated from a context that is not running. */
	if (progress_state(&channel->progress) != DOCA_CTX_STATE_RUNNING)
		return (struct outcome){DOCA_ERROR_NOT_CONNECTED, "doca_task_submit"};
	struct send *send = malloc(sizeof(*send) + len);
	if (send == NULL)
		return (struct outcome){DOCA_ERROR_NO_MEMORY, "malloc"};
	send->tag = tag;
	memcpy(send->bytes, message, len);
	struct outcome o = submit_send(channel, connection, send, len);
	if (o.status != DOCA_SUCCESS)
		free(send);
	return o;
}

/* Drops the events that the last poll returned, but not the events of calls in between. */
static void drop_returned(struct channel *channel)
{
	uint32_t kept = channel->event_count - channel->event_returned;
	if (kept > 0)
		memmove(channel->events, channel->events + channel->event_returned, kept * sizeof(channel->events[0]));
	else
		channel->arena_used = 0;
	channel->event_count = kept;
	channel->event_returned = 0;
}

uint32_t channel_poll(struct channel *channel, uint32_t max)
{
	current = channel;
	drop_returned(channel);
	while (channel->event_count < max && channel->progress.ops->doca_pe_progress(channel->progress.pe))
		;
	channel->event_returned = channel->event_count;
	return channel->event_count;
}

struct outcome channel_disconnect(struct channel *channel, struct doca_comch_connection *connection)
{
	current = channel;
	TRY(channel->progress.ops, doca_comch_server_disconnect, channel->server, connection);
	return OUTCOME_SUCCESS;
}

struct outcome channel_stop(struct channel *channel)
{
	current = channel;
	return progress_stop(&channel->progress);
}

/* ---- tear-down ---- */

static struct outcome destroy_context(struct channel *channel)
{
	const struct doca_ops *ops = channel->progress.ops;
	if (channel->server != NULL)
		TRY(ops, doca_comch_server_destroy, channel->server);
	channel->server = NULL;
	if (channel->client != NULL)
		TRY(ops, doca_comch_client_destroy, channel->client);
	channel->client = NULL;
	channel->progress.ctx = NULL;
	return OUTCOME_SUCCESS;
}

struct outcome channel_close(struct channel *channel)
{
	struct outcome o = destroy_context(channel);
	if (o.status == DOCA_SUCCESS)
		o = progress_close(&channel->progress);
	if (o.status != DOCA_SUCCESS)
		return o;
	free(channel->events);
	free(channel->arena);
	free(channel);
	return OUTCOME_SUCCESS;
}
