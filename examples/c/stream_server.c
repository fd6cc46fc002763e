/* SPDX-License-Identifier: Apache-2.0 */
#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

#include "block.h"
#include "stream_receive.h"

static struct receiver *receiver_of(const struct doca_comch_connection *peer)
{
	union doca_data data = {.ptr = NULL};
	doca_ctx_get_user_data(doca_comch_server_as_ctx(doca_comch_server_get_server_ctx(peer)), &data);
	return data.ptr;
}

/* One sender is enough: others are sent away, even after it has gone. */
static void on_connect(struct doca_comch_event_connection_status_changed *event, struct doca_comch_connection *peer,
		       uint8_t successful)
{
	(void)event;
	struct receiver *receiver = receiver_of(peer);
	if (!successful)
		return;
	if (receiver->had_peer) {
		(void)doca_comch_server_disconnect(receiver->server, peer);
		return;
	}
	receiver->peer = peer;
	receiver->had_peer = true;
}

static void on_disconnect(struct doca_comch_event_connection_status_changed *event, struct doca_comch_connection *peer,
			  uint8_t successful)
{
	(void)event;
	(void)successful;
	struct receiver *receiver = receiver_of(peer);
	if (receiver->peer == peer)
		receiver->peer = NULL;
}

/* The stream needs no messages, but a server must say what it would do with them. */
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

static doca_error_t start(struct receiver *receiver)
{
	struct doca_ctx *ctx = doca_comch_server_as_ctx(receiver->server);
	doca_error_t result = doca_pe_connect_ctx(receiver->engines.control, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = receiver});
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_task_send_set_conf(receiver->server, on_sent, on_sent, 1);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_event_msg_recv_register(receiver->server, on_message);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_event_connection_status_changed_register(receiver->server, on_connect,
										    on_disconnect);
	return result == DOCA_SUCCESS ? engines_start(&receiver->engines, ctx) : result;
}

/* The sender hangs up when it has seen the consumer go. */
static doca_error_t receive_from_one(struct receiver *receiver)
{
	while (!receiver->had_peer)
		engines_progress(&receiver->engines);
	doca_error_t result = receiver->peer != NULL ? stream_consume(receiver) : DOCA_ERROR_NOT_CONNECTED;
	while (result == DOCA_SUCCESS && receiver->peer != NULL)
		engines_progress(&receiver->engines);
	return result;
}

doca_error_t stream_serve(struct receiver *receiver, struct doca_dev_rep *rep)
{
	doca_error_t result = doca_comch_server_create(receiver->dev, rep, STREAM_SERVICE, &receiver->server);
	if (result != DOCA_SUCCESS)
		return result;
	result = start(receiver);
	if (result == DOCA_SUCCESS) {
		result = receive_from_one(receiver);
		engines_stop(&receiver->engines, doca_comch_server_as_ctx(receiver->server));
	}
	doca_comch_server_destroy(receiver->server);
	return result;
}
