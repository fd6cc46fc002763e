/* SPDX-License-Identifier: Apache-2.0 */
#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

#include "block.h"
#include "stream_send.h"

static struct sender *sender_of(const struct doca_comch_connection *peer)
{
	union doca_data data = {.ptr = NULL};
	doca_ctx_get_user_data(doca_comch_client_as_ctx(doca_comch_client_get_client_ctx(peer)), &data);
	return data.ptr;
}

static void on_new_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *peer, uint32_t id)
{
	(void)event;
	struct sender *sender = sender_of(peer);
	if (sender->has_consumer)
		return;
	sender->consumer_id = id;
	sender->has_consumer = true;
}

static void on_expired_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *peer,
				uint32_t id)
{
	(void)event;
	struct sender *sender = sender_of(peer);
	if (sender->consumer_id == id)
		sender->has_consumer = false;
}

/* The stream needs no messages, but a client must say what it would do with them. */
static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *message, uint32_t len,
		       struct doca_comch_connection *peer)
{
	(void)event;
	(void)message;
	(void)len;
	(void)peer;
}

static void on_sent(struct doca_comch_task_send *task, union doca_data task_user_data, union doca_data ctx_user_data)
{
	(void)task_user_data;
	(void)ctx_user_data;
	doca_task_free(doca_comch_task_send_as_task(task));
}

static doca_error_t connect_to_server(struct sender *sender)
{
	struct doca_ctx *ctx = doca_comch_client_as_ctx(sender->client);
	doca_error_t result = doca_pe_connect_ctx(sender->engines.control, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = sender});
	if (result == DOCA_SUCCESS)
		result = doca_comch_client_task_send_set_conf(sender->client, on_sent, on_sent, 1);
	if (result == DOCA_SUCCESS)
		result = doca_comch_client_event_msg_recv_register(sender->client, on_message);
	if (result == DOCA_SUCCESS)
		result =
			doca_comch_client_event_consumer_register(sender->client, on_new_consumer, on_expired_consumer);
	if (result == DOCA_SUCCESS)
		result = engines_start(&sender->engines, ctx);
	return result == DOCA_SUCCESS ? doca_comch_client_get_connection(sender->client, &sender->peer) : result;
}

bool stream_is_connected(const struct sender *sender)
{
	return engines_state_of(doca_comch_client_as_ctx(sender->client)) == DOCA_CTX_STATE_RUNNING;
}

static void wait_for_consumer(struct sender *sender, bool there)
{
	while (sender->has_consumer != there && stream_is_connected(sender))
		engines_progress(&sender->engines);
}

static doca_error_t send_to_consumer(struct sender *sender, uint32_t count)
{
	wait_for_consumer(sender, true);
	if (!sender->has_consumer)
		return DOCA_ERROR_NOT_CONNECTED;
	doca_error_t result = stream_produce(sender, count);
	if (result == DOCA_SUCCESS)
		wait_for_consumer(sender, false);
	return result;
}

doca_error_t stream_call(struct sender *sender, uint32_t count)
{
	doca_error_t result = doca_comch_client_create(sender->dev, STREAM_SERVICE, &sender->client);
	if (result != DOCA_SUCCESS)
		return result;
	result = connect_to_server(sender);
	if (result == DOCA_SUCCESS)
		result = send_to_consumer(sender, count);
	engines_stop(&sender->engines, doca_comch_client_as_ctx(sender->client));
	doca_comch_client_destroy(sender->client);
	return result;
}
