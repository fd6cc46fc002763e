/* SPDX-License-Identifier: Apache-2.0 */
#include "ping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

/* ---- Sending ---- */

static doca_error_t alloc(struct ping *ping, const char *text, struct doca_comch_task_send **task)
{
	uint32_t len = (uint32_t)strlen(text);
	if (ping->server != NULL)
		return doca_comch_server_task_send_alloc_init(ping->server, ping->peer, text, len, task);
	return doca_comch_client_task_send_alloc_init(ping->client, ping->peer, text, len, task);
}

/* DOCA wants the text to live until the callback, which frees it. */
static doca_error_t submit(struct ping *ping, char *text)
{
	struct doca_comch_task_send *task;
	doca_error_t result = alloc(ping, text, &task);
	if (result != DOCA_SUCCESS)
		return result;
	doca_task_set_user_data(doca_comch_task_send_as_task(task), (union doca_data){.ptr = text});
	result = doca_task_submit(doca_comch_task_send_as_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_comch_task_send_as_task(task));
	return result;
}

static doca_error_t send_text(struct ping *ping, const char *verb, const char *name)
{
	char *text = malloc(strlen(verb) + strlen(name) + 2);
	if (text == NULL)
		return DOCA_ERROR_NO_MEMORY;
	sprintf(text, "%s %s", verb, name);
	doca_error_t result = submit(ping, text);
	if (result != DOCA_SUCCESS)
		free(text);
	return result;
}

doca_error_t ping_send_first(struct ping *ping)
{
	return send_text(ping, "ping", ping->own_name);
}

void ping_on_sent(struct doca_comch_task_send *task, union doca_data task_user_data, union doca_data ctx_user_data)
{
	struct ping *ping = ctx_user_data.ptr;
	doca_error_t status = doca_task_get_status(doca_comch_task_send_as_task(task));
	DOCA_ERROR_PROPAGATE(ping->result, status);
	free(task_user_data.ptr);
	doca_task_free(doca_comch_task_send_as_task(task));
}

/* ---- Receiving ---- */

static struct ping *ping_of(const struct doca_comch_connection *peer)
{
	struct doca_comch_server *server = doca_comch_server_get_server_ctx(peer);
	struct doca_ctx *ctx = server != NULL ? doca_comch_server_as_ctx(server)
					      : doca_comch_client_as_ctx(doca_comch_client_get_client_ctx(peer));
	union doca_data data = {.ptr = NULL};
	doca_ctx_get_user_data(ctx, &data);
	return data.ptr;
}

void ping_on_message(struct doca_comch_event_msg_recv *event, uint8_t *message, uint32_t len,
		     struct doca_comch_connection *peer)
{
	(void)event;
	char text[64];
	struct ping *ping = ping_of(peer);
	snprintf(text, sizeof(text), "%.*s", (int)len, (const char *)message);
	printf("%s got \"%s\"\n", ping->own_name, text);
	if (strncmp(text, "ping ", 5) == 0) {
		doca_error_t result = send_text(ping, "pong", text + 5);
		DOCA_ERROR_PROPAGATE(ping->result, result);
		ping->answered = true;
	} else if (strncmp(text, "pong ", 5) == 0) {
		ping->was_answered = true;
	}
}

/* ---- The context ---- */

doca_error_t ping_attach(struct ping *ping, struct doca_ctx *ctx)
{
	ping->ctx = ctx;
	doca_error_t result = doca_pe_connect_ctx(ping->pe, ctx);
	return result != DOCA_SUCCESS ? result : doca_ctx_set_user_data(ctx, (union doca_data){.ptr = ping});
}

doca_error_t ping_wait_for_state(struct ping *ping, enum doca_ctx_states wanted)
{
	enum doca_ctx_states state;
	do {
		(void)doca_pe_progress(ping->pe);
		(void)doca_ctx_get_state(ping->ctx, &state);
		/* A client that finds no server goes back to where it started. */
		if (wanted == DOCA_CTX_STATE_RUNNING && state == DOCA_CTX_STATE_IDLE)
			return DOCA_ERROR_NOT_CONNECTED;
	} while (state != wanted);
	return DOCA_SUCCESS;
}

void ping_stop(struct ping *ping)
{
	if (doca_ctx_stop(ping->ctx) == DOCA_ERROR_IN_PROGRESS)
		(void)ping_wait_for_state(ping, DOCA_CTX_STATE_IDLE);
}
