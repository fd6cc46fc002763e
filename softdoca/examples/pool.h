/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of one direction of a stream at one end: the blocks in flight, and buffers over them. */
#ifndef EXAMPLES_POOL_H
#define EXAMPLES_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <doca_buf_inventory.h>
#include <doca_dev.h>
#include <doca_mmap.h>

struct pool {
	uint8_t *blocks; /* BLOCKS_AT_ONCE of BLOCK_SIZE */
	struct doca_mmap *mmap;
	struct doca_buf_inventory *inventory; /* of as many buffers */
};

doca_error_t pool_create(struct doca_dev *dev, struct pool *pool);

/* All its buffers must have been released. */
void pool_destroy(struct pool *pool);

/* A buffer over one block, which counts as full, or as empty. */
doca_error_t pool_get_full(const struct pool *pool, size_t block, struct doca_buf **buf);
doca_error_t pool_get_empty(const struct pool *pool, size_t block, struct doca_buf **buf);

#endif
