/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <doca_error.h>

doca_error_t map_memory(struct doca_dev *dev, void *addr, size_t len, uint32_t permissions, struct doca_mmap **mmap)
{
	struct doca_mmap *created;
	doca_error_t result = doca_mmap_create(&created);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_mmap_set_memrange(created, addr, len);
	if (result == DOCA_SUCCESS)
		result = doca_mmap_add_dev(created, dev);
	if (result == DOCA_SUCCESS)
		result = doca_mmap_set_permissions(created, permissions);
	if (result == DOCA_SUCCESS)
		result = doca_mmap_start(created);
	if (result != DOCA_SUCCESS) {
		doca_mmap_destroy(created);
		return result;
	}
	*mmap = created;
	return DOCA_SUCCESS;
}
