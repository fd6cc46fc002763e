/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DMA_COPY_SOFT_BUF_H
#define DMA_COPY_SOFT_BUF_H

#include <stdbool.h>

#include "doca_abi.h"

struct doca_buf {
	struct doca_buf_inventory *inventory;
	struct doca_mmap *mmap;
	uint8_t *head;
	size_t len;
	uint8_t *data;
	size_t data_len;
	uint16_t refcount;
	bool counted;           /* in the bufs of its memory map */
	struct doca_buf *next;  /* in its list, or in the inventory's free list */
	struct doca_buf *first; /* of its list; itself if alone or first */
	struct doca_buf *last;  /* valid in the first of a list */
};

/* Returns NULL if a task of a context on dev may use the buffer, otherwise the reason why not. */
const char *soft_buf_usage_error(const struct doca_buf *buf, const struct doca_dev *dev);

/* Returns the bytes that fit behind the data. Only for buffers without a usage error. */
size_t soft_buf_tailroom(const struct doca_buf *buf);

#endif
