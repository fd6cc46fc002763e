//go:build ucx

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Active messages that arrive. Everything about them comes from the peer, or from anybody who can reach UCX's port.
 */
#include "worker.h"

#include <stdlib.h>
#include <string.h>

static ucs_status_t refuse(struct ucx_worker *worker, enum ucx_refusal why, uint64_t value)
{
	worker->refused = 1;
	ucx_worker_push(worker, (struct ucx_event){.kind = UCX_EVENT_REFUSED, .status = why, .tag = value});
	return UCS_OK;
}

static void arrive(struct ucx_slot *slot, ucs_status_t status, size_t length)
{
	__atomic_store_n(&slot->arrived, 1, __ATOMIC_RELEASE);
	ucx_worker_push(slot->worker, (struct ucx_event){.kind = UCX_EVENT_ARRIVED,
							 .status = status,
							 .tag = slot->number,
							 .length = status == UCS_OK ? length : 0});
}

/* Returns the slot of this number, or NULL. */
static struct ucx_slot *find(const struct ucx_worker *worker, uint32_t number)
{
	const struct ucx_slots *slots = &worker->slots;
	if (number < slots->first || (number - slots->first) % slots->step != 0)
		return NULL;
	uint32_t index = (number - slots->first) / slots->step;
	return index < slots->count ? &worker->slot[index] : NULL;
}

static uint8_t *address_of(const struct ucx_worker *worker, const struct ucx_slot *slot)
{
	return worker->slots.address + (size_t)(slot - worker->slot) * worker->slots.size;
}

static void on_received(void *request, ucs_status_t status, size_t length, void *data)
{
	struct ucx_slot *slot = data;
	slot->source = NULL;
	arrive(slot, status, length);
	slot->worker->ucp->ucp_request_free(request);
}

/* The data is still at the sender; UCX fetches it. It owns the descriptor from now on. */
static ucs_status_t fetch(struct ucx_slot *slot, ucp_ep_h source, void *descriptor, size_t length)
{
	struct ucx_worker *worker = slot->worker;
	size_t received = length;
	const ucp_request_param_t params = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMH |
				UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_RECV_INFO,
		.cb.recv_am = on_received,
		.user_data = slot,
		.memory_type = UCS_MEMORY_TYPE_HOST,
		.recv_info.length = &received,
		.memh = worker->slots.memory->handle,
	};
	ucs_status_ptr_t request = worker->ucp->ucp_am_recv_data_nbx(worker->handle, descriptor,
								     address_of(worker, slot), length, &params);
	if (UCS_PTR_IS_PTR(request))
		slot->source = source;
	else
		arrive(slot, UCS_PTR_RAW_STATUS(request), received);
	return UCS_INPROGRESS;
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
			       const ucp_am_recv_param_t *param)
{
	struct ucx_worker *worker = arg;
	struct ucx_header h;
	if (worker->refused)
		return UCS_OK;
	if (header_length != sizeof(h))
		return refuse(worker, UCX_REFUSED_HEADER, header_length);
	memcpy(&h, header, sizeof(h));
	if (h.token != worker->slots.token)
		return refuse(worker, UCX_REFUSED_TOKEN, 0);
	struct ucx_slot *slot = find(worker, h.slot);
	if (slot == NULL)
		return refuse(worker, UCX_REFUSED_SLOT, h.slot);
	if (__atomic_load_n(&slot->occupied, __ATOMIC_ACQUIRE))
		return refuse(worker, UCX_REFUSED_OCCUPIED, h.slot);
	if (length == 0 || length > worker->slots.size)
		return refuse(worker, UCX_REFUSED_LENGTH, length);
	const int fetched = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
	if (fetched && !(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP))
		return refuse(worker, UCX_REFUSED_REPLY, 0);
	__atomic_store_n(&slot->occupied, 1, __ATOMIC_RELAXED);
	if (fetched)
		return fetch(slot, param->reply_ep, data, length);
	memcpy(address_of(worker, slot), data, length);
	arrive(slot, UCS_OK, length);
	return UCS_OK;
}

static ucs_status_t allocate(struct ucx_worker *worker, const struct ucx_slots *slots)
{
	worker->slot = calloc(slots->count, sizeof(*worker->slot));
	if (worker->slot == NULL)
		return UCS_ERR_NO_MEMORY;
	for (uint32_t i = 0; i < slots->count; i++)
		worker->slot[i] = (struct ucx_slot){.worker = worker, .number = slots->first + i * slots->step};
	return ucx_worker_reserve(worker, slots->count + 1);
}

ucs_status_t ucx_worker_receive(struct ucx_worker *worker, struct ucx_slots slots)
{
	ucs_status_t status = allocate(worker, &slots);
	if (status != UCS_OK)
		return status;
	worker->slots = slots;
	ucx_memory_use(slots.memory);
	const ucp_am_handler_param_t params = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
			      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = UCX_MESSAGE_ID,
		.flags = UCP_AM_FLAG_WHOLE_MSG,
		.cb = on_message,
		.arg = worker,
	};
	return worker->ucp->ucp_worker_set_am_recv_handler(worker->handle, &params);
}

/* ---- closing ---- */

static int has_fetch(const struct ucx_worker *worker)
{
	for (uint32_t i = 0; i < worker->slots.count; i++)
		if (worker->slot[i].source != NULL)
			return 1;
	return 0;
}

/*
 * Closes the source of a slot by force, which ends all fetches from it. One that has failed cannot be closed, and what
 * is fetched from it ends when the worker is destroyed.
 */
static void stop_source(struct ucx_worker *worker, ucp_ep_h source)
{
	const ucp_request_param_t params = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};
	for (uint32_t i = 0; i < worker->slots.count; i++)
		worker->slot[i].stopping |= worker->slot[i].source == source;
	ucs_status_ptr_t request = worker->ucp->ucp_ep_close_nbx(source, &params);
	if (UCS_PTR_IS_PTR(request))
		worker->ucp->ucp_request_free(request);
	for (uint32_t i = 0; UCS_PTR_IS_ERR(request) && i < worker->slots.count; i++)
		if (worker->slot[i].source == source)
			worker->slot[i].source = NULL;
}

/* Progress calls until fetches have ended that were forced to. */
enum { STOP_LIMIT = 10000 };

/*
 * The destruction of a worker ends the process if UCX fetches something over an endpoint that has not failed. No
 * endpoint is closed twice, also if this is called again after it has returned UCS_ERR_BUSY.
 */
ucs_status_t ucx_worker_stop_fetches(struct ucx_worker *worker)
{
	worker->refused = 1;
	if (has_fetch(worker))
		ucx_memory_abandon(worker->slots.memory);
	for (uint32_t i = 0; i < worker->slots.count; i++)
		if (worker->slot[i].source != NULL && !worker->slot[i].stopping)
			stop_source(worker, worker->slot[i].source);
	for (int i = 0; i < STOP_LIMIT && has_fetch(worker); i++)
		worker->ucp->ucp_worker_progress(worker->handle);
	return has_fetch(worker) ? UCS_ERR_BUSY : UCS_OK;
}

ucs_status_t ucx_worker_post(struct ucx_worker *worker, uint32_t number)
{
	struct ucx_slot *slot = worker->slot == NULL ? NULL : find(worker, number);
	if (slot == NULL || !__atomic_load_n(&slot->arrived, __ATOMIC_ACQUIRE))
		return UCS_ERR_INVALID_PARAM;
	slot->arrived = 0;
	__atomic_store_n(&slot->occupied, 0, __ATOMIC_RELEASE);
	return UCS_OK;
}
