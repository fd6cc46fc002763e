/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of buffers: equal pieces of a memory map, which code of a DPA takes by index. A buffer is the handle of its
 * array and its index in one number. An array ends with a stop, and its buffers also with their memory map.
 */
#include <stdlib.h>

#include "dpa.h"
#include "error.h"
#include "kernel.h"
#include "mapping.h"
#include "mmap.h"
#include "soft_dpa.h"

struct doca_buf_arr {
	struct soft_object object; /* while started */
	size_t count;
	size_t size; /* of a buffer */
	uint64_t offset;
	struct doca_mmap *mmap;
	struct doca_dpa *dpa;
	bool started;

	/* Set by start. */
	doca_dpa_dev_mmap_t mapping;
	uint64_t first; /* address */
};

/* ---- creation and destruction ---- */

static doca_error_t create(const struct doca_buf_arr *values, struct doca_buf_arr **buf_arr)
{
	struct doca_buf_arr *created = malloc(sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	*created = *values;
	*buf_arr = created;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_arr_create(size_t num_elem, struct doca_buf_arr **buf_arr)
{
	if (num_elem == 0 || num_elem > UINT32_MAX || buf_arr == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return create(&(struct doca_buf_arr){.count = num_elem}, buf_arr);
}

doca_error_t soft_doca_buf_arr_create_2_5(struct doca_mmap *mmap, struct doca_buf_arr **buf_arr)
{
	if (mmap == NULL || buf_arr == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return create(&(struct doca_buf_arr){.mmap = mmap}, buf_arr);
}

doca_error_t soft_doca_buf_arr_stop(struct doca_buf_arr *buf_arr)
{
	if (buf_arr == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!buf_arr->started)
		return DOCA_SUCCESS;
	soft_dpa_lock();
	soft_object_remove(&buf_arr->object);
	soft_dpa_unlock();
	soft_dpa_unuse(buf_arr->dpa);
	buf_arr->started = false;
	return DOCA_SUCCESS;
}

/* Stops it too. */
doca_error_t soft_doca_buf_arr_destroy(struct doca_buf_arr *buf_arr)
{
	doca_error_t result = soft_doca_buf_arr_stop(buf_arr);
	if (result == DOCA_SUCCESS)
		free(buf_arr);
	return result;
}

/* ---- configuration and start ---- */

static doca_error_t set_params(struct doca_buf_arr *buf_arr, size_t size, uint64_t offset)
{
	if (buf_arr->started)
		return DOCA_ERROR_BAD_STATE;
	buf_arr->size = size;
	buf_arr->offset = offset;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_arr_set_params(struct doca_buf_arr *buf_arr, struct doca_mmap *mmap, size_t elem_size,
					  uint64_t start_offset)
{
	if (buf_arr == NULL || mmap == NULL || elem_size == 0)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = set_params(buf_arr, elem_size, start_offset);
	if (result == DOCA_SUCCESS)
		buf_arr->mmap = mmap;
	return result;
}

doca_error_t soft_doca_buf_arr_set_params_2_5(struct doca_buf_arr *buf_arr, size_t elem_size, uint32_t num_elem,
					      uint64_t start_offset)
{
	if (buf_arr == NULL || elem_size == 0 || num_elem == 0)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = set_params(buf_arr, elem_size, start_offset);
	if (result == DOCA_SUCCESS)
		buf_arr->count = num_elem;
	return result;
}

doca_error_t soft_doca_buf_arr_set_target_dpa(struct doca_buf_arr *buf_arr, struct doca_dpa *dpa_handler)
{
	if (buf_arr == NULL || dpa_handler == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (buf_arr->started)
		return DOCA_ERROR_BAD_STATE;
	buf_arr->dpa = dpa_handler;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_arr_set_target_gpu(struct doca_buf_arr *buf_arr, struct doca_gpu *gpu_handler)
{
	(void)buf_arr;
	(void)gpu_handler;
	return DOCA_ERROR_NOT_SUPPORTED;
}

static bool fits(const struct doca_buf_arr *buf_arr)
{
	size_t len;
	return buf_arr->offset <= buf_arr->mmap->len && !__builtin_mul_overflow(buf_arr->count, buf_arr->size, &len) &&
	       len <= buf_arr->mmap->len - buf_arr->offset;
}

/* BAD_STATE also for a memory map that is not started, NO_MEMORY for one that is too small. */
doca_error_t soft_doca_buf_arr_start(struct doca_buf_arr *buf_arr)
{
	if (buf_arr == NULL || buf_arr->mmap == NULL || buf_arr->size == 0 || buf_arr->count == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (buf_arr->started || buf_arr->dpa == NULL || !soft_dpa_is_started(buf_arr->dpa))
		return DOCA_ERROR_BAD_STATE;
	doca_error_t result = soft_doca_mmap_dev_get_dpa_handle(buf_arr->mmap, buf_arr->dpa->dev, &buf_arr->mapping);
	if (result == DOCA_ERROR_NOT_FOUND)
		soft_detail("the memory map of an array of buffers does not have the device of its DPA");
	if (result != DOCA_SUCCESS)
		return result == DOCA_ERROR_NO_MEMORY ? result : DOCA_ERROR_BAD_STATE;
	if (!fits(buf_arr))
		return DOCA_ERROR_NO_MEMORY;
	buf_arr->first = (uintptr_t)buf_arr->mmap->addr + buf_arr->offset;
	buf_arr->started = true;
	soft_dpa_use(buf_arr->dpa);
	soft_dpa_lock();
	soft_object_add(&buf_arr->object, SOFT_OBJECT_BUF_ARRAY, buf_arr);
	soft_dpa_unlock();
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_arr_get_dpa_handle(const struct doca_buf_arr *buf_arr, doca_dpa_dev_buf_arr_t *dpa_buf_arr)
{
	if (buf_arr == NULL || dpa_buf_arr == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!buf_arr->started)
		return DOCA_ERROR_BAD_STATE;
	*dpa_buf_arr = buf_arr->object.handle;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_arr_get_gpu_handle(const struct doca_buf_arr *buf_arr, struct doca_gpu_buf_arr **gpu_buf_arr)
{
	(void)buf_arr;
	(void)gpu_buf_arr;
	return DOCA_ERROR_NOT_SUPPORTED;
}

/* ---- device functions ---- */

#define INDEX_BITS 32

/* Returns the array that has a buffer of that index; NULL: an error of the kernel. Under the lock. */
static const struct doca_buf_arr *find_array(struct soft_kernel *kernel, uint64_t handle, uint64_t index)
{
	const struct doca_buf_arr *array = soft_object_find(SOFT_OBJECT_BUF_ARRAY, handle);
	if (array != NULL && array->dpa == kernel->dpa && index < array->count)
		return array;
	soft_kernel_error(kernel, "buffer %llu is of no started array of this DPA", (unsigned long long)index);
	return NULL;
}

doca_dpa_dev_buf_t soft_doca_dpa_dev_buf_array_get_buf(doca_dpa_dev_buf_arr_t buf_arr, const uint64_t buf_idx)
{
	struct soft_kernel *kernel = soft_kernel_enter("doca_dpa_dev_buf_array_get_buf");
	if (kernel == NULL)
		return 0;
	bool found = find_array(kernel, buf_arr, buf_idx) != NULL;
	soft_kernel_leave(kernel);
	return found ? buf_arr << INDEX_BITS | buf_idx : 0;
}

/* The values of a buffer; all 0 for what is none. */
struct buf {
	struct soft_place place;
	size_t len;
	void *pointer;
};

/* want_pointer: it is an error if the memory cannot be accessed. */
static struct buf look_up(doca_dpa_dev_buf_t handle, const char *function, bool want_pointer)
{
	struct buf buf = {.len = 0};
	struct soft_kernel *kernel = soft_kernel_enter(function);
	if (kernel == NULL)
		return buf;
	uint64_t index = handle & UINT32_MAX;
	const struct doca_buf_arr *array = find_array(kernel, handle >> INDEX_BITS, index);
	if (array != NULL) {
		buf.place = (struct soft_place){array->mapping, array->first + index * array->size};
		buf.len = array->size;
		if (want_pointer)
			buf.pointer = soft_mapping_pointer(kernel->dpa, buf.place, buf.len);
	}
	if (array != NULL && want_pointer && buf.pointer == NULL)
		soft_kernel_error(kernel, "%s: the memory map has ended, or is an import that cannot be accessed",
				  function);
	soft_kernel_leave(kernel);
	return buf;
}

uintptr_t soft_doca_dpa_dev_buf_get_addr(doca_dpa_dev_buf_t buf)
{
	return look_up(buf, "doca_dpa_dev_buf_get_addr", false).place.addr;
}

uint64_t soft_doca_dpa_dev_buf_get_len(doca_dpa_dev_buf_t buf)
{
	return look_up(buf, "doca_dpa_dev_buf_get_len", false).len;
}

doca_dpa_dev_mmap_t soft_doca_dpa_dev_buf_get_mmap(doca_dpa_dev_buf_t buf)
{
	return look_up(buf, "doca_dpa_dev_buf_get_mmap", false).place.mmap;
}

doca_dpa_dev_uintptr_t soft_doca_dpa_dev_buf_get_external_ptr(doca_dpa_dev_buf_t buf)
{
	return (uintptr_t)look_up(buf, "doca_dpa_dev_buf_get_external_ptr", true).pointer;
}
