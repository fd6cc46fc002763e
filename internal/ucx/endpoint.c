//go:build ucx

/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "endpoint.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- opening ---- */

static void on_failure(void *arg, ucp_ep_h handle, ucs_status_t status)
{
	struct ucx_endpoint *endpoint = arg;
	(void)handle;
	if (endpoint->failed || endpoint->closing)
		return;
	endpoint->failed = 1;
	ucx_worker_push(endpoint->worker,
			(struct ucx_event){.kind = UCX_EVENT_FAILED, .status = status, .tag = endpoint->tag});
}

static ucs_status_t create(struct ucx_endpoint *endpoint, const void *address, ucp_err_handling_mode_t mode)
{
	const ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
			      UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.address = address,
		.err_mode = mode,
		.err_handler = {.cb = on_failure, .arg = endpoint},
	};
	endpoint->forcible = mode == UCP_ERR_HANDLING_MODE_PEER;
	return endpoint->worker->ucp->ucp_ep_create(endpoint->worker->handle, &params, &endpoint->handle);
}

/* Shared memory cannot report that the peer has failed, so a worker with nothing else refuses to be asked for it. */
static ucs_status_t connect_to(struct ucx_endpoint *endpoint, const void *address)
{
	ucs_status_t status = create(endpoint, address, UCP_ERR_HANDLING_MODE_PEER);
	if (status == UCS_ERR_UNREACHABLE || status == UCS_ERR_UNSUPPORTED)
		status = create(endpoint, address, UCP_ERR_HANDLING_MODE_NONE);
	return status;
}

struct ucx_opened ucx_endpoint_open(struct ucx_worker *worker, const void *address, uint64_t tag)
{
	ucs_status_t status = ucx_worker_reserve(worker, 1);
	if (status != UCS_OK)
		return (struct ucx_opened){status, NULL};
	struct ucx_endpoint *endpoint = calloc(1, sizeof(*endpoint));
	if (endpoint == NULL)
		return (struct ucx_opened){UCS_ERR_NO_MEMORY, NULL};
	*endpoint = (struct ucx_endpoint){.worker = worker, .tag = tag, .next = worker->endpoints};
	status = connect_to(endpoint, address);
	if (status != UCS_OK) {
		free(endpoint);
		return (struct ucx_opened){status, NULL};
	}
	worker->endpoints = endpoint;
	return (struct ucx_opened){UCS_OK, endpoint};
}

char *ucx_endpoint_describe(const struct ucx_endpoint *endpoint)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = endpoint->handle == NULL ? NULL : open_memstream(&text, &size);
	if (stream == NULL)
		return NULL;
	endpoint->worker->ucp->ucp_ep_print_info(endpoint->handle, stream);
	fclose(stream);
	return text;
}

/* ---- operations ---- */

static struct ucx_operation *begin(struct ucx_worker *worker, const struct ucx_transfer *transfer)
{
	struct ucx_operation *operation = worker->vacant;
	if (operation == NULL || worker->inflight == worker->depth)
		return NULL;
	worker->vacant = operation->next;
	worker->inflight++;
	operation->tag = transfer->tag;
	operation->memory = transfer->memory;
	operation->flush = NULL;
	ucx_memory_use(operation->memory);
	return operation;
}

static void end(struct ucx_operation *operation)
{
	ucx_memory_release(operation->memory);
	operation->memory = NULL;
	operation->next = operation->worker->vacant;
	operation->worker->vacant = operation;
}

static void complete(struct ucx_operation *operation, ucs_status_t status)
{
	ucx_worker_push(operation->worker,
			(struct ucx_event){.kind = UCX_EVENT_COMPLETED, .status = status, .tag = operation->tag});
	end(operation);
}

static void finish(struct ucx_operation *operation, ucs_status_t status);

static void on_completed(void *request, ucs_status_t status, void *data)
{
	struct ucx_operation *operation = data;
	const struct ucp_library *ucp = operation->worker->ucp;
	finish(operation, status);
	ucp->ucp_request_free(request);
}

/*
 * Ends an operation, a message when it has been sent. UCX reports it already when it has copied it: TCP may not have
 * taken all of it then, and the rest is sent only when the worker progresses, which its owner stops when nothing is in
 * flight.
 */
static void finish(struct ucx_operation *operation, ucs_status_t status)
{
	struct ucx_endpoint *endpoint = operation->flush;
	operation->flush = NULL;
	if (endpoint == NULL || status != UCS_OK || endpoint->failed || endpoint->closing) {
		complete(operation, status);
		return;
	}
	const ucp_request_param_t params = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = on_completed,
		.user_data = operation,
	};
	ucs_status_ptr_t request = endpoint->worker->ucp->ucp_ep_flush_nbx(endpoint->handle, &params);
	if (!UCS_PTR_IS_PTR(request))
		complete(operation, UCS_PTR_RAW_STATUS(request));
}

static ucp_request_param_t parameters(struct ucx_operation *operation)
{
	return (ucp_request_param_t){
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMH |
				UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.cb.send = on_completed,
		.user_data = operation,
		.memory_type = UCS_MEMORY_TYPE_HOST,
		.memh = operation->memory->handle,
	};
}

/* An operation that was not accepted adds no event. */
static int32_t posted(struct ucx_operation *operation, ucs_status_ptr_t request)
{
	if (UCS_PTR_IS_PTR(request))
		return UCS_OK;
	if (UCS_PTR_IS_ERR(request)) {
		operation->worker->inflight--;
		end(operation);
		return UCS_PTR_RAW_STATUS(request);
	}
	finish(operation, UCS_OK);
	return UCS_OK;
}

int32_t ucx_endpoint_get(struct ucx_endpoint *endpoint, struct ucx_transfer transfer, uint64_t remote, ucp_rkey_h key)
{
	struct ucx_operation *operation = begin(endpoint->worker, &transfer);
	if (operation == NULL)
		return UCX_QUEUE_FULL;
	ucp_request_param_t params = parameters(operation);
	return posted(operation, endpoint->worker->ucp->ucp_get_nbx(endpoint->handle, transfer.address, transfer.length,
								    remote, key, &params));
}

int32_t ucx_endpoint_send(struct ucx_endpoint *endpoint, struct ucx_transfer transfer, uint64_t token, uint32_t slot)
{
	struct ucx_operation *operation = begin(endpoint->worker, &transfer);
	if (operation == NULL)
		return UCX_QUEUE_FULL;
	operation->header = (struct ucx_header){.token = token, .slot = slot};
	operation->flush = transfer.length < FLUSHED_BELOW ? endpoint : NULL;
	ucp_request_param_t params = parameters(operation);
	params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
	params.flags = UCP_AM_SEND_FLAG_REPLY; /* with which the receiver can force a fetch to end */
	return posted(operation, endpoint->worker->ucp->ucp_am_send_nbx(endpoint->handle, UCX_MESSAGE_ID,
									&operation->header, sizeof(operation->header),
									transfer.address, transfer.length, &params));
}

/* ---- closing ---- */

static void on_flushed(void *request, ucs_status_t status, void *data)
{
	struct ucx_endpoint *endpoint = data;
	(void)status;
	endpoint->flushed = 1;
	endpoint->worker->ucp->ucp_request_free(request);
}

static void on_closed(void *request, ucs_status_t status, void *data)
{
	struct ucx_endpoint *endpoint = data;
	(void)status;
	endpoint->closed = 1;
	endpoint->handle = NULL;
	endpoint->worker->ucp->ucp_request_free(request);
}

static void flush(struct ucx_endpoint *endpoint)
{
	const ucp_request_param_t params = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = on_flushed,
		.user_data = endpoint,
	};
	endpoint->flushing = 1;
	ucs_status_ptr_t request = endpoint->worker->ucp->ucp_ep_flush_nbx(endpoint->handle, &params);
	if (!UCS_PTR_IS_PTR(request))
		endpoint->flushed = 1;
}

static ucs_status_t close_now(struct ucx_endpoint *endpoint, int force)
{
	const ucp_request_param_t params = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
		.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0,
		.cb.send = on_closed,
		.user_data = endpoint,
	};
	endpoint->closing = 1;
	ucs_status_ptr_t request = endpoint->worker->ucp->ucp_ep_close_nbx(endpoint->handle, &params);
	if (UCS_PTR_IS_PTR(request))
		return UCS_OK;
	endpoint->closed = 1;
	endpoint->handle = NULL;
	return UCS_PTR_RAW_STATUS(request);
}

ucs_status_t ucx_endpoint_close(struct ucx_endpoint *endpoint, int force)
{
	if (endpoint->closing)
		return UCS_OK;
	if (force && !endpoint->forcible)
		return UCS_ERR_UNSUPPORTED;
	if (force || endpoint->failed)
		(void)close_now(endpoint, endpoint->forcible);
	else if (!endpoint->flushing)
		flush(endpoint);
	return UCS_OK;
}

int ucx_endpoint_advance(struct ucx_endpoint *endpoint)
{
	if (endpoint->flushed && !endpoint->closing)
		(void)close_now(endpoint, endpoint->forcible && endpoint->failed);
	return endpoint->closed;
}
