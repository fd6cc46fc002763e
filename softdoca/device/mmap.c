/* SPDX-License-Identifier: Apache-2.0 */
#include "mmap.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "config.h"
#include "dev.h"
#include "error.h"
#include "memory.h"
#include "remote.h"
#include "sizes.h"
#include "soft.h"

#define PCI_ACCESS ((uint32_t)(DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE))
#define ALL_ACCESS                                                                                                 \
	(PCI_ACCESS |                                                                                              \
	 (uint32_t)(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE | \
		    DOCA_ACCESS_FLAG_RDMA_ATOMIC | DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING))

/* ---- Creation ---- */

static struct doca_mmap *new_mmap(void)
{
	struct doca_mmap *mmap = calloc(1, sizeof(*mmap));
	if (mmap == NULL)
		return NULL;
	mmap->max_devs = SOFT_MMAP_MAX_DEVS;
	mmap->permissions = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE;
	return mmap;
}

doca_error_t soft_doca_mmap_create(struct doca_mmap **mmap)
{
	if (mmap == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_mmap *created = new_mmap();
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	*mmap = created;
	return DOCA_SUCCESS;
}

static void attach_dev(struct doca_mmap *mmap, struct doca_dev *dev)
{
	mmap->devs[mmap->num_devs++] = dev;
	atomic_fetch_add(&dev->users, 1);
}

static void adopt_import(struct doca_mmap *mmap, struct soft_import *import, const struct soft_range *range)
{
	mmap->import = import;
	mmap->addr = range->addr;
	mmap->len = range->len;
	mmap->has_range = true;
	mmap->permissions = range->permissions;
}

static doca_error_t import_from_other_side(const void *desc, size_t len, const struct doca_dev *dev,
					   struct soft_import **import, struct soft_range *range)
{
	doca_error_t result = soft_import_open(desc, len, import, range);
	if (result != DOCA_SUCCESS || range->of_dpu != (dev->info->side == SOFT_DPU))
		return result;
	soft_import_close(*import);
	soft_detail("memory is imported by the side that did not export it");
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t soft_doca_mmap_create_from_export(const union doca_data *user_data, const void *export_desc,
					       size_t export_desc_len, struct doca_dev *dev, struct doca_mmap **mmap)
{
	if (export_desc == NULL || export_desc_len == 0 || dev == NULL || mmap == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!soft_side_imports(dev->info->side))
		return DOCA_ERROR_NOT_SUPPORTED;
	struct doca_mmap *created = new_mmap();
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	struct soft_import *import;
	struct soft_range range;
	doca_error_t result = import_from_other_side(export_desc, export_desc_len, dev, &import, &range);
	if (result != DOCA_SUCCESS) {
		free(created);
		return result;
	}
	adopt_import(created, import, &range);
	attach_dev(created, dev);
	if (user_data != NULL)
		created->user_data = *user_data;
	*mmap = created;
	return DOCA_SUCCESS;
}

/* ---- Destruction ---- */

static bool in_use(const struct doca_mmap *mmap)
{
	return atomic_load(&mmap->bufs) > 0 || atomic_load(&mmap->shared) > 0;
}

/* DOCA returns NOT_PERMITTED if a registration cannot be ended. */
static doca_error_t revoke_access(struct doca_mmap *mmap)
{
	if (mmap->revoke_dpa != NULL)
		mmap->revoke_dpa(mmap);
	if (mmap->export != NULL && soft_export_close(mmap->export) != DOCA_SUCCESS)
		return DOCA_ERROR_NOT_PERMITTED;
	mmap->export = NULL;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_destroy(struct doca_mmap *mmap)
{
	if (mmap == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (in_use(mmap) || atomic_load(&mmap->consumers) > 0 || revoke_access(mmap) != DOCA_SUCCESS)
		return DOCA_ERROR_NOT_PERMITTED;
	if (mmap->import != NULL)
		soft_import_close(mmap->import);
	for (uint32_t i = 0; i < mmap->num_devs; i++)
		atomic_fetch_sub(&mmap->devs[i]->users, 1);
	/* The callback is only for memory that was registered. */
	if (mmap->free_cb != NULL && mmap->was_started)
		mmap->free_cb(mmap->addr, mmap->len, mmap->free_cookie);
	free(mmap);
	return DOCA_SUCCESS;
}

/* ---- Start and stop ---- */

/* A real driver pins pages for long, which file systems with write-back may refuse. */
static doca_error_t pin(const struct doca_mmap *mmap)
{
	struct memory_backing backing;
	if (soft_limits()->pin_files != 0 || !memory_find(mmap->addr, mmap->len, &backing) ||
	    backing.kind != MEMORY_FILE)
		return DOCA_SUCCESS;
	soft_detail("a file mapping cannot be pinned (limit pin_files is 0)");
	return DOCA_ERROR_DRIVER;
}

doca_error_t soft_doca_mmap_start(struct doca_mmap *mmap)
{
	if (mmap == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->import != NULL)
		return DOCA_ERROR_NOT_PERMITTED;
	if (mmap->started)
		return DOCA_ERROR_BAD_STATE;
	if (!mmap->has_range || (mmap->num_devs == 0 && mmap->dpa == NULL))
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = pin(mmap);
	if (result == DOCA_SUCCESS)
		mmap->started = mmap->was_started = true;
	return result;
}

doca_error_t soft_doca_mmap_stop(struct doca_mmap *mmap)
{
	if (mmap == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->import != NULL || in_use(mmap))
		return DOCA_ERROR_NOT_PERMITTED;
	if (!mmap->started)
		return DOCA_ERROR_BAD_STATE;
	doca_error_t result = revoke_access(mmap);
	if (result == DOCA_SUCCESS)
		mmap->started = false;
	return result;
}

/* ---- Devices ---- */

static uint32_t index_of_dev(const struct doca_mmap *mmap, const struct doca_dev *dev)
{
	uint32_t i = 0;
	while (i < mmap->num_devs && mmap->devs[i] != dev)
		i++;
	return i;
}

bool soft_mmap_has_dev(const struct doca_mmap *mmap, const struct doca_dev *dev)
{
	return index_of_dev(mmap, dev) < mmap->num_devs;
}

doca_error_t soft_doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev)
{
	if (mmap == NULL || dev == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->import != NULL || mmap->started || mmap->dpa != NULL)
		return DOCA_ERROR_NOT_PERMITTED;
	if (soft_mmap_has_dev(mmap, dev))
		return DOCA_ERROR_ALREADY_EXIST;
	if (mmap->num_devs >= mmap->max_devs)
		return DOCA_ERROR_NO_MEMORY;
	if (mmap->num_devs > 0 && mmap->devs[0]->info->side != dev->info->side) {
		soft_detail("a memory map has devices of the host or of the DPU, not of both");
		return DOCA_ERROR_NOT_PERMITTED;
	}
	attach_dev(mmap, dev);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev)
{
	if (mmap == NULL || dev == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->import != NULL || mmap->started)
		return DOCA_ERROR_NOT_PERMITTED;
	uint32_t i = index_of_dev(mmap, dev);
	if (i == mmap->num_devs)
		return DOCA_ERROR_NOT_FOUND;
	mmap->devs[i] = mmap->devs[--mmap->num_devs];
	atomic_fetch_sub(&dev->users, 1);
	return DOCA_SUCCESS;
}

/* ---- Export ---- */

/* The devices are of one side, so a second export, for any of them, returns the same descriptor. */
doca_error_t soft_doca_mmap_export_pci(struct doca_mmap *mmap, const struct doca_dev *dev, const void **export_desc,
				       size_t *export_desc_len)
{
	if (mmap == NULL || dev == NULL || export_desc == NULL || export_desc_len == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->import != NULL || !mmap->started || (mmap->permissions & PCI_ACCESS) == 0)
		return DOCA_ERROR_NOT_PERMITTED;
	if (!soft_mmap_has_dev(mmap, dev))
		return DOCA_ERROR_NOT_FOUND;
	if (!soft_side_exports(dev->info->side))
		return DOCA_ERROR_NOT_SUPPORTED;
	if (mmap->export == NULL) {
		struct soft_range range = {mmap->addr, mmap->len, mmap->permissions & PCI_ACCESS,
					   dev->info->side == SOFT_DPU};
		doca_error_t result = soft_export_open(&range, &mmap->export);
		if (result != DOCA_SUCCESS)
			return result;
	}
	soft_export_descriptor(mmap->export, export_desc, export_desc_len);
	return DOCA_SUCCESS;
}

/* ---- Properties ---- */

/* The properties of an import are its exporter's; other maps cannot change theirs while started. */
static doca_error_t changeable(const struct doca_mmap *mmap)
{
	if (mmap == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->import != NULL)
		return DOCA_ERROR_NOT_PERMITTED;
	return mmap->started ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_set_memrange(struct doca_mmap *mmap, void *addr, size_t len)
{
	if (addr == NULL || len == 0 || len > UINTPTR_MAX - (uintptr_t)addr)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = changeable(mmap);
	if (result != DOCA_SUCCESS)
		return result;
	if (mmap->has_range)
		return DOCA_ERROR_NOT_PERMITTED;
	mmap->addr = addr;
	mmap->len = len;
	mmap->has_range = true;
	return DOCA_SUCCESS;
}

/* Hardware refuses relaxed ordering for memory that is exported over PCI. */
static bool valid_permissions(uint32_t mask)
{
	bool exported = (mask & PCI_ACCESS) != 0;
	return (mask & ~ALL_ACCESS) == 0 && (mask & PCI_ACCESS) != PCI_ACCESS &&
	       !(exported && (mask & DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING) != 0);
}

doca_error_t soft_doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access_mask)
{
	if (!valid_permissions(access_mask))
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = changeable(mmap);
	if (result == DOCA_SUCCESS)
		mmap->permissions = access_mask;
	return result;
}

doca_error_t soft_doca_mmap_set_free_cb(struct doca_mmap *mmap, doca_mmap_memrange_free_cb_t *free_cb, void *opaque)
{
	if (free_cb == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = changeable(mmap);
	if (result != DOCA_SUCCESS)
		return result;
	mmap->free_cb = free_cb;
	mmap->free_cookie = opaque;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_set_user_data(struct doca_mmap *mmap, union doca_data user_data)
{
	doca_error_t result = changeable(mmap);
	if (result == DOCA_SUCCESS)
		mmap->user_data = user_data;
	return result;
}

/* Any number is accepted: there are fewer devices than SOFT_MMAP_MAX_DEVS. */
doca_error_t soft_doca_mmap_set_max_num_devices(struct doca_mmap *mmap, uint32_t max_num_devices)
{
	if (mmap == NULL || max_num_devices == 0 || max_num_devices < mmap->num_devs)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->import != NULL || mmap->was_started)
		return DOCA_ERROR_NOT_PERMITTED;
	mmap->max_devs = max_num_devices;
	return DOCA_SUCCESS;
}

/* Buffers may then be acquired and released on several threads, and destroying the map does not wait for them. */
doca_error_t soft_doca_mmap_enable_thread_safety(struct doca_mmap *mmap)
{
	if (mmap == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->started || mmap->import != NULL || atomic_load(&mmap->bufs) > 0)
		return DOCA_ERROR_NOT_PERMITTED;
	mmap->thread_safe = true;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_get_memrange(const struct doca_mmap *mmap, void **addr, size_t *len)
{
	if (mmap == NULL || addr == NULL || len == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!mmap->has_range)
		return DOCA_ERROR_BAD_STATE;
	*addr = mmap->addr;
	*len = mmap->len;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_get_user_data(const struct doca_mmap *mmap, union doca_data *user_data)
{
	if (mmap == NULL || user_data == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*user_data = mmap->user_data;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_get_max_num_devices(const struct doca_mmap *mmap, uint32_t *max_num_devices)
{
	if (mmap == NULL || max_num_devices == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_devices = mmap->max_devs;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_get_num_bufs(const struct doca_mmap *mmap, uint32_t *num_bufs)
{
	if (mmap == NULL || num_bufs == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*num_bufs = atomic_load(&mmap->bufs);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_get_exported(const struct doca_mmap *mmap, uint8_t *exported)
{
	if (mmap == NULL || exported == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*exported = mmap->export != NULL;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_get_from_export(const struct doca_mmap *mmap, uint8_t *from_export)
{
	if (mmap == NULL || from_export == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*from_export = mmap->import != NULL;
	return DOCA_SUCCESS;
}
