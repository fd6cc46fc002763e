/* SPDX-License-Identifier: Apache-2.0 */
#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

#include "ping.h"

static struct ping *ping_of(const struct doca_comch_connection *peer)
{
	union doca_data data = {.ptr = NULL};
	doca_ctx_get_user_data(doca_comch_server_as_ctx(doca_comch_server_get_server_ctx(peer)), &data);
	return data.ptr;
}

static void on_connect(struct doca_comch_event_connection_status_changed *event, struct doca_comch_connection *peer,
		       uint8_t successful)
{
	(void)event;
	struct ping *ping = ping_of(peer);
	if (!successful || ping->peer != NULL)
		return;
	ping->peer = peer;
	doca_error_t result = ping_send_first(ping);
	DOCA_ERROR_PROPAGATE(ping->result, result);
}

static void on_disconnect(struct doca_comch_event_connection_status_changed *event, struct doca_comch_connection *peer,
			  uint8_t successful)
{
	(void)event;
	(void)successful;
	struct ping *ping = ping_of(peer);
	if (ping->peer == peer)
		ping->peer = NULL;
}

static doca_error_t start(struct ping *ping)
{
	doca_error_t result = ping_attach(ping, doca_comch_server_as_ctx(ping->server));
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_task_send_set_conf(ping->server, ping_on_sent, ping_on_sent, 8);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_event_msg_recv_register(ping->server, ping_on_message);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_event_connection_status_changed_register(ping->server, on_connect,
										    on_disconnect);
	return result == DOCA_SUCCESS ? doca_ctx_start(ping->ctx) : result;
}

/* The client hangs up when it has all it wants. */
static doca_error_t talk(struct ping *ping)
{
	bool finished = false;
	while (ping->result == DOCA_SUCCESS && !(finished && ping->peer == NULL)) {
		(void)doca_pe_progress(ping->pe);
		finished = ping->answered && ping->was_answered;
	}
	return ping->result;
}

doca_error_t ping_serve(struct ping *ping, struct doca_dev *dev, struct doca_dev_rep *rep)
{
	doca_error_t result = doca_comch_server_create(dev, rep, PING_SERVICE, &ping->server);
	if (result != DOCA_SUCCESS)
		return result;
	result = start(ping);
	if (result == DOCA_SUCCESS) {
		result = talk(ping);
		ping_stop(ping);
	}
	doca_comch_server_destroy(ping->server);
	return result;
}
