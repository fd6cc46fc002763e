/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "comch_endpoint.h"
#include "config.h"
#include "ctx.h"
#include "dev.h"
#include "soft.h"

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

/* The queue of one connection; see comch_wire.h. */
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
 * DOCA has each of these functions for servers and for clients. An endpoint is the first member of both, so NULL stays
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

/* ---- capabilities ---- */

/* ---- control channel ---- */

static doca_error_t supported_on(const struct doca_devinfo *devinfo, enum soft_side side)
{
	if (devinfo == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return devinfo->side == side ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t soft_doca_comch_cap_server_is_supported(const struct doca_devinfo *devinfo)
{
	return supported_on(devinfo, SOFT_DPU);
}

doca_error_t soft_doca_comch_cap_client_is_supported(const struct doca_devinfo *devinfo)
{
	return supported_on(devinfo, SOFT_HOST);
}

static doca_error_t report_limit(const struct doca_devinfo *devinfo, uint64_t limit, uint32_t *out)
{
	if (devinfo == NULL || out == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*out = (uint32_t)limit;
	return DOCA_SUCCESS;
}

/* Includes the terminating zero. */
doca_error_t soft_doca_comch_cap_get_max_name_len(const struct doca_devinfo *devinfo, uint32_t *max_name_len)
{
	return report_limit(devinfo, soft_limits()->max_name_len, max_name_len);
}

doca_error_t soft_doca_comch_cap_get_max_msg_size(const struct doca_devinfo *devinfo, uint32_t *size)
{
	return report_limit(devinfo, soft_limits()->max_msg_size, size);
}

doca_error_t soft_doca_comch_cap_get_max_recv_queue_size(const struct doca_devinfo *devinfo, uint32_t *size)
{
	return report_limit(devinfo, soft_limits()->max_recv_queue_size, size);
}

doca_error_t soft_doca_comch_cap_get_max_clients(const struct doca_devinfo *devinfo, uint32_t *num_clients)
{
	return report_limit(devinfo, soft_limits()->max_clients, num_clients);
}

doca_error_t soft_doca_comch_cap_get_max_send_tasks(const struct doca_devinfo *devinfo, uint32_t *max_send_tasks)
{
	return report_limit(devinfo, soft_limits()->max_send_tasks, max_send_tasks);
}

/* ---- fast path ---- */

/* Both sides can have consumers and producers, says the guide. */
doca_error_t soft_doca_comch_consumer_cap_is_supported(const struct doca_devinfo *devinfo)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_consumer_cap_get_max_num_tasks(const struct doca_devinfo *devinfo, uint32_t *max_num_tasks)
{
	return report_limit(devinfo, soft_limits()->max_fast_tasks, max_num_tasks);
}

doca_error_t soft_doca_comch_consumer_cap_get_max_buf_size(const struct doca_devinfo *devinfo, uint32_t *max_buf_size)
{
	return report_limit(devinfo, soft_limits()->max_fast_buf_size, max_buf_size);
}

/* Lists are not supported. */
doca_error_t soft_doca_comch_consumer_cap_get_max_buf_list_len(const struct doca_devinfo *devinfo,
							       uint32_t *max_buf_list_len)
{
	return report_limit(devinfo, 1, max_buf_list_len);
}

doca_error_t soft_doca_comch_consumer_cap_get_max_consumers(const struct doca_devinfo *devinfo, uint32_t *max_consumers)
{
	return report_limit(devinfo, soft_limits()->max_consumers, max_consumers);
}

doca_error_t soft_doca_comch_consumer_cap_get_max_imm_data_len(const struct doca_devinfo *devinfo,
							       uint32_t *max_imm_data_len)
{
	return report_limit(devinfo, soft_limits()->max_imm_data_len, max_imm_data_len);
}

doca_error_t soft_doca_comch_producer_cap_is_supported(const struct doca_devinfo *devinfo)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_producer_cap_get_max_num_tasks(const struct doca_devinfo *devinfo, uint32_t *max_num_tasks)
{
	return report_limit(devinfo, soft_limits()->max_fast_tasks, max_num_tasks);
}

doca_error_t soft_doca_comch_producer_cap_get_max_buf_size(const struct doca_devinfo *devinfo, uint32_t *max_buf_size)
{
	return report_limit(devinfo, soft_limits()->max_fast_buf_size, max_buf_size);
}

doca_error_t soft_doca_comch_producer_cap_get_max_buf_list_len(const struct doca_devinfo *devinfo,
							       uint32_t *max_buf_list_len)
{
	return report_limit(devinfo, 1, max_buf_list_len);
}

doca_error_t soft_doca_comch_producer_cap_get_max_producers(const struct doca_devinfo *devinfo, uint32_t *max_producers)
{
	return report_limit(devinfo, soft_limits()->max_producers, max_producers);
}
