/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export of a sync event from the host and its import on the DPU: the counter is exported memory of 8 bytes, which the
 * importer maps, because the copies by which it could reach other memory are not atomic.
 */
#include <string.h>

#include "buf.h"
#include "dev.h"
#include "error.h"
#include "memory.h"
#include "mmap.h"
#include "remote.h"
#include "soft_sync.h"
#include "sync_event.h"

#define SYNC_MAGIC 0x746e6576652d7973ull
#define SYNC_VERSION 1
#define COUNTER_SIZE sizeof(uint64_t)

/* ---- export ---- */

static doca_error_t check_exportable(const struct doca_sync_event *event)
{
	struct memory_backing backing;
	if (event->buf != NULL && (event->buf->mmap->permissions & DOCA_ACCESS_FLAG_PCI_READ_WRITE) == 0)
		return DOCA_ERROR_NOT_PERMITTED;
	if (memory_find((void *)event->counter, COUNTER_SIZE, &backing) && backing.kind == MEMORY_ANONYMOUS)
		return DOCA_SUCCESS;
	soft_detail("a sync event is exported by a shared mapping, and its counter is in private memory: %s",
		    event->own_memory != NULL ? "allow files of at least 8 bytes (ulimit -f)"
					      : "leave out doca_sync_event_set_addr and doca_sync_event_set_doca_buf");
	return DOCA_ERROR_NOT_SUPPORTED;
}

static void write_descriptor(struct doca_sync_event *event)
{
	const void *memory;
	size_t len;
	soft_export_descriptor(event->export, &memory, &len);
	event->descriptor = (struct soft_sync_descriptor){.magic = SYNC_MAGIC, .version = SYNC_VERSION};
	memcpy(&event->descriptor.memory, memory, sizeof(event->descriptor.memory));
}

static doca_error_t open_export(struct doca_sync_event *event, struct doca_dev *dev)
{
	struct soft_range range = {(void *)event->counter, COUNTER_SIZE, DOCA_ACCESS_FLAG_PCI_READ_WRITE, false};
	doca_error_t result = check_exportable(event);
	if (result == DOCA_SUCCESS)
		result = soft_export_open(&range, &event->export);
	if (result != DOCA_SUCCESS)
		return result;
	write_descriptor(event);
	event->export_dev = dev;
	atomic_fetch_add(&dev->users, 1);
	return DOCA_SUCCESS;
}

/* A second export, for any device, returns the same descriptor. */
doca_error_t soft_doca_sync_event_export_to_remote_pci(struct doca_sync_event *event, struct doca_dev *dev,
						       const uint8_t **data, size_t *sz)
{
	if (event == NULL || dev == NULL || data == NULL || sz == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (event->import != NULL)
		return DOCA_ERROR_NOT_PERMITTED;
	if (!soft_sync_running(event))
		return DOCA_ERROR_BAD_STATE;
	if (dev->info->side != SOFT_HOST)
		return DOCA_ERROR_NOT_SUPPORTED;
	doca_error_t result = event->export != NULL ? DOCA_SUCCESS : open_export(event, dev);
	if (result != DOCA_SUCCESS)
		return result;
	*data = (const uint8_t *)&event->descriptor;
	*sz = sizeof(event->descriptor);
	return DOCA_SUCCESS;
}

doca_error_t soft_sync_end_export(struct doca_sync_event *event)
{
	if (event->export == NULL)
		return DOCA_SUCCESS;
	doca_error_t result = soft_export_close(event->export);
	if (result != DOCA_SUCCESS)
		return result;
	event->export = NULL;
	explicit_bzero(&event->descriptor, sizeof(event->descriptor));
	atomic_fetch_sub(&event->export_dev->users, 1);
	event->export_dev = NULL;
	return DOCA_SUCCESS;
}

/* ---- import ---- */

static bool parse_descriptor(const uint8_t *data, size_t sz, struct soft_sync_descriptor *descriptor)
{
	if (sz != sizeof(*descriptor))
		return false;
	memcpy(descriptor, data, sizeof(*descriptor));
	return descriptor->magic == SYNC_MAGIC && descriptor->version == SYNC_VERSION && descriptor->reserved == 0;
}

/* The exporter is not trusted, so its memory must be what atomic operations need. */
static doca_error_t map_counter(struct doca_sync_event *event, const struct soft_range *range)
{
	uint8_t *mapping = soft_import_map(event->import);
	if (mapping != NULL && (uintptr_t)mapping % COUNTER_SIZE == 0 && range->len == COUNTER_SIZE &&
	    range->permissions == DOCA_ACCESS_FLAG_PCI_READ_WRITE) {
		event->counter = (_Atomic uint64_t *)(void *)mapping;
		return DOCA_SUCCESS;
	}
	soft_detail("the sync event cannot be imported: its counter cannot be mapped");
	return DOCA_ERROR_DRIVER;
}

static doca_error_t import_counter(struct doca_sync_event *event, const struct remote_descriptor *memory)
{
	struct soft_range range;
	doca_error_t result = soft_import_open(memory, sizeof(*memory), &event->import, &range);
	return result == DOCA_SUCCESS ? map_counter(event, &range) : result;
}

doca_error_t soft_doca_sync_event_create_from_export(struct doca_dev *dev, const uint8_t *data, size_t sz,
						     struct doca_sync_event **event)
{
	if (dev == NULL || data == NULL || event == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (dev->info->side != SOFT_DPU)
		return DOCA_ERROR_NOT_SUPPORTED;
	struct soft_sync_descriptor descriptor;
	if (!parse_descriptor(data, sz, &descriptor)) {
		soft_detail("this is not the descriptor of a sync event of the software device");
		return DOCA_ERROR_INVALID_VALUE;
	}
	struct doca_sync_event *created = soft_sync_new();
	doca_error_t result = created == NULL ? DOCA_ERROR_NO_MEMORY : import_counter(created, &descriptor.memory);
	explicit_bzero(&descriptor, sizeof(descriptor));
	if (result == DOCA_SUCCESS) {
		created->import_dev = dev;
		atomic_fetch_add(&dev->users, 1);
		*event = created;
	} else if (created != NULL) {
		soft_doca_sync_event_destroy(created);
	}
	return result;
}

/* ---- what the device supports: events leave the host and arrive on the DPU, as memory maps do ---- */

static doca_error_t supported_on(const struct doca_devinfo *devinfo, enum soft_side side)
{
	if (devinfo == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return devinfo->side == side ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t soft_doca_sync_event_cap_is_export_to_remote_pci_supported(const struct doca_devinfo *devinfo)
{
	return supported_on(devinfo, SOFT_HOST);
}

doca_error_t soft_doca_sync_event_cap_is_create_from_export_supported(const struct doca_devinfo *devinfo)
{
	return supported_on(devinfo, SOFT_DPU);
}
