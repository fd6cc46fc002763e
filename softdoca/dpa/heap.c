/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a DPA. Its addresses are addresses of this process, so that kernels can use them as pointers. */
#include <stdlib.h>
#include <string.h>

#include "dpa.h"
#include "error.h"
#include "soft_dpa.h"

/* As for any C type, and for vectors. */
#define ALIGNMENT 64

/* The content of new memory, because DOCA does not say that it is zeroed. */
#define UNINITIALIZED 0xa5

doca_error_t soft_doca_dpa_mem_alloc(struct doca_dpa *dpa, size_t size, doca_dpa_dev_uintptr_t *dev_ptr)
{
	if (dpa == NULL || dev_ptr == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*dev_ptr = 0;
	if (size == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (!soft_dpa_is_started(dpa))
		return DOCA_ERROR_BAD_STATE;
	struct soft_block *block = malloc(sizeof(*block));
	void *bytes = NULL;
	if (block == NULL || posix_memalign(&bytes, ALIGNMENT, size) != 0) {
		free(block);
		return DOCA_ERROR_NO_MEMORY;
	}
	memset(bytes, UNINITIALIZED, size);
	*block = (struct soft_block){.size = size, .bytes = bytes};
	soft_dpa_lock();
	LIST_INSERT_HEAD(&dpa->blocks, block, link);
	soft_dpa_unlock();
	*dev_ptr = (uintptr_t)bytes;
	return DOCA_SUCCESS;
}

static struct soft_block *find_block(const struct doca_dpa *dpa, uint64_t address)
{
	struct soft_block *block;
	LIST_FOREACH(block, &dpa->blocks, link)
	{
		uint64_t begin = (uintptr_t)block->bytes;
		if (address >= begin && address - begin < block->size)
			return block;
	}
	return NULL;
}

bool soft_dpa_has_memory(const struct doca_dpa *dpa, uint64_t address, size_t len)
{
	const struct soft_block *block = find_block(dpa, address);
	return block != NULL && len <= block->size - (address - (uintptr_t)block->bytes);
}

static void free_block(struct soft_block *block)
{
	LIST_REMOVE(block, link);
	free(block->bytes);
	free(block);
}

doca_error_t soft_doca_dpa_mem_free(struct doca_dpa *dpa, doca_dpa_dev_uintptr_t dev_ptr)
{
	if (dpa == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = DOCA_ERROR_BAD_STATE;
	soft_dpa_lock();
	if (dpa->started) {
		struct soft_block *block = find_block(dpa, dev_ptr);
		bool begins = block != NULL && dev_ptr == (uintptr_t)block->bytes;
		result = begins ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
		if (begins)
			free_block(block);
	}
	soft_dpa_unlock();
	return result;
}

void soft_dpa_free_memory(struct doca_dpa *dpa)
{
	while (!LIST_EMPTY(&dpa->blocks))
		free_block(LIST_FIRST(&dpa->blocks));
}

/* ---- copies between CPU and DPA ---- */

static doca_error_t check_range(struct doca_dpa *dpa, uint64_t address, const void *memory, size_t size)
{
	if (dpa == NULL || memory == NULL || size == 0)
		return DOCA_ERROR_INVALID_VALUE;
	soft_dpa_lock();
	bool started = dpa->started, inside = soft_dpa_has_memory(dpa, address, size);
	soft_dpa_unlock();
	if (!started)
		return DOCA_ERROR_BAD_STATE;
	if (inside)
		return DOCA_SUCCESS;
	soft_detail("the DPA has no allocation with these %zu bytes", size);
	return DOCA_ERROR_INVALID_VALUE;
}

doca_error_t soft_doca_dpa_h2d_memcpy(struct doca_dpa *dpa, doca_dpa_dev_uintptr_t dst_ptr, void *src_ptr, size_t size)
{
	doca_error_t result = check_range(dpa, dst_ptr, src_ptr, size);
	if (result == DOCA_SUCCESS)
		memcpy((void *)(uintptr_t)dst_ptr, src_ptr, size);
	return result;
}

doca_error_t soft_doca_dpa_d2h_memcpy(struct doca_dpa *dpa, void *dst_ptr, doca_dpa_dev_uintptr_t src_ptr, size_t size)
{
	doca_error_t result = check_range(dpa, src_ptr, dst_ptr, size);
	if (result == DOCA_SUCCESS)
		memcpy(dst_ptr, (const void *)(uintptr_t)src_ptr, size);
	return result;
}

doca_error_t soft_doca_dpa_memset(struct doca_dpa *dpa, doca_dpa_dev_uintptr_t dev_ptr, int value, size_t size)
{
	doca_error_t result = check_range(dpa, dev_ptr, dpa, size);
	if (result == DOCA_SUCCESS)
		memset((void *)(uintptr_t)dev_ptr, value, size);
	return result;
}
