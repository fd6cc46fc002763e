/* SPDX-License-Identifier: Apache-2.0 */
/* What needs RDMA, dma-buf or Windows. Arguments are checked first, as everywhere. */
#include "core.h"

doca_error_t soft_doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev, const void **export_desc,
					size_t *export_desc_len)
{
	return soft_unsupported(mmap != NULL && dev != NULL && export_desc != NULL && export_desc_len != NULL);
}

doca_error_t soft_doca_mmap_set_dmabuf_memrange(struct doca_mmap *mmap, int dmabuf_fd, void *addr, size_t dmabuf_offset,
						size_t len)
{
	(void)addr;
	(void)dmabuf_offset;
	return soft_unsupported(mmap != NULL && dmabuf_fd >= 0 && len > 0);
}

doca_error_t soft_doca_pe_set_notification_handle(struct doca_pe *pe, doca_notification_handle_t handle,
						  union doca_data completion_key)
{
	(void)handle;
	(void)completion_key;
	return soft_unsupported(pe != NULL);
}
