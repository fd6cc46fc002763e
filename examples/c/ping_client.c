/* SPDX-License-Identifier: Apache-2.0 */
#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

#include "ping.h"

/* The client's start is never done at once: progress connects it. */
static doca_error_t connect_to_server(struct ping *ping)
{
	doca_error_t result = ping_attach(ping, doca_comch_client_as_ctx(ping->client));
	if (result == DOCA_SUCCESS)
		result = doca_comch_client_task_send_set_conf(ping->client, ping_on_sent, ping_on_sent, 8);
	if (result == DOCA_SUCCESS)
		result = doca_comch_client_event_msg_recv_register(ping->client, ping_on_message);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_start(ping->ctx);
	if (result != DOCA_ERROR_IN_PROGRESS)
		return result == DOCA_SUCCESS ? DOCA_ERROR_UNEXPECTED : result;
	result = ping_wait_for_state(ping, DOCA_CTX_STATE_RUNNING);
	return result == DOCA_SUCCESS ? doca_comch_client_get_connection(ping->client, &ping->peer) : result;
}

/* What we sent last, the answer, must have left before we hang up. */
static bool finished(const struct ping *ping)
{
	size_t inflight = 0;
	(void)doca_ctx_get_num_inflight_tasks(ping->ctx, &inflight);
	return ping->answered && ping->was_answered && inflight == 0;
}

static doca_error_t talk(struct ping *ping)
{
	doca_error_t result = ping_send_first(ping);
	if (result != DOCA_SUCCESS)
		return result;
	while (ping->result == DOCA_SUCCESS && !finished(ping))
		(void)doca_pe_progress(ping->pe);
	return ping->result;
}

doca_error_t ping_call(struct ping *ping, struct doca_dev *dev)
{
	doca_error_t result = doca_comch_client_create(dev, PING_SERVICE, &ping->client);
	if (result != DOCA_SUCCESS)
		return result;
	result = connect_to_server(ping);
	if (result == DOCA_SUCCESS) {
		result = talk(ping);
		ping_stop(ping);
	}
	doca_comch_client_destroy(ping->client);
	return result;
}
