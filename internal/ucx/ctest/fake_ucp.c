/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_ucp.h"

#include <string.h>

_Thread_local struct fake fake;
uint8_t fake_memory[4096];

/* Handles that are never dereferenced. */
#define HANDLE(type, number) ((type)(uintptr_t)(0x1000 + (number)))
#define SENDER(number) HANDLE(ucp_ep_h, 16 + (number))

static ucs_status_t config_read(const char *prefix, const char *file, ucp_config_t **config)
{
	(void)prefix, (void)file;
	*config = HANDLE(ucp_config_t *, 1);
	return UCS_OK;
}

static ucs_status_t config_modify(ucp_config_t *config, const char *name, const char *value)
{
	(void)config, (void)value;
	return strcmp(name, "REFUSED") == 0 ? UCS_ERR_NO_ELEM : UCS_OK;
}

static void config_release(ucp_config_t *config)
{
	(void)config;
}

static ucs_status_t init(unsigned major, unsigned minor, const ucp_params_t *params, const ucp_config_t *config,
			 ucp_context_h *context)
{
	(void)major, (void)minor, (void)config;
	CHECK(params->mt_workers_shared == 1);
	*context = HANDLE(ucp_context_h, 2);
	return UCS_OK;
}

static void cleanup(ucp_context_h context)
{
	(void)context;
}

static ucs_status_t mem_map(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memory)
{
	(void)context;
	CHECK((params->prot & UCP_MEM_MAP_PROT_REMOTE_WRITE) == 0);
	CHECK(((params->flags & UCP_MEM_MAP_ALLOCATE) != 0) == (params->address == NULL));
	fake.mapped_memory++;
	*memory = HANDLE(ucp_mem_h, 3);
	return UCS_OK;
}

static ucs_status_t mem_query(const ucp_mem_h memory, ucp_mem_attr_t *attributes)
{
	(void)memory;
	if (fake.no_memory_attributes)
		return UCS_ERR_UNSUPPORTED;
	CHECK(attributes->field_mask & UCP_MEM_ATTR_FIELD_ADDRESS);
	attributes->address = fake_memory;
	return UCS_OK;
}

static ucs_status_t mem_unmap(ucp_context_h context, ucp_mem_h memory)
{
	(void)context, (void)memory;
	fake.mapped_memory--;
	return UCS_OK;
}

static ucs_status_t worker_create(ucp_context_h context, const ucp_worker_params_t *params, ucp_worker_h *worker)
{
	(void)context, (void)params;
	*worker = HANDLE(ucp_worker_h, 4);
	return UCS_OK;
}

static void worker_destroy(ucp_worker_h worker)
{
	(void)worker;
	fake.destroyed_workers++;
}

static ucs_status_t worker_get_efd(ucp_worker_h worker, int *fd)
{
	(void)worker;
	*fd = 0;
	return UCS_OK;
}

static unsigned worker_progress(ucp_worker_h worker)
{
	(void)worker;
	return 0;
}

static ucs_status_t worker_call(ucp_worker_h worker)
{
	(void)worker;
	return UCS_OK;
}

static ucs_status_t set_am_recv_handler(ucp_worker_h worker, const ucp_am_handler_param_t *param)
{
	(void)worker;
	CHECK(param->flags & UCP_AM_FLAG_WHOLE_MSG);
	fake.on_message = param->cb;
	fake.on_message_arg = param->arg;
	return UCS_OK;
}

/* ---- operations ---- */

static ucs_status_ptr_t answer(enum answer with, const ucp_request_param_t *param, void *buffer, size_t length)
{
	if (with == ANSWER_NOW)
		return NULL;
	if (with == ANSWER_ERROR)
		return UCS_STATUS_PTR(UCS_ERR_CONNECTION_RESET);
	for (int i = 0; i < REQUESTS; i++) {
		struct request *request = &fake.requests[i];
		if (request->pending)
			continue;
		*request = (struct request){.pending = true, .param = *param, .buffer = buffer, .length = length};
		return request;
	}
	CHECK(!"more requests than a test may have");
	return NULL;
}

static ucs_status_ptr_t get(ucp_ep_h ep, void *buffer, size_t count, uint64_t remote, ucp_rkey_h key,
			    const ucp_request_param_t *param)
{
	(void)ep, (void)remote, (void)key;
	return answer(fake.answer, param, buffer, count);
}

static ucs_status_ptr_t am_send(ucp_ep_h ep, unsigned id, const void *header, size_t header_length, const void *buffer,
				size_t count, const ucp_request_param_t *param)
{
	(void)ep, (void)header;
	CHECK(id == UCX_MESSAGE_ID && header_length == sizeof(struct ucx_header));
	return answer(fake.answer, param, (void *)buffer, count);
}

static ucs_status_ptr_t am_recv_data(ucp_worker_h worker, void *descriptor, void *buffer, size_t count,
				     const ucp_request_param_t *param)
{
	(void)worker;
	if (fake.answer == ANSWER_NOW)
		memcpy(buffer, descriptor, count);
	ucs_status_ptr_t request = answer(fake.answer, param, buffer, count);
	if (UCS_PTR_IS_PTR(request))
		((struct request *)request)->sender = fake.sender;
	return request;
}

static void request_free(void *request)
{
	((struct request *)request)->pending = false;
	fake.freed_requests++;
}

/* ---- endpoints ---- */

static ucs_status_t ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
	(void)worker;
	if (fake.no_peer_errors && params->err_mode == UCP_ERR_HANDLING_MODE_PEER)
		return UCS_ERR_UNREACHABLE;
	fake.on_failure = params->err_handler;
	*ep = HANDLE(ucp_ep_h, 5);
	return UCS_OK;
}

static ucs_status_ptr_t ep_flush(ucp_ep_h ep, const ucp_request_param_t *param)
{
	(void)ep;
	return answer(fake.flush_answer, param, NULL, 0);
}

static ucs_status_ptr_t close_sender(int sender)
{
	if (fake.failed_senders[sender] || fake.closed_senders[sender])
		return UCS_STATUS_PTR(UCS_ERR_NOT_CONNECTED);
	fake.closed_senders[sender] = true;
	for (int i = 0; i < REQUESTS && fake.close_answer == ANSWER_NOW; i++) {
		struct request *request = &fake.requests[i];
		if (request->pending && request->sender == sender)
			request->param.cb.recv_am(request, UCS_ERR_CANCELED, 0, request->param.user_data);
	}
	return NULL;
}

static ucs_status_ptr_t ep_close(ucp_ep_h ep, const ucp_request_param_t *param)
{
	fake.closed_endpoints++;
	fake.forced_endpoints += (param->flags & UCP_EP_CLOSE_FLAG_FORCE) != 0;
	for (int sender = 0; sender < FAKE_SENDERS; sender++)
		if (ep == SENDER(sender))
			return close_sender(sender);
	return answer(fake.close_answer, param, NULL, 0);
}

const struct ucp_library fake_ucp = {
	.ucp_config_read = config_read,
	.ucp_config_modify = config_modify,
	.ucp_config_release = config_release,
	.ucp_init_version = init,
	.ucp_cleanup = cleanup,
	.ucp_mem_map = mem_map,
	.ucp_mem_unmap = mem_unmap,
	.ucp_mem_query = mem_query,
	.ucp_worker_create = worker_create,
	.ucp_worker_destroy = worker_destroy,
	.ucp_worker_get_efd = worker_get_efd,
	.ucp_worker_progress = worker_progress,
	.ucp_worker_arm = worker_call,
	.ucp_worker_signal = worker_call,
	.ucp_worker_set_am_recv_handler = set_am_recv_handler,
	.ucp_am_recv_data_nbx = am_recv_data,
	.ucp_ep_create = ep_create,
	.ucp_ep_flush_nbx = ep_flush,
	.ucp_ep_close_nbx = ep_close,
	.ucp_get_nbx = get,
	.ucp_am_send_nbx = am_send,
	.ucp_request_free = request_free,
};

/* ---- for tests ---- */

void *fake_opened(struct ucx_opened o)
{
	CHECK(o.status == UCS_OK && o.object != NULL);
	return o.object;
}

struct ucx_context *fake_context(void)
{
	fake = (struct fake){0};
	return fake_opened(ucx_context_open(&fake_ucp, "TLS\0tcp\0", UCP_FEATURE_AM));
}

struct ucx_worker *fake_worker(struct ucx_context *context, uint32_t depth)
{
	return fake_opened(ucx_worker_open(context, depth));
}

struct request *fake_pending(void)
{
	for (int i = 0; i < REQUESTS; i++)
		if (fake.requests[i].pending)
			return &fake.requests[i];
	return NULL;
}

void fake_complete(struct request *request, ucs_status_t status)
{
	request->param.cb.send(request, status, request->param.user_data);
}

ucs_status_t fake_message(const void *header, size_t header_length, void *data, size_t length, bool rendezvous)
{
	void *copy = malloc(header_length);
	CHECK(copy != NULL || header_length == 0);
	if (header_length > 0)
		memcpy(copy, header, header_length);
	const ucp_am_recv_param_t param = {
		.recv_attr = (rendezvous ? UCP_AM_RECV_ATTR_FLAG_RNDV : 0) |
			     (fake.no_reply ? 0 : UCP_AM_RECV_ATTR_FIELD_REPLY_EP),
		.reply_ep = SENDER(fake.sender),
	};
	ucs_status_t status = fake.on_message(fake.on_message_arg, copy, header_length, data, length, &param);
	free(copy);
	return status;
}
