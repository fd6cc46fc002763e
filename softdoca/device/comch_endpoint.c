/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "comch_endpoint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "comch_connection.h"
#include "comch_send.h"
#include "ctx.h"
#include "error.h"
#include "fast.h"
#include "fault.h"
#include "pe.h"
#include "quirk.h"

/* ---- life cycle ---- */

doca_error_t soft_endpoint_init(struct soft_endpoint *endpoint, const struct soft_ctx_class *class,
				const struct soft_endpoint_role *role, struct doca_dev *dev, const char *name)
{
	const struct soft_limits *limits = soft_limits();
	if (name[0] == '\0' || strlen(name) >= limits->max_name_len)
		return DOCA_ERROR_INVALID_VALUE;
	endpoint->name = strdup(name);
	if (endpoint->name == NULL)
		return DOCA_ERROR_NO_MEMORY;
	endpoint->role = role;
	endpoint->max_msg_size = (uint32_t)limits->max_msg_size;
	endpoint->recv_queue_size = (uint32_t)limits->max_recv_queue_size;
	endpoint->epoll = endpoint->wakeup = -1;
	TAILQ_INIT(&endpoint->connections);
	soft_ctx_init(&endpoint->ctx, class, dev);
	return DOCA_SUCCESS;
}

doca_error_t soft_endpoint_fini(struct soft_endpoint *endpoint)
{
	doca_error_t result = soft_ctx_fini(&endpoint->ctx);
	if (result == DOCA_SUCCESS)
		free(endpoint->name);
	return result;
}

static size_t packet_size(const struct soft_endpoint *endpoint)
{
	size_t most = endpoint->max_msg_size;
	if (most < sizeof(struct soft_consumer_info))
		most = sizeof(struct soft_consumer_info);
	return sizeof(struct soft_frame) + most;
}

static void close_descriptors(struct soft_endpoint *endpoint)
{
	if (endpoint->epoll >= 0)
		close(endpoint->epoll);
	if (endpoint->wakeup >= 0)
		close(endpoint->wakeup);
	endpoint->epoll = endpoint->wakeup = -1;
}

/* The event's data distinguishes the wakeup, with the endpoint's own address, from connections. */
static bool watch_wakeup(struct soft_endpoint *endpoint)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = endpoint};
	return epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, endpoint->wakeup, &event) == 0;
}

static doca_error_t open_descriptors(struct soft_endpoint *endpoint)
{
	doca_error_t result = DOCA_ERROR_OPERATING_SYSTEM;
	endpoint->epoll = epoll_create1(EPOLL_CLOEXEC);
	endpoint->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (endpoint->epoll >= 0 && endpoint->wakeup >= 0 && watch_wakeup(endpoint))
		result = soft_pe_watch(endpoint->ctx.pe, endpoint->epoll, EPOLLIN);
	if (result != DOCA_SUCCESS)
		close_descriptors(endpoint);
	return result;
}

doca_error_t soft_endpoint_open(struct soft_endpoint *endpoint)
{
	if (endpoint->num_send_tasks == 0 || endpoint->received == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_send_pool_open(endpoint);
	if (result != DOCA_SUCCESS)
		return result;
	result = DOCA_ERROR_NO_MEMORY;
	endpoint->packet_size = packet_size(endpoint);
	endpoint->packet = malloc(endpoint->packet_size);
	if (endpoint->packet == NULL)
		goto close_pool;
	result = open_descriptors(endpoint);
	if (result != DOCA_SUCCESS)
		goto free_packet;
	return DOCA_SUCCESS;

free_packet:
	free(endpoint->packet);
close_pool:
	soft_send_pool_close(endpoint);
	return result;
}

void soft_endpoint_close(struct soft_endpoint *endpoint)
{
	struct doca_comch_connection *connection;
	while ((connection = TAILQ_FIRST(&endpoint->connections)) != NULL)
		soft_connection_release(connection);
	soft_pe_unwatch(endpoint->ctx.pe, endpoint->epoll);
	close_descriptors(endpoint);
	free(endpoint->packet);
	soft_send_pool_close(endpoint);
}

/* ---- progress ---- */

/* A served connection moves to the end of the list, so that all are served in turn. */
static bool serve_due(struct soft_endpoint *endpoint)
{
	struct doca_comch_connection *connection, *next;
	for (connection = TAILQ_FIRST(&endpoint->connections); connection != NULL; connection = next) {
		next = TAILQ_NEXT(connection, link);
		if (!soft_connection_is_due(connection))
			continue;
		TAILQ_REMOVE(&endpoint->connections, connection, link);
		TAILQ_INSERT_TAIL(&endpoint->connections, connection, link);
		if (soft_connection_do_due(connection))
			return true;
	}
	return false;
}

/* The wakeup announces due work, which progress looks for anyway; here it only must not hide a socket. */
static bool next_event(struct soft_endpoint *endpoint, struct epoll_event *event, bool *woken)
{
	eventfd_t ignored;
	while (epoll_wait(endpoint->epoll, event, 1, 0) == 1) {
		if (event->data.ptr != endpoint)
			return true;
		eventfd_read(endpoint->wakeup, &ignored);
		*woken = true;
	}
	return false;
}

/* The kernel reports ready sockets in turn. */
static bool serve_sockets(struct soft_endpoint *endpoint)
{
	struct epoll_event event;
	bool woken = false;
	if (soft_fault_muted()) {
		soft_pe_unwatch(endpoint->ctx.pe, endpoint->epoll);
		return false;
	}
	if (!next_event(endpoint, &event, &woken))
		return woken && serve_due(endpoint);
	struct doca_comch_connection *connection = event.data.ptr;
	if (connection == NULL)
		return endpoint->role->called(endpoint);
	if ((event.events & EPOLLOUT) != 0)
		soft_connection_writable(connection);
	bool readable = (event.events & ~(uint32_t)EPOLLOUT) != 0;
	if (readable && connection->state != SOFT_CONNECTION_CLOSING)
		return soft_connection_receive(connection);
	return soft_connection_is_due(connection) && soft_connection_do_due(connection);
}

/* Alternates whether sockets or the connections' own work come first, so that neither starves the other. */
bool soft_endpoint_progress(struct doca_ctx *ctx)
{
	struct soft_endpoint *endpoint = (struct soft_endpoint *)ctx;
	endpoint->sockets_next = !endpoint->sockets_next;
	if (endpoint->sockets_next)
		return serve_sockets(endpoint) || serve_due(endpoint);
	return serve_due(endpoint) || serve_sockets(endpoint);
}

uint64_t soft_endpoint_ready_at(const struct doca_ctx *ctx)
{
	const struct soft_endpoint *endpoint = (const struct soft_endpoint *)ctx;
	struct doca_comch_connection *connection;
	for (connection = TAILQ_FIRST(&endpoint->connections); connection != NULL;
	     connection = TAILQ_NEXT(connection, link)) {
		if (soft_connection_is_due(connection))
			return 0;
	}
	return UINT64_MAX;
}

/* Tasks of a connection that is GONE are counted by the context itself. */
bool soft_endpoint_quiet(const struct doca_ctx *ctx)
{
	const struct soft_endpoint *endpoint = (const struct soft_endpoint *)ctx;
	const struct doca_comch_connection *connection;
	for (connection = TAILQ_FIRST(&endpoint->connections); connection != NULL;
	     connection = TAILQ_NEXT(connection, link)) {
		if (connection->state != SOFT_CONNECTION_GREETING && connection->state != SOFT_CONNECTION_GONE)
			return false;
	}
	return true;
}

/* The guide requires that consumers and producers are stopped first, regardless of the order of their creation. */
doca_error_t soft_endpoint_stoppable(const struct doca_ctx *ctx)
{
	const struct soft_endpoint *endpoint = (const struct soft_endpoint *)ctx;
	const struct doca_comch_connection *connection;
	if (endpoint->failing && soft_has_quirk(SOFT_STOP_IN_SEND_ERROR_CRASH))
		soft_crash("doca_ctx_stop inside the error callback of a send");
	TAILQ_FOREACH(connection, &endpoint->connections, link)
	{
		if (soft_fast_has_active(connection->fast)) {
			soft_detail("a connection has consumers or producers that are not idle");
			return DOCA_ERROR_IN_USE;
		}
	}
	return DOCA_SUCCESS;
}

void soft_endpoint_stopping(struct doca_ctx *ctx)
{
	struct soft_endpoint *endpoint = (struct soft_endpoint *)ctx;
	struct doca_comch_connection *connection;
	for (connection = TAILQ_FIRST(&endpoint->connections); connection != NULL;
	     connection = TAILQ_NEXT(connection, link))
		soft_connection_close(connection);
}
