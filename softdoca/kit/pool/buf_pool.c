/* SPDX-License-Identifier: Apache-2.0 */
/* A pool is an inventory with an element for each piece of its memory; they belong together for ever. */
#include "doca_buf_pool.h"

#include <stdbool.h>
#include <stdlib.h>

#include "buf.h"
#include "mmap.h"
#include "soft.h"

struct doca_buf_pool {
	struct doca_buf_inventory *inventory;
	struct doca_buf *elements; /* of the inventory */
	struct doca_mmap *mmap;
	uint32_t num_elements;
	size_t element_size, alignment;
	union doca_data user_data;
	bool started;
};

/* Sets *first to the address of the first element, *stride to the distance between two. False: too little memory. */
static bool place(const struct doca_buf_pool *pool, uint8_t **first, size_t *stride)
{
	uintptr_t mask = pool->alignment - 1, start = (uintptr_t)pool->mmap->addr;
	size_t skipped = (-start) & mask, len = pool->mmap->len;
	*first = (uint8_t *)pool->mmap->addr + skipped;
	*stride = (pool->element_size + mask) & ~mask;
	return *stride >= pool->element_size && skipped <= len && pool->element_size <= len - skipped &&
	       (len - skipped - pool->element_size) / *stride >= pool->num_elements - 1;
}

static doca_error_t open_inventory(struct doca_buf_pool *pool)
{
	doca_error_t result = soft_doca_buf_inventory_create(pool->num_elements, &pool->inventory);
	if (result != DOCA_SUCCESS)
		return result;
	(void)soft_doca_buf_inventory_start(pool->inventory);
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_create(size_t num_elements, size_t element_size, const struct doca_mmap *mmap,
				  struct doca_buf_pool **buf_pool)
{
	if (num_elements == 0 || num_elements > UINT32_MAX || element_size == 0 || mmap == NULL || !mmap->has_range ||
	    buf_pool == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_buf_pool *pool = malloc(sizeof(*pool));
	if (pool == NULL)
		return DOCA_ERROR_NO_MEMORY;
	*pool = (struct doca_buf_pool){
		.mmap = (struct doca_mmap *)mmap, /* only its count of buffers changes */
		.num_elements = (uint32_t)num_elements,
		.element_size = element_size,
		.alignment = 1,
	};
	doca_error_t result = open_inventory(pool);
	if (result == DOCA_SUCCESS)
		*buf_pool = pool;
	else
		free(pool);
	return result;
}

doca_error_t doca_buf_pool_destroy(struct doca_buf_pool *buf_pool)
{
	if (buf_pool == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_doca_buf_inventory_destroy(buf_pool->inventory);
	if (result == DOCA_SUCCESS)
		free(buf_pool);
	return result;
}

doca_error_t doca_buf_pool_start(struct doca_buf_pool *buf_pool)
{
	uint8_t *first;
	size_t stride;
	if (buf_pool == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!buf_pool->mmap->started && buf_pool->mmap->import == NULL)
		return DOCA_ERROR_BAD_STATE;
	if (!place(buf_pool, &first, &stride))
		return DOCA_ERROR_INVALID_VALUE;
	buf_pool->started = true;
	return DOCA_SUCCESS;
}

static uint32_t num_free(const struct doca_buf_pool *pool)
{
	uint32_t count = 0;
	(void)soft_doca_buf_inventory_get_num_free_elements(pool->inventory, &count);
	return count;
}

doca_error_t doca_buf_pool_stop(struct doca_buf_pool *buf_pool)
{
	if (buf_pool == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (num_free(buf_pool) < buf_pool->num_elements)
		return DOCA_ERROR_IN_USE;
	buf_pool->started = false;
	return DOCA_SUCCESS;
}

/* The elements of an inventory are in one array, and handed out from its beginning. */
doca_error_t doca_buf_pool_buf_alloc(struct doca_buf_pool *buf_pool, struct doca_buf **buf)
{
	uint8_t *first;
	size_t stride;
	if (buf_pool == NULL || buf == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!buf_pool->started || !place(buf_pool, &first, &stride))
		return DOCA_ERROR_BAD_STATE;
	doca_error_t result = soft_doca_buf_inventory_buf_get_by_args(buf_pool->inventory, buf_pool->mmap, first,
								      buf_pool->element_size, first, 0, buf);
	if (result != DOCA_SUCCESS)
		return result == DOCA_ERROR_NO_MEMORY ? DOCA_ERROR_EMPTY : result;
	if (buf_pool->elements == NULL)
		buf_pool->elements = *buf;
	(*buf)->head = (*buf)->data = first + (size_t)(*buf - buf_pool->elements) * stride;
	return DOCA_SUCCESS;
}

static doca_error_t configurable(const struct doca_buf_pool *pool)
{
	if (pool == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return pool->started ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_set_user_data(struct doca_buf_pool *buf_pool, union doca_data user_data)
{
	doca_error_t result = configurable(buf_pool);
	if (result == DOCA_SUCCESS)
		buf_pool->user_data = user_data;
	return result;
}

doca_error_t doca_buf_pool_set_element_alignment(struct doca_buf_pool *buf_pool, size_t element_alignment)
{
	if (element_alignment == 0 || (element_alignment & (element_alignment - 1)) != 0)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = configurable(buf_pool);
	if (result == DOCA_SUCCESS)
		buf_pool->alignment = element_alignment;
	return result;
}

doca_error_t doca_buf_pool_get_num_elements(const struct doca_buf_pool *buf_pool, uint32_t *num_of_elements)
{
	if (buf_pool == NULL || num_of_elements == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*num_of_elements = buf_pool->num_elements;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_get_num_free_elements(const struct doca_buf_pool *buf_pool, uint32_t *num_of_free_elements)
{
	if (buf_pool == NULL || num_of_free_elements == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*num_of_free_elements = num_free(buf_pool);
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_get_user_data(const struct doca_buf_pool *buf_pool, union doca_data *user_data)
{
	if (buf_pool == NULL || user_data == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*user_data = buf_pool->user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_get_element_alignment(const struct doca_buf_pool *buf_pool, size_t *element_alignment)
{
	if (buf_pool == NULL || element_alignment == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*element_alignment = buf_pool->alignment;
	return DOCA_SUCCESS;
}
