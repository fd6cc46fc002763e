//go:build ucx

/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"
#include "quiet.h"

#include <stdlib.h>

/* ---- events ---- */

/* Everything that adds an event has reserved its place. */
void ucx_worker_push(struct ucx_worker *worker, struct ucx_event event)
{
	worker->events[worker->head++ % worker->capacity] = event;
}

ucs_status_t ucx_worker_reserve(struct ucx_worker *worker, uint32_t more)
{
	struct ucx_event *events = calloc(worker->capacity + more, sizeof(*events));
	if (events == NULL)
		return UCS_ERR_NO_MEMORY;
	uint32_t count = 0;
	while (worker->tail != worker->head)
		events[count++] = worker->events[worker->tail++ % worker->capacity];
	free(worker->events);
	worker->events = events;
	worker->capacity += more;
	worker->tail = 0;
	worker->head = count;
	return UCS_OK;
}

/* ---- opening ---- */

static ucs_status_t allocate(struct ucx_worker *worker)
{
	worker->operations = calloc(worker->depth, sizeof(*worker->operations));
	if (worker->operations == NULL)
		return UCS_ERR_NO_MEMORY;
	for (uint32_t i = 0; i < worker->depth; i++) {
		struct ucx_operation *operation = &worker->operations[i];
		*operation = (struct ucx_operation){.worker = worker, .next = worker->vacant};
		worker->vacant = operation;
	}
	return ucx_worker_reserve(worker, worker->depth);
}

static ucs_status_t create(struct ucx_worker *worker, ucp_context_h context)
{
	const ucp_worker_params_t params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS,
		.thread_mode = UCS_THREAD_MODE_SERIALIZED,
		.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK,
	};
	sigset_t before = signals_block();
	ucs_status_t status = worker->ucp->ucp_worker_create(context, &params, &worker->handle);
	signals_restore(&before);
	if (status != UCS_OK)
		return status;
	return worker->ucp->ucp_worker_get_efd(worker->handle, &worker->descriptor);
}

static void release(struct ucx_worker *worker)
{
	if (worker->slots.memory != NULL)
		ucx_memory_release(worker->slots.memory);
	free(worker->slot);
	free(worker->events);
	free(worker->operations);
	free(worker);
}

struct ucx_opened ucx_worker_open(const struct ucx_context *context, uint32_t depth)
{
	struct ucx_worker *worker = calloc(1, sizeof(*worker));
	if (worker == NULL)
		return (struct ucx_opened){UCS_ERR_NO_MEMORY, NULL};
	*worker = (struct ucx_worker){.ucp = context->ucp, .depth = depth};
	ucs_status_t status = allocate(worker);
	if (status == UCS_OK)
		status = create(worker, context->handle);
	if (status == UCS_OK)
		return (struct ucx_opened){UCS_OK, worker};
	if (worker->handle != NULL)
		worker->ucp->ucp_worker_destroy(worker->handle);
	release(worker);
	return (struct ucx_opened){status, NULL};
}

/* ---- use ---- */

/* The number of progress calls of one poll, so that a busy worker returns to its owner. */
enum { PROGRESS_LIMIT = 64 };

static uint32_t pending(const struct ucx_worker *worker)
{
	return (uint32_t)(worker->head - worker->tail);
}

uint32_t ucx_worker_poll(struct ucx_worker *worker, struct ucx_event *events, uint32_t max)
{
	worker->unfinished = 1;
	for (int i = 0; i < PROGRESS_LIMIT && (max == 0 || pending(worker) < max); i++)
		if (worker->ucp->ucp_worker_progress(worker->handle) == 0) {
			worker->unfinished = 0;
			break;
		}
	uint32_t count = 0;
	while (count < max && pending(worker) > 0) {
		events[count] = worker->events[worker->tail++ % worker->capacity];
		if (events[count].kind == UCX_EVENT_COMPLETED)
			worker->inflight--;
		count++;
	}
	return count;
}

/* ---- closing ---- */

static int has_forcible(const struct ucx_worker *worker)
{
	for (const struct ucx_endpoint *e = worker->endpoints; e != NULL; e = e->next)
		if (e->forcible && !e->closed)
			return 1;
	return 0;
}

static void release_operations(struct ucx_worker *worker)
{
	for (uint32_t i = 0; i < worker->depth; i++) {
		struct ucx_memory *memory = worker->operations[i].memory;
		if (memory == NULL)
			continue;
		ucx_memory_abandon(memory);
		ucx_memory_release(memory);
	}
}

static void free_endpoints(struct ucx_worker *worker)
{
	while (worker->endpoints != NULL) {
		struct ucx_endpoint *next = worker->endpoints->next;
		free(worker->endpoints);
		worker->endpoints = next;
	}
}

/* With the worker, UCX's connections are destroyed, so nothing reads or writes memory for them any more. */
ucs_status_t ucx_worker_close(struct ucx_worker *worker)
{
	if (has_forcible(worker))
		return UCS_ERR_BUSY;
	ucs_status_t status = ucx_worker_stop_fetches(worker);
	if (status != UCS_OK)
		return status;
	worker->ucp->ucp_worker_destroy(worker->handle);
	release_operations(worker);
	free_endpoints(worker);
	release(worker);
	return UCS_OK;
}
