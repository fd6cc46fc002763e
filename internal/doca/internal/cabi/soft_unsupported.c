/* SPDX-License-Identifier: Apache-2.0 */
/* What needs RDMA, a GPU, the DPA, dma-buf or Windows. Arguments are checked first, as everywhere. */
#include "soft_core.h"

static doca_error_t unsupported(bool valid)
{
	return valid ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t soft_doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev, const void **export_desc,
					size_t *export_desc_len)
{
	return unsupported(mmap != NULL && dev != NULL && export_desc != NULL && export_desc_len != NULL);
}

doca_error_t soft_doca_mmap_dev_get_dpa_handle(struct doca_mmap *mmap, const struct doca_dev *dev,
					       doca_dpa_dev_mmap_t *dpa_mmap_handle)
{
	return unsupported(mmap != NULL && dev != NULL && dpa_mmap_handle != NULL);
}

doca_error_t soft_doca_mmap_set_dmabuf_memrange(struct doca_mmap *mmap, int dmabuf_fd, void *addr, size_t dmabuf_offset,
						size_t len)
{
	(void)addr;
	(void)dmabuf_offset;
	return unsupported(mmap != NULL && dmabuf_fd >= 0 && len > 0);
}

doca_error_t soft_doca_mmap_set_dpa_memrange(struct doca_mmap *mmap, struct doca_dpa *dpa, uint64_t dpa_addr,
					     size_t len)
{
	(void)dpa_addr;
	return unsupported(mmap != NULL && dpa != NULL && len > 0);
}

static doca_error_t other_datapath(const struct doca_ctx *ctx, const void *processor)
{
	if (ctx == NULL || processor == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(ctx);
	return result == DOCA_SUCCESS ? DOCA_ERROR_NOT_SUPPORTED : result;
}

doca_error_t soft_doca_ctx_set_datapath_on_gpu(struct doca_ctx *ctx, struct doca_gpu *gpu_dev)
{
	return other_datapath(ctx, gpu_dev);
}

doca_error_t soft_doca_ctx_set_datapath_on_dpa(struct doca_ctx *ctx, struct doca_dpa *dpa_dev)
{
	return other_datapath(ctx, dpa_dev);
}

doca_error_t soft_doca_pe_set_notification_handle(struct doca_pe *pe, doca_notification_handle_t handle,
						  union doca_data completion_key)
{
	(void)handle;
	(void)completion_key;
	return unsupported(pe != NULL);
}

doca_error_t soft_doca_dma_get_gpu_handle(struct doca_dma *dma, struct doca_gpu_dma **gpu_dma)
{
	return unsupported(dma != NULL && gpu_dma != NULL);
}
