/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "comch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- life ---- */

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
	endpoint->epoll = endpoint->bell = -1;
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
	if (most < sizeof(struct soft_consumer_card))
		most = sizeof(struct soft_consumer_card);
	return sizeof(struct soft_frame) + most;
}

static void close_descriptors(struct soft_endpoint *endpoint)
{
	if (endpoint->epoll >= 0)
		close(endpoint->epoll);
	if (endpoint->bell >= 0)
		close(endpoint->bell);
	endpoint->epoll = endpoint->bell = -1;
}

/* The bell tells itself from connections by the endpoint's own address. */
static bool watch_bell(struct soft_endpoint *endpoint)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = endpoint};
	return epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, endpoint->bell, &event) == 0;
}

static doca_error_t open_descriptors(struct soft_endpoint *endpoint)
{
	doca_error_t result = DOCA_ERROR_OPERATING_SYSTEM;
	endpoint->epoll = epoll_create1(EPOLL_CLOEXEC);
	endpoint->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (endpoint->epoll >= 0 && endpoint->bell >= 0 && watch_bell(endpoint))
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

/* ---- configuration ---- */

static doca_error_t configurable(const struct soft_endpoint *endpoint, bool valid)
{
	if (endpoint == NULL || !valid)
		return DOCA_ERROR_INVALID_VALUE;
	return soft_ctx_configurable(&endpoint->ctx);
}

static doca_error_t set_max_msg_size(struct soft_endpoint *endpoint, uint32_t size)
{
	doca_error_t result = configurable(endpoint, size != 0 && size <= soft_limits()->max_msg_size);
	if (result != DOCA_SUCCESS)
		return result;
	endpoint->max_msg_size = size;
	endpoint->max_msg_size_chosen = true;
	return DOCA_SUCCESS;
}

/* Of one connection; see comch_wire.h. */
static doca_error_t set_recv_queue_size(struct soft_endpoint *endpoint, uint32_t size)
{
	doca_error_t result = configurable(endpoint, size != 0 && size <= soft_limits()->max_recv_queue_size);
	if (result == DOCA_SUCCESS)
		endpoint->recv_queue_size = size;
	return result;
}

static doca_error_t set_send_conf(struct soft_endpoint *endpoint, doca_comch_task_send_completion_cb_t sent,
				  doca_comch_task_send_completion_cb_t not_sent, uint32_t num_send_tasks)
{
	bool valid = sent != NULL && not_sent != NULL && num_send_tasks != 0 &&
		     num_send_tasks <= soft_limits()->max_send_tasks;
	doca_error_t result = configurable(endpoint, valid);
	if (result != DOCA_SUCCESS)
		return result;
	endpoint->sent = sent;
	endpoint->not_sent = not_sent;
	endpoint->num_send_tasks = num_send_tasks;
	return DOCA_SUCCESS;
}

static doca_error_t register_recv(struct soft_endpoint *endpoint, doca_comch_event_msg_recv_cb_t received)
{
	doca_error_t result = configurable(endpoint, received != NULL);
	if (result == DOCA_SUCCESS)
		endpoint->received = received;
	return result;
}

static doca_error_t register_consumer(struct soft_endpoint *endpoint, doca_comch_event_consumer_cb_t new_consumer,
				      doca_comch_event_consumer_cb_t expired_consumer)
{
	doca_error_t result = configurable(endpoint, new_consumer != NULL && expired_consumer != NULL);
	if (result != DOCA_SUCCESS)
		return result;
	endpoint->new_consumer = new_consumer;
	endpoint->expired_consumer = expired_consumer;
	return DOCA_SUCCESS;
}

static doca_error_t get_max_msg_size(const struct soft_endpoint *endpoint, uint32_t *size)
{
	if (endpoint == NULL || size == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*size = endpoint->max_msg_size;
	return DOCA_SUCCESS;
}

static doca_error_t get_recv_queue_size(const struct soft_endpoint *endpoint, uint32_t *size)
{
	if (endpoint == NULL || size == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*size = endpoint->recv_queue_size;
	return DOCA_SUCCESS;
}

static doca_error_t get_device(const struct soft_endpoint *endpoint, struct doca_dev **dev)
{
	if (endpoint == NULL || dev == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*dev = endpoint->ctx.dev;
	return DOCA_SUCCESS;
}

/*
 * DOCA has each of these twice, for servers and for clients. An endpoint is the first member of both, and NULL stays
 * NULL.
 */
#define FOR_BOTH_SIDES(side)                                                                                          \
	struct doca_ctx *soft_doca_comch_##side##_as_ctx(struct doca_comch_##side *comch_##side)                      \
	{                                                                                                             \
		return (struct doca_ctx *)comch_##side;                                                               \
	}                                                                                                             \
	doca_error_t soft_doca_comch_##side##_set_max_msg_size(struct doca_comch_##side *comch_##side, uint32_t size) \
	{                                                                                                             \
		return set_max_msg_size((struct soft_endpoint *)comch_##side, size);                                  \
	}                                                                                                             \
	doca_error_t soft_doca_comch_##side##_get_max_msg_size(const struct doca_comch_##side *comch_##side,          \
							       uint32_t *size)                                        \
	{                                                                                                             \
		return get_max_msg_size((const struct soft_endpoint *)comch_##side, size);                            \
	}                                                                                                             \
	doca_error_t soft_doca_comch_##side##_set_recv_queue_size(struct doca_comch_##side *comch_##side,             \
								  uint32_t size)                                      \
	{                                                                                                             \
		return set_recv_queue_size((struct soft_endpoint *)comch_##side, size);                               \
	}                                                                                                             \
	doca_error_t soft_doca_comch_##side##_get_recv_queue_size(const struct doca_comch_##side *comch_##side,       \
								  uint32_t *size)                                     \
	{                                                                                                             \
		return get_recv_queue_size((const struct soft_endpoint *)comch_##side, size);                         \
	}                                                                                                             \
	doca_error_t soft_doca_comch_##side##_get_device(const struct doca_comch_##side *comch_##side,                \
							 struct doca_dev **dev)                                       \
	{                                                                                                             \
		return get_device((const struct soft_endpoint *)comch_##side, dev);                                   \
	}                                                                                                             \
	doca_error_t soft_doca_comch_##side##_task_send_set_conf(                                                     \
		struct doca_comch_##side *comch_##side, doca_comch_task_send_completion_cb_t task_completion_cb,      \
		doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks)                          \
	{                                                                                                             \
		return set_send_conf((struct soft_endpoint *)comch_##side, task_completion_cb, task_error_cb,         \
				     num_send_tasks);                                                                 \
	}                                                                                                             \
	doca_error_t soft_doca_comch_##side##_event_msg_recv_register(struct doca_comch_##side *comch_##side,         \
								      doca_comch_event_msg_recv_cb_t recv_event_cb)   \
	{                                                                                                             \
		return register_recv((struct soft_endpoint *)comch_##side, recv_event_cb);                            \
	}                                                                                                             \
	doca_error_t soft_doca_comch_##side##_event_consumer_register(                                                \
		struct doca_comch_##side *comch_##side, doca_comch_event_consumer_cb_t new_consumer_event_cb,         \
		doca_comch_event_consumer_cb_t expired_consumer_event_cb)                                             \
	{                                                                                                             \
		return register_consumer((struct soft_endpoint *)comch_##side, new_consumer_event_cb,                 \
					 expired_consumer_event_cb);                                                  \
	}

FOR_BOTH_SIDES(server)
FOR_BOTH_SIDES(client)
