/* SPDX-License-Identifier: Apache-2.0 */
#include "mapping.h"

#include <stdlib.h>

#include "config.h"
#include "copy.h"
#include "error.h"
#include "kernel.h"
#include "mmap.h"
#include "remote.h"
#include "soft_dpa.h"
#include "window.h"

/* A memory map with a handle for one device; its memory lives as long as the handle. */
struct mapping {
	struct soft_object object;
	LIST_ENTRY(mapping) link;
	const struct doca_mmap *mmap;
	const struct doca_dev *dev;
	struct soft_window *window; /* of an import that cannot be mapped, once code of the DPA has asked */
};

static LIST_HEAD(, mapping) mappings = LIST_HEAD_INITIALIZER(mappings); /* under the lock */

/* ---- handles ---- */

static struct mapping *find_mapping(const struct doca_mmap *mmap, const struct doca_dev *dev)
{
	struct mapping *mapping;
	LIST_FOREACH(mapping, &mappings, link)
	{
		if (mapping->mmap == mmap && mapping->dev == dev)
			return mapping;
	}
	return NULL;
}

/* The handles of a map end with it. A copy holds the lock, so none is in progress. */
static void revoke(const struct doca_mmap *mmap)
{
	struct mapping *mapping, *next;
	soft_dpa_lock();
	for (mapping = LIST_FIRST(&mappings); mapping != NULL; mapping = next) {
		next = LIST_NEXT(mapping, link);
		if (mapping->mmap != mmap)
			continue;
		LIST_REMOVE(mapping, link);
		soft_object_remove(&mapping->object);
		soft_window_close(mapping->window);
		free(mapping);
	}
	soft_dpa_unlock();
}

/* A map does not keep its DPA from being destroyed. */
static bool is_of_dpa(const struct doca_mmap *mmap, const struct doca_dev *dev)
{
	soft_dpa_lock();
	bool same = mmap->dpa != NULL && soft_object_exists(SOFT_OBJECT_DPA, mmap->dpa) && mmap->dpa->dev == dev;
	soft_dpa_unlock();
	return same;
}

/* A second call for the same map and device returns the same handle. */
doca_error_t soft_doca_mmap_dev_get_dpa_handle(struct doca_mmap *mmap, const struct doca_dev *dev,
					       doca_dpa_dev_mmap_t *dpa_mmap_handle)
{
	if (mmap == NULL || dev == NULL || dpa_mmap_handle == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->import == NULL && !mmap->started)
		return DOCA_ERROR_NOT_PERMITTED;
	if (!soft_mmap_has_dev(mmap, dev) && !is_of_dpa(mmap, dev))
		return DOCA_ERROR_NOT_FOUND;
	struct mapping *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	*created = (struct mapping){.mmap = mmap, .dev = dev};
	soft_dpa_lock();
	struct mapping *mapping = find_mapping(mmap, dev);
	if (mapping == NULL) {
		mapping = created;
		soft_object_add(&created->object, SOFT_OBJECT_MMAP, created);
		LIST_INSERT_HEAD(&mappings, created, link);
		created = NULL;
	}
	*dpa_mmap_handle = mapping->object.handle;
	soft_dpa_unlock();
	free(created);
	mmap->revoke_dpa = revoke;
	return DOCA_SUCCESS;
}

/* Memory of the DPA is for its own device, so no other can be added. */
doca_error_t soft_doca_mmap_set_dpa_memrange(struct doca_mmap *mmap, struct doca_dpa *dpa, uint64_t dpa_addr,
					     size_t len)
{
	if (mmap == NULL || dpa == NULL || len == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->import != NULL || mmap->has_range || mmap->num_devs > 0)
		return DOCA_ERROR_NOT_PERMITTED;
	soft_dpa_lock();
	bool inside = soft_dpa_has_memory(dpa, dpa_addr, len);
	soft_dpa_unlock();
	if (!inside)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_doca_mmap_set_memrange(mmap, (void *)(uintptr_t)dpa_addr, len);
	if (result == DOCA_SUCCESS)
		mmap->dpa = dpa;
	return result;
}

/* ---- copies ---- */

static struct mapping *find_handle(const struct doca_dpa *dpa, doca_dpa_dev_mmap_t handle)
{
	struct mapping *mapping = soft_object_find(SOFT_OBJECT_MMAP, handle);
	return mapping != NULL && mapping->dev == dpa->dev ? mapping : NULL;
}

static const struct doca_mmap *find_mmap(const struct doca_dpa *dpa, doca_dpa_dev_mmap_t handle)
{
	const struct mapping *mapping = find_handle(dpa, handle);
	return mapping == NULL ? NULL : mapping->mmap;
}

static bool covers(const struct doca_mmap *mmap, const struct doca_dpa *dpa, uint64_t addr, size_t len)
{
	uint64_t begin = (uintptr_t)mmap->addr;
	if (addr < begin || addr - begin > mmap->len || len > mmap->len - (addr - begin))
		return false;
	return mmap->dpa == NULL || (mmap->dpa == dpa && soft_dpa_has_memory(dpa, addr, len));
}

/* The exporter's permissions decide over an import. */
static bool is_writable(const struct doca_mmap *mmap)
{
	uint32_t needed = mmap->import == NULL ? DOCA_ACCESS_FLAG_LOCAL_READ_WRITE : DOCA_ACCESS_FLAG_PCI_READ_WRITE;
	return (mmap->permissions & needed) != 0;
}

static const char *copy_error(const struct doca_dpa *dpa, struct soft_place to, struct soft_place from, size_t len)
{
	const struct doca_mmap *target = find_mmap(dpa, to.mmap), *source = find_mmap(dpa, from.mmap);
	if (target == NULL || source == NULL)
		return "a handle is of no started memory map of the DPA's device";
	if (len == 0)
		return "there is nothing to copy";
	if (!covers(target, dpa, to.addr, len))
		return "the destination is not within its memory map";
	if (!covers(source, dpa, from.addr, len))
		return "the source is not within its memory map";
	if (!is_writable(target))
		return "the permissions of the destination's memory map do not allow writing";
	if (target->import != NULL && source->import != NULL)
		return "source and destination are both imported";
	bool both_local = target->import == NULL && source->import == NULL;
	return both_local && to.addr < from.addr + len && from.addr < to.addr + len ? "source and destination overlap"
										    : NULL;
}

const char *soft_mapping_copy(const struct doca_dpa *dpa, struct soft_place to, struct soft_place from, size_t len)
{
	const char *reason = copy_error(dpa, to, from, len);
	if (reason != NULL || soft_limits()->move_bytes == 0)
		return reason;
	const struct doca_mmap *target = find_mmap(dpa, to.mmap), *source = find_mmap(dpa, from.mmap);
	void *destination = (void *)(uintptr_t)to.addr, *bytes = (void *)(uintptr_t)from.addr;
	doca_error_t result;
	if (source->import != NULL)
		result = soft_import_read(source->import, destination, bytes, len);
	else if (target->import != NULL)
		result = soft_import_write(target->import, destination, bytes, len);
	else
		result = soft_copy_local(destination, bytes, len);
	return result == DOCA_SUCCESS ? NULL : "the memory could not be accessed";
}

/* ---- loads and stores ---- */

/*
 * Returns where the memory of an import begins here. It stays there until the import is destroyed, also if its exporter
 * has ended the access: loads and stores ask nobody. NULL: it cannot be accessed.
 */
static uint8_t *map_import(struct mapping *mapping)
{
	const struct doca_mmap *mmap = mapping->mmap;
	uint8_t *mapped = soft_import_map(mmap->import);
	if (mapped != NULL)
		return mapped;
	if (mapping->window == NULL)
		mapping->window = soft_window_open(mmap->import, mmap->addr, mmap->len);
	return mapping->window == NULL ? NULL : soft_window_bytes(mapping->window);
}

void *soft_mapping_pointer(const struct doca_dpa *dpa, struct soft_place place, size_t len)
{
	struct mapping *mapping = find_handle(dpa, place.mmap);
	if (mapping == NULL || !covers(mapping->mmap, dpa, place.addr, len))
		return NULL;
	if (mapping->mmap->import == NULL)
		return (void *)(uintptr_t)place.addr;
	uint8_t *mapped = map_import(mapping);
	return mapped == NULL ? NULL : mapped + (place.addr - (uintptr_t)mapping->mmap->addr);
}

doca_dpa_dev_uintptr_t soft_doca_dpa_dev_mmap_get_external_ptr(doca_dpa_dev_mmap_t mmap_handle, uint64_t addr)
{
	struct soft_kernel *kernel = soft_kernel_enter("doca_dpa_dev_mmap_get_external_ptr");
	if (kernel == NULL)
		return 0;
	void *pointer = soft_mapping_pointer(kernel->dpa, (struct soft_place){mmap_handle, addr}, 1);
	if (pointer == NULL)
		soft_kernel_error(kernel, "doca_dpa_dev_mmap_get_external_ptr of an address that is in no started "
					  "memory map, or in an import that cannot be accessed");
	soft_kernel_leave(kernel);
	return (uintptr_t)pointer;
}

/* Calls function for each window of the DPA's device. False: one could not be accessed. */
static bool for_windows(const struct doca_dpa *dpa, bool (*function)(struct soft_window *window, bool *changed),
			bool *changed)
{
	const struct mapping *mapping;
	bool accessed = true;
	LIST_FOREACH(mapping, &mappings, link)
	{
		if (mapping->window != NULL && mapping->dev == dpa->dev)
			accessed &= function(mapping->window, changed);
	}
	return accessed;
}

/* A kernel that polls memory calls this, so it yields the CPU as one that polls completions. */
void soft_doca_dpa_dev_kit_window_read_inv(void)
{
	bool changed = false;
	struct soft_kernel *kernel = soft_kernel_enter("__dpa_thread_window_read_inv");
	if (kernel == NULL)
		return;
	if (!for_windows(kernel->dpa, soft_window_fetch, &changed))
		soft_kernel_error(kernel, "__dpa_thread_window_read_inv: imported memory can no longer be read");
	soft_kernel_leave_poll(kernel, changed);
}

static bool write_back(struct soft_window *window, bool *changed)
{
	(void)changed;
	return soft_window_write_back(window);
}

void soft_doca_dpa_dev_kit_window_writeback(void)
{
	struct soft_kernel *kernel = soft_kernel_enter("__dpa_thread_window_writeback");
	if (kernel == NULL)
		return;
	if (!for_windows(kernel->dpa, write_back, NULL))
		soft_kernel_error(kernel, "__dpa_thread_window_writeback: imported memory cannot be written");
	soft_kernel_leave(kernel);
}
