/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "comch_connection.h"
#include "comch_endpoint.h"
#include "comch_send.h"
#include "comch_wire.h"
#include "ctx.h"
#include "dev.h"
#include "error.h"
#include "fast.h"
#include "fault.h"
#include "quirk.h"
#include "sizes.h"
#include "soft.h"

struct doca_comch_server {
	struct soft_endpoint endpoint; /* first */
	struct doca_dev_rep *rep;
	doca_comch_event_connection_status_changed_cb_t connected, disconnected;
	struct soft_comch_address address;
	int listener;
	uint32_t dead_clients; /* see SOFT_DEAD_CLIENTS_COUNT */
	bool has_untold;       /* see SOFT_UNTOLD_CLIENTS */
};

struct doca_comch_event_connection_status_changed {
	char nothing;
};

static struct doca_comch_event_connection_status_changed status_event;

static bool watch_listener(struct doca_comch_server *server)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	return epoll_ctl(server->endpoint.epoll, EPOLL_CTL_ADD, server->listener, &event) == 0;
}

/* ALREADY_EXIST: the name is served for this device and representor, by this process or another. */
static doca_error_t server_start(struct doca_ctx *ctx)
{
	struct doca_comch_server *server = (struct doca_comch_server *)ctx;
	if (server->connected == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_endpoint_open(&server->endpoint);
	if (result != DOCA_SUCCESS)
		return result;
	result = soft_comch_listen(&server->address, &server->listener);
	if (result != DOCA_SUCCESS)
		goto close_endpoint;
	result = DOCA_ERROR_OPERATING_SYSTEM;
	if (!watch_listener(server))
		goto unlisten;
	server->has_untold = false;
	return DOCA_SUCCESS;

unlisten:
	soft_comch_unlisten(&server->address, server->listener);
close_endpoint:
	soft_endpoint_close(&server->endpoint);
	return result;
}

/* The name is kept until here, so that two servers never overlap. */
static void server_idle(struct doca_ctx *ctx)
{
	struct doca_comch_server *server = (struct doca_comch_server *)ctx;
	soft_comch_unlisten(&server->address, server->listener);
	soft_endpoint_close(&server->endpoint);
}

static const struct soft_ctx_class server_class = {
	.name = "comch server",
	.is_comch = true,
	.start = server_start,
	.stopping = soft_endpoint_stopping,
	.stoppable = soft_endpoint_stoppable,
	.quiet = soft_endpoint_quiet,
	.idle = server_idle,
	.progress = soft_endpoint_progress,
	.ready_at = soft_endpoint_ready_at,
	.validate = soft_send_validate,
	.submit = soft_send_submit,
	.ended = soft_send_ended,
	.release = soft_send_release,
};

/* ---- handshake ---- */

/* Connections are in order of arrival while they are in GREETING, so the first is the oldest. */
static void limit_handshakes(struct soft_endpoint *endpoint)
{
	struct doca_comch_connection *connection, *oldest = NULL;
	unsigned count = 0;
	for (connection = TAILQ_FIRST(&endpoint->connections); connection != NULL;
	     connection = TAILQ_NEXT(connection, link)) {
		if (connection->state != SOFT_CONNECTION_GREETING)
			continue;
		oldest = oldest == NULL ? connection : oldest;
		count++;
	}
	if (count > SOFT_MAX_HANDSHAKES)
		soft_connection_release(oldest);
}

static bool server_called(struct soft_endpoint *endpoint)
{
	struct doca_comch_server *server = (struct doca_comch_server *)endpoint;
	int fd = soft_comch_accept(server->listener);
	if (fd < 0 || soft_connection_open(endpoint, fd) == NULL)
		return false;
	limit_handshakes(endpoint);
	return true;
}

static uint32_t count_clients(const struct soft_endpoint *endpoint)
{
	const struct doca_comch_connection *connection;
	uint32_t n = 0;
	for (connection = TAILQ_FIRST(&endpoint->connections); connection != NULL;
	     connection = TAILQ_NEXT(connection, link))
		n += connection->state != SOFT_CONNECTION_GREETING && connection->state != SOFT_CONNECTION_GONE;
	return n;
}

static doca_error_t admit(const struct soft_endpoint *endpoint, const struct soft_frame *frame)
{
	if (endpoint->ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_SHUTDOWN;
	if (!soft_connection_sizes_agree(endpoint, frame))
		return DOCA_ERROR_INVALID_VALUE;
	const struct doca_comch_server *server = (const struct doca_comch_server *)endpoint;
	if (server->has_untold || count_clients(endpoint) + server->dead_clients >= soft_limits()->max_clients)
		return DOCA_ERROR_FULL;
	return DOCA_SUCCESS;
}

static void refuse(struct doca_comch_connection *connection, doca_error_t code)
{
	struct soft_frame answer = soft_frame_make(SOFT_FRAME_REFUSE, code, 0);
	soft_detail("a client is refused: %s", soft_doca_error_get_descr(code));
	soft_frame_send(connection->fd, &answer);
	soft_connection_release(connection);
}

/* An injected fault: server and client see a connection that failed. */
static void fail_to_connect(struct doca_comch_server *server, struct doca_comch_connection *connection)
{
	server->connected(&status_event, connection, 0);
	refuse(connection, DOCA_ERROR_CONNECTION_ABORTED);
}

static void server_greeted(struct doca_comch_connection *connection, const struct soft_frame *frame)
{
	struct soft_endpoint *endpoint = connection->endpoint;
	struct doca_comch_server *server = (struct doca_comch_server *)endpoint;
	struct soft_frame welcome = soft_connection_greeting(endpoint, SOFT_FRAME_WELCOME);
	doca_error_t admission = admit(endpoint, frame);
	if (frame->type != SOFT_FRAME_HELLO) {
		soft_connection_release(connection);
	} else if (admission != DOCA_SUCCESS) {
		refuse(connection, admission);
	} else if (soft_fault_connect()) {
		fail_to_connect(server, connection);
	} else if (!soft_frame_send(connection->fd, &welcome)) {
		soft_connection_release(connection);
	} else {
		soft_connection_established(connection, frame);
		server->connected(&status_event, connection, 1);
	}
}

/* A server keeps running when a client is lost; gone tells the program. */
static void server_lost(struct doca_comch_connection *connection)
{
	struct doca_comch_server *server = (struct doca_comch_server *)connection->endpoint;
	bool died = connection->fault == DOCA_ERROR_CONNECTION_RESET;
	server->dead_clients += died && soft_has_quirk(SOFT_DEAD_CLIENTS_COUNT);
}

static void server_gone(struct doca_comch_connection *connection)
{
	struct doca_comch_server *server = (struct doca_comch_server *)connection->endpoint;
	if (connection->unannounced)
		return;
	server->disconnected(&status_event, connection, !soft_fault_disconnect());
	server->has_untold |= !connection->told && soft_has_quirk(SOFT_UNTOLD_CLIENTS);
}

static const struct soft_endpoint_role server_role = {
	.called = server_called,
	.greeted = server_greeted,
	.not_greeted = soft_connection_release,
	.lost = server_lost,
	.gone = server_gone,
	.released = soft_connection_free,
};

/* ---- functions of DOCA ---- */

doca_error_t soft_doca_comch_server_create(struct doca_dev *dev, struct doca_dev_rep *repr, const char *name,
					   struct doca_comch_server **comch_server)
{
	if (dev == NULL || repr == NULL || name == NULL || comch_server == NULL || repr->dev != dev)
		return DOCA_ERROR_INVALID_VALUE;
	if (dev->info->side != SOFT_DPU)
		return DOCA_ERROR_INITIALIZATION;
	struct doca_comch_server *server = calloc(1, sizeof(*server));
	if (server == NULL)
		return DOCA_ERROR_NO_MEMORY;
	doca_error_t result = soft_endpoint_init(&server->endpoint, &server_class, &server_role, dev, name);
	if (result != DOCA_SUCCESS)
		goto free_server;
	soft_comch_address_make(&server->address, repr->info->function->comch_key, dev->info->comch_key, name);
	atomic_fetch_add(&repr->users, 1);
	server->rep = repr;
	*comch_server = server;
	return DOCA_SUCCESS;

free_server:
	free(server);
	return result;
}

doca_error_t soft_doca_comch_server_destroy(struct doca_comch_server *comch_server)
{
	if (comch_server == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_endpoint_fini(&comch_server->endpoint);
	if (result != DOCA_SUCCESS)
		return result;
	atomic_fetch_sub(&comch_server->rep->users, 1);
	free(comch_server);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_server_event_connection_status_changed_register(
	struct doca_comch_server *comch_server, doca_comch_event_connection_status_changed_cb_t connect_event_cb,
	doca_comch_event_connection_status_changed_cb_t disconnect_event_cb)
{
	if (comch_server == NULL || connect_event_cb == NULL || disconnect_event_cb == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(&comch_server->endpoint.ctx);
	if (result != DOCA_SUCCESS)
		return result;
	comch_server->connected = connect_event_cb;
	comch_server->disconnected = disconnect_event_cb;
	return DOCA_SUCCESS;
}

/* For a connection that has ended by itself. It is known until its disconnection event has returned. */
static doca_error_t disconnect_ended(const struct doca_comch_server *server, struct doca_comch_connection *connection)
{
	const struct doca_comch_connection *known;
	TAILQ_FOREACH(known, &server->endpoint.connections, link)
	{
		if (known == connection)
			break;
	}
	if (known == NULL && connection != NULL && soft_has_quirk(SOFT_LATE_DISCONNECT_CRASH))
		soft_crash("doca_comch_server_disconnect of a connection after its disconnection event");
	if (known == NULL || known->state != SOFT_CONNECTION_GONE || !soft_has_quirk(SOFT_UNTOLD_CLIENTS))
		return DOCA_ERROR_INVALID_VALUE;
	connection->told = true;
	return DOCA_SUCCESS;
}

/*
 * No disconnection event follows, because the caller knows. The connection is freed when its tasks have completed and
 * are freed.
 */
doca_error_t soft_doca_comch_server_disconnect(struct doca_comch_server *comch_server,
					       struct doca_comch_connection *connection)
{
	if (comch_server == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!soft_connection_is_of(connection, &comch_server->endpoint))
		return disconnect_ended(comch_server, connection);
	if (connection->state == SOFT_CONNECTION_OPEN && soft_fast_has_active(connection->fast))
		return DOCA_ERROR_IN_USE;
	if (!connection->asked_to_close && soft_has_quirk(SOFT_DISCONNECT_AGAIN)) {
		connection->asked_to_close = true;
		return DOCA_ERROR_AGAIN;
	}
	connection->unannounced = !soft_has_quirk(SOFT_DISCONNECT_EVENT);
	connection->told = true;
	soft_connection_close(connection);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_server_get_device_rep(const struct doca_comch_server *comch_server,
						   struct doca_dev_rep **rep)
{
	if (comch_server == NULL || rep == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*rep = comch_server->rep;
	return DOCA_SUCCESS;
}

struct doca_comch_server *soft_doca_comch_server_get_server_ctx(const struct doca_comch_connection *connection)
{
	if (connection == NULL || connection->endpoint->role != &server_role)
		return NULL;
	return (struct doca_comch_server *)connection->endpoint;
}
