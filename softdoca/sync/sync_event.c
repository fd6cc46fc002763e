/* SPDX-License-Identifier: Apache-2.0 */
/* Sync events: creation, configuration, start and stop, and what the device supports. */
#include "sync_event.h"

#include <stdlib.h>

#include "buf.h"
#include "dev.h"
#include "error.h"
#include "memory.h"
#include "mmap.h"
#include "remote.h"
#include "soft_sync.h"

/* ---- creation ---- */

struct doca_sync_event *soft_sync_new(void)
{
	struct doca_sync_event *event = calloc(1, sizeof(*event));
	if (event == NULL)
		return NULL;
	soft_ctx_init(&event->ctx, &soft_sync_class, NULL);
	pthread_mutex_init(&event->lock, NULL);
	event->job.run = soft_sync_execute_more;
	return event;
}

doca_error_t soft_doca_sync_event_create(struct doca_sync_event **event)
{
	if (event == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_sync_event *created = soft_sync_new();
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	*event = created;
	return DOCA_SUCCESS;
}

/* ---- destruction ---- */

static void release_dev(struct doca_dev *dev)
{
	if (dev != NULL)
		atomic_fetch_sub(&dev->users, 1);
}

static void release_buf(struct doca_sync_event *event)
{
	if (event->buf != NULL)
		soft_doca_buf_dec_refcount(event->buf, NULL);
	event->buf = NULL;
}

/* A thread that waits still reads the counter. */
static doca_error_t check_no_waiters(const struct doca_sync_event *event)
{
	if (atomic_load(&event->waiters) == 0)
		return DOCA_SUCCESS;
	soft_detail("a thread waits for the sync event");
	return DOCA_ERROR_IN_USE;
}

doca_error_t soft_doca_sync_event_destroy(struct doca_sync_event *event)
{
	if (event == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (event->ctx.state != DOCA_CTX_STATE_IDLE)
		return DOCA_ERROR_IN_USE;
	doca_error_t result = check_no_waiters(event);
	if (result == DOCA_SUCCESS)
		result = soft_sync_end_export(event);
	if (result == DOCA_SUCCESS)
		result = soft_ctx_fini(&event->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	if (event->import != NULL)
		soft_import_close(event->import);
	if (event->own_memory != NULL)
		memory_free(event->own_memory, sizeof(*event->counter));
	release_buf(event);
	release_dev(event->import_dev);
	release_dev(event->publisher.dev);
	release_dev(event->subscriber.dev);
	pthread_mutex_destroy(&event->lock);
	free(event);
	return DOCA_SUCCESS;
}

/* ---- configuration ---- */

bool soft_sync_running(const struct doca_sync_event *event)
{
	return event->started || event->ctx.state != DOCA_CTX_STATE_IDLE;
}

/* An import has its exporter's configuration. */
static doca_error_t configurable(const struct doca_sync_event *event)
{
	if (event == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (event->import != NULL)
		return DOCA_ERROR_NOT_PERMITTED;
	return soft_sync_running(event) ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

static doca_error_t add_location(const struct doca_sync_event *event, struct soft_sync_location *location,
				 enum soft_sync_place place, struct doca_dev *dev)
{
	doca_error_t result = configurable(event);
	if (result != DOCA_SUCCESS)
		return result;
	if (location->place != SOFT_SYNC_UNSET)
		return DOCA_ERROR_ALREADY_EXIST;
	*location = (struct soft_sync_location){.place = place, .dev = dev};
	if (dev != NULL)
		atomic_fetch_add(&dev->users, 1);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_sync_event_add_publisher_location_cpu(struct doca_sync_event *event, struct doca_dev *dev)
{
	if (event == NULL || dev == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return add_location(event, &event->publisher, SOFT_SYNC_CPU, dev);
}

doca_error_t soft_doca_sync_event_add_subscriber_location_cpu(struct doca_sync_event *event, struct doca_dev *dev)
{
	if (event == NULL || dev == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return add_location(event, &event->subscriber, SOFT_SYNC_CPU, dev);
}

doca_error_t soft_doca_sync_event_add_publisher_location_remote_pci(struct doca_sync_event *event)
{
	if (event == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return add_location(event, &event->publisher, SOFT_SYNC_REMOTE_PCI, NULL);
}

doca_error_t soft_doca_sync_event_add_subscriber_location_remote_pci(struct doca_sync_event *event)
{
	if (event == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return add_location(event, &event->subscriber, SOFT_SYNC_REMOTE_PCI, NULL);
}

/* The event is not running and not exported, so that nobody uses the memory it had. */
static void use_memory(struct doca_sync_event *event, void *addr, struct doca_buf *buf)
{
	release_buf(event);
	if (event->own_memory != NULL)
		memory_free(event->own_memory, sizeof(*event->counter));
	event->own_memory = NULL;
	event->counter = addr;
	event->buf = buf;
}

static bool is_aligned(const void *addr)
{
	return (uintptr_t)addr % sizeof(uint64_t) == 0;
}

doca_error_t soft_doca_sync_event_set_addr(struct doca_sync_event *event, uint64_t *addr)
{
	if (event == NULL || addr == NULL || !is_aligned(addr))
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = configurable(event);
	if (result == DOCA_SUCCESS)
		result = soft_sync_end_export(event);
	if (result == DOCA_SUCCESS)
		use_memory(event, addr, NULL);
	return result;
}

static doca_error_t check_buf(const struct doca_buf *buf)
{
	const uint32_t needed = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ |
				DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC;
	const char *reason = soft_buf_usage_error(buf, buf->mmap->devs[0]);
	if (reason != NULL || buf->first != buf || buf->next != NULL || !is_aligned(buf->data)) {
		soft_detail("buffer of a sync event refused: %s",
			    reason != NULL ? reason : "it is part of a list, or not aligned to 8 bytes");
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (buf->data_len != sizeof(uint64_t) || buf->mmap->import != NULL ||
	    (buf->mmap->permissions & needed) != needed)
		return DOCA_ERROR_NOT_PERMITTED;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_sync_event_set_doca_buf(struct doca_sync_event *event, struct doca_buf *buf)
{
	if (event == NULL || buf == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = configurable(event);
	if (result == DOCA_SUCCESS)
		result = check_buf(buf);
	if (result == DOCA_SUCCESS)
		result = soft_sync_end_export(event);
	if (result == DOCA_SUCCESS)
		result = soft_doca_buf_inc_refcount(buf, NULL);
	if (result == DOCA_SUCCESS)
		use_memory(event, buf->data, buf);
	return result;
}

/* ---- start and stop ---- */

/* The memory is a page of its own, so that an importer, who maps it, reaches nothing else. */
static doca_error_t provide_memory(struct doca_sync_event *event)
{
	if (event->counter != NULL)
		return DOCA_SUCCESS;
	event->own_memory = memory_alloc(sizeof(*event->counter));
	event->counter = event->own_memory;
	return event->counter != NULL ? DOCA_SUCCESS : DOCA_ERROR_NO_MEMORY;
}

doca_error_t soft_sync_ready(struct doca_sync_event *event)
{
	if (event->import != NULL)
		return DOCA_SUCCESS;
	if (event->publisher.place == SOFT_SYNC_UNSET || event->subscriber.place == SOFT_SYNC_UNSET) {
		soft_detail("a sync event needs a publisher and a subscriber location before it starts");
		return DOCA_ERROR_INVALID_VALUE;
	}
	doca_error_t result = soft_sync_end_export(event);
	return result == DOCA_SUCCESS ? provide_memory(event) : result;
}

doca_error_t soft_doca_sync_event_start(struct doca_sync_event *event)
{
	if (event == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (event->started || event->is_context)
		return DOCA_ERROR_BAD_STATE;
	doca_error_t result = soft_sync_ready(event);
	if (result == DOCA_SUCCESS)
		event->started = true;
	return result;
}

doca_error_t soft_doca_sync_event_stop(struct doca_sync_event *event)
{
	if (event == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!event->started)
		return DOCA_ERROR_BAD_STATE;
	doca_error_t result = check_no_waiters(event);
	if (result == DOCA_SUCCESS)
		result = soft_sync_end_export(event);
	if (result == DOCA_SUCCESS)
		event->started = false;
	return result;
}

/* From now on it can only be started as a context. */
struct doca_ctx *soft_doca_sync_event_as_ctx(struct doca_sync_event *event)
{
	if (event == NULL || event->started)
		return NULL;
	event->is_context = true;
	return &event->ctx;
}
