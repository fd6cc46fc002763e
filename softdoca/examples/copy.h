/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_COPY_H
#define EXAMPLES_COPY_H

#include <stddef.h>

#include <doca_dev.h>
#include <doca_mmap.h>

/* One DMA copy of len bytes from `from` in one map to `to` in another, either of which may be another process's. */
struct copy {
	struct doca_mmap *from_mmap;
	void *from;
	struct doca_mmap *to_mmap;
	void *to;
	size_t len;
};

doca_error_t copy_run(struct doca_dev *dev, const struct copy *copy);

#endif
