/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

/* ---- The host ---- */

/* For success and failure: the task has the status. */
static void on_waited(struct doca_sync_event_task_wait_eq *task, union doca_data task_user_data,
		      union doca_data ctx_user_data)
{
	(void)task_user_data;
	struct event *event = ctx_user_data.ptr;
	event->result = doca_task_get_status(doca_sync_event_task_wait_eq_as_doca_task(task));
	event->signalled = event->result == DOCA_SUCCESS;
	doca_task_free(doca_sync_event_task_wait_eq_as_doca_task(task));
}

static doca_error_t start(struct event *event, struct doca_dev *dev)
{
	struct doca_sync_event *sync_event = event->sync_event;
	struct doca_ctx *ctx = doca_sync_event_as_ctx(sync_event);
	doca_error_t result = doca_sync_event_add_publisher_location_remote_pci(sync_event);
	if (result == DOCA_SUCCESS)
		result = doca_sync_event_add_subscriber_location_cpu(sync_event, dev);
	if (result == DOCA_SUCCESS)
		result = doca_sync_event_task_wait_eq_set_conf(sync_event, on_waited, on_waited, 1);
	if (result == DOCA_SUCCESS)
		result = doca_pe_connect_ctx(event->engines->data, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = event});
	return result == DOCA_SUCCESS ? engines_start(event->engines, ctx) : result;
}

doca_error_t event_create(struct event *event, struct doca_dev *dev, const struct engines *engines)
{
	*event = (struct event){.engines = engines};
	doca_error_t result = doca_sync_event_create(&event->sync_event);
	if (result != DOCA_SUCCESS)
		return result;
	result = start(event, dev);
	if (result == DOCA_SUCCESS)
		result = doca_sync_event_export_to_remote_pci(event->sync_event, dev, &event->descriptor,
							      &event->descriptor_len);
	if (result != DOCA_SUCCESS)
		event_destroy(event);
	return result;
}

/* A wait that is not satisfied ends with an error, and its callback frees it. */
void event_destroy(struct event *event)
{
	engines_stop(event->engines, doca_sync_event_as_ctx(event->sync_event));
	doca_sync_event_destroy(event->sync_event);
}

doca_error_t event_expect(struct event *event, uint64_t value)
{
	struct doca_sync_event_task_wait_eq *task;
	union doca_data none = {.ptr = NULL};
	doca_error_t result =
		doca_sync_event_task_wait_eq_alloc_init(event->sync_event, value, UINT64_MAX, none, &task);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_task_submit(doca_sync_event_task_wait_eq_as_doca_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_sync_event_task_wait_eq_as_doca_task(task));
	return result;
}

/* ---- The DPU ---- */

doca_error_t event_signal(struct doca_dev *dev, const uint8_t *descriptor, size_t descriptor_len, uint64_t value)
{
	struct doca_sync_event *sync_event;
	doca_error_t result = doca_sync_event_create_from_export(dev, descriptor, descriptor_len, &sync_event);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_sync_event_start(sync_event);
	if (result == DOCA_SUCCESS)
		result = doca_sync_event_update_set(sync_event, value);
	doca_sync_event_destroy(sync_event);
	return result;
}
