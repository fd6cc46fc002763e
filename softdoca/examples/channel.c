/* SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"

#include <stdlib.h>
#include <string.h>

#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

#include "device.h"

#define MESSAGES_AT_ONCE 8

static struct doca_ctx *ctx_of(const struct channel *channel)
{
	return channel->server != NULL ? doca_comch_server_as_ctx(channel->server)
				       : doca_comch_client_as_ctx(channel->client);
}

/* ---- Events: they name a connection, which leads to the context, which leads to the channel ---- */

static struct channel *channel_of(const struct doca_comch_connection *peer)
{
	struct doca_comch_server *server = doca_comch_server_get_server_ctx(peer);
	struct doca_ctx *ctx = server != NULL ? doca_comch_server_as_ctx(server)
					      : doca_comch_client_as_ctx(doca_comch_client_get_client_ctx(peer));
	union doca_data data = {.ptr = NULL};
	doca_ctx_get_user_data(ctx, &data);
	return data.ptr;
}

/* A client may be sent a message before its start has returned. */
static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *message, uint32_t len,
		       struct doca_comch_connection *peer)
{
	(void)event;
	struct channel *channel = channel_of(peer);
	if (channel->client != NULL)
		channel->peer = peer;
	const struct listener *listener = &channel->listener;
	if (listener->message != NULL)
		listener->message(listener->user, message, len);
}

static void tell_of_consumer(const struct doca_comch_connection *peer, uint32_t id, bool there)
{
	const struct listener *listener = &channel_of(peer)->listener;
	if (listener->consumer != NULL)
		listener->consumer(listener->user, id, there);
}

static void on_new_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *peer, uint32_t id)
{
	(void)event;
	tell_of_consumer(peer, id, true);
}

static void on_expired_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *peer,
				uint32_t id)
{
	(void)event;
	tell_of_consumer(peer, id, false);
}

/* One client is enough: others are sent away, even after it has gone. */
static void on_connect(struct doca_comch_event_connection_status_changed *event, struct doca_comch_connection *peer,
		       uint8_t successful)
{
	(void)event;
	struct channel *channel = channel_of(peer);
	if (!successful)
		return;
	if (channel->had_peer) {
		(void)doca_comch_server_disconnect(channel->server, peer);
		return;
	}
	channel->peer = peer;
	channel->had_peer = true;
}

static void on_disconnect(struct doca_comch_event_connection_status_changed *event, struct doca_comch_connection *peer,
			  uint8_t successful)
{
	(void)event;
	(void)successful;
	struct channel *channel = channel_of(peer);
	if (channel->peer == peer)
		channel->peer = NULL;
}

/* ---- Sending ---- */

/* For success and failure: the task has the status. */
static void on_sent(struct doca_comch_task_send *task, union doca_data task_user_data, union doca_data ctx_user_data)
{
	struct channel *channel = ctx_user_data.ptr;
	doca_error_t status = doca_task_get_status(doca_comch_task_send_as_task(task));
	DOCA_ERROR_PROPAGATE(channel->result, status);
	free(task_user_data.ptr);
	doca_task_free(doca_comch_task_send_as_task(task));
}

static doca_error_t alloc(struct channel *channel, const void *message, size_t len, struct doca_comch_task_send **task)
{
	if (len > UINT32_MAX)
		return DOCA_ERROR_TOO_BIG;
	if (channel->server != NULL)
		return doca_comch_server_task_send_alloc_init(channel->server, channel->peer, message, (uint32_t)len,
							      task);
	return doca_comch_client_task_send_alloc_init(channel->client, channel->peer, message, (uint32_t)len, task);
}

/* The message must live until the callback, which frees it. */
static doca_error_t submit(struct channel *channel, void *message, size_t len)
{
	struct doca_comch_task_send *task;
	doca_error_t result = alloc(channel, message, len, &task);
	if (result != DOCA_SUCCESS)
		return result;
	doca_task_set_user_data(doca_comch_task_send_as_task(task), (union doca_data){.ptr = message});
	result = doca_task_submit(doca_comch_task_send_as_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_comch_task_send_as_task(task));
	return result;
}

doca_error_t channel_send(struct channel *channel, const void *message, size_t len)
{
	void *copy = malloc(len);
	if (copy == NULL)
		return DOCA_ERROR_NO_MEMORY;
	memcpy(copy, message, len);
	doca_error_t result = submit(channel, copy, len);
	if (result != DOCA_SUCCESS)
		free(copy);
	return result;
}

bool channel_has_sent(const struct channel *channel)
{
	size_t inflight = 0;
	(void)doca_ctx_get_num_inflight_tasks(ctx_of(channel), &inflight);
	return inflight == 0;
}

/* ---- Connecting ---- */

/* A server is RUNNING at once; a client when its engine's progress has connected it. */
static doca_error_t start(struct channel *channel)
{
	struct doca_ctx *ctx = ctx_of(channel);
	doca_error_t result = doca_pe_connect_ctx(channel->engines->control, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = channel});
	return result == DOCA_SUCCESS ? engines_start(channel->engines, ctx) : result;
}

static doca_error_t start_server(struct channel *channel)
{
	struct doca_comch_server *server = channel->server;
	doca_error_t result = doca_comch_server_task_send_set_conf(server, on_sent, on_sent, MESSAGES_AT_ONCE);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_event_msg_recv_register(server, on_message);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_event_consumer_register(server, on_new_consumer, on_expired_consumer);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_event_connection_status_changed_register(server, on_connect, on_disconnect);
	return result == DOCA_SUCCESS ? start(channel) : result;
}

static doca_error_t serve(struct channel *channel, struct doca_dev *dev, const char *rep_pci, const char *service)
{
	doca_error_t result = representor_open(dev, rep_pci, &channel->rep);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_create(dev, channel->rep, service, &channel->server);
	if (result == DOCA_SUCCESS)
		result = start_server(channel);
	while (result == DOCA_SUCCESS && !channel->had_peer)
		engines_progress(channel->engines);
	return result;
}

static doca_error_t start_client(struct channel *channel)
{
	struct doca_comch_client *client = channel->client;
	doca_error_t result = doca_comch_client_task_send_set_conf(client, on_sent, on_sent, MESSAGES_AT_ONCE);
	if (result == DOCA_SUCCESS)
		result = doca_comch_client_event_msg_recv_register(client, on_message);
	if (result == DOCA_SUCCESS)
		result = doca_comch_client_event_consumer_register(client, on_new_consumer, on_expired_consumer);
	if (result == DOCA_SUCCESS)
		result = start(channel);
	return result == DOCA_SUCCESS ? doca_comch_client_get_connection(client, &channel->peer) : result;
}

static doca_error_t call(struct channel *channel, struct doca_dev *dev, const char *service)
{
	doca_error_t result = doca_comch_client_create(dev, service, &channel->client);
	return result == DOCA_SUCCESS ? start_client(channel) : result;
}

doca_error_t channel_open(struct channel *channel, struct doca_dev *dev, const char *rep_pci, const char *service)
{
	bool is_server = doca_comch_cap_server_is_supported(doca_dev_as_devinfo(dev)) == DOCA_SUCCESS;
	doca_error_t result = is_server ? serve(channel, dev, rep_pci, service) : call(channel, dev, service);
	if (result != DOCA_SUCCESS)
		channel_close(channel);
	return result;
}

const char *channel_side(const struct channel *channel)
{
	return channel->server != NULL ? "DPU" : "host";
}

bool channel_is_connected(const struct channel *channel)
{
	return channel->peer != NULL && engines_state_of(ctx_of(channel)) == DOCA_CTX_STATE_RUNNING;
}

void channel_close(struct channel *channel)
{
	if (channel->server != NULL || channel->client != NULL)
		engines_stop(channel->engines, ctx_of(channel));
	if (channel->client != NULL)
		doca_comch_client_destroy(channel->client);
	if (channel->server != NULL)
		doca_comch_server_destroy(channel->server);
	if (channel->rep != NULL)
		doca_dev_rep_close(channel->rep);
}
