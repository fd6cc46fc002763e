/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <stdlib.h>

#include <doca_error.h>

#include "block.h"
#include "memory.h"

static doca_error_t create_inventory(struct doca_buf_inventory **inventory)
{
	doca_error_t result = doca_buf_inventory_create(BLOCKS_AT_ONCE, inventory);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_buf_inventory_start(*inventory);
	if (result != DOCA_SUCCESS)
		doca_buf_inventory_destroy(*inventory);
	return result;
}

/* The fast path of Comch needs memory that the device may read and write, at either end. */
static doca_error_t map_blocks(struct doca_dev *dev, struct pool *pool)
{
	size_t size = (size_t)BLOCKS_AT_ONCE * BLOCK_SIZE;
	doca_error_t result = map_memory(dev, pool->blocks, size, DOCA_ACCESS_FLAG_PCI_READ_WRITE, &pool->mmap);
	if (result != DOCA_SUCCESS)
		return result;
	result = create_inventory(&pool->inventory);
	if (result != DOCA_SUCCESS)
		doca_mmap_destroy(pool->mmap);
	return result;
}

doca_error_t pool_create(struct doca_dev *dev, struct pool *pool)
{
	pool->blocks = malloc((size_t)BLOCKS_AT_ONCE * BLOCK_SIZE);
	if (pool->blocks == NULL)
		return DOCA_ERROR_NO_MEMORY;
	doca_error_t result = map_blocks(dev, pool);
	if (result != DOCA_SUCCESS)
		free(pool->blocks);
	return result;
}

/* The registration ends before the memory does. */
void pool_destroy(struct pool *pool)
{
	doca_buf_inventory_destroy(pool->inventory);
	doca_mmap_destroy(pool->mmap);
	free(pool->blocks);
}

doca_error_t pool_get_full(const struct pool *pool, size_t block, struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_data(pool->inventory, pool->mmap, pool->blocks + block * BLOCK_SIZE,
						  BLOCK_SIZE, buf);
}

doca_error_t pool_get_empty(const struct pool *pool, size_t block, struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_addr(pool->inventory, pool->mmap, pool->blocks + block * BLOCK_SIZE,
						  BLOCK_SIZE, buf);
}
