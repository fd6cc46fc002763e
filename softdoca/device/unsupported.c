/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of DOCA that the device does not support, because it has no RDMA, dma-buf or GPU. Arguments are checked
 * first, as everywhere.
 *
 * In DOCA only libraries with batches allocate them: Ethernet queues do, DMA and Comch do not. So any pointer to a
 * batch is invalid, is refused and never read.
 */
#include "ctx.h"
#include "soft.h"

/* Invalid arguments are reported first. */
static doca_error_t unsupported(bool valid)
{
	return valid ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}

/* ---- RDMA, dma-buf, Windows ---- */

doca_error_t soft_doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev, const void **export_desc,
					size_t *export_desc_len)
{
	return unsupported(mmap != NULL && dev != NULL && export_desc != NULL && export_desc_len != NULL);
}

doca_error_t soft_doca_mmap_set_dmabuf_memrange(struct doca_mmap *mmap, int dmabuf_fd, void *addr, size_t dmabuf_offset,
						size_t len)
{
	(void)addr;
	(void)dmabuf_offset;
	return unsupported(mmap != NULL && dmabuf_fd >= 0 && len > 0);
}

doca_error_t soft_doca_pe_set_notification_handle(struct doca_pe *pe, doca_notification_handle_t handle,
						  union doca_data completion_key)
{
	(void)handle;
	(void)completion_key;
	return unsupported(pe != NULL);
}

/* ---- GPU ---- */

doca_error_t soft_doca_ctx_set_datapath_on_gpu(struct doca_ctx *ctx, struct doca_gpu *gpu_dev)
{
	if (ctx == NULL || gpu_dev == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(ctx);
	return result == DOCA_SUCCESS ? DOCA_ERROR_NOT_SUPPORTED : result;
}

doca_error_t soft_doca_dma_get_gpu_handle(struct doca_dma *dma, struct doca_gpu_dma **gpu_dma)
{
	return unsupported(dma != NULL && gpu_dma != NULL);
}

/* ---- batches of tasks ---- */

static const union doca_data no_data;

doca_error_t soft_doca_task_batch_submit(struct doca_task_batch *task_batch)
{
	(void)task_batch;
	return DOCA_ERROR_INVALID_VALUE;
}

doca_error_t soft_doca_task_batch_try_submit(struct doca_task_batch *task_batch)
{
	(void)task_batch;
	return DOCA_ERROR_INVALID_VALUE;
}

void soft_doca_task_batch_free(struct doca_task_batch *task_batch)
{
	(void)task_batch;
}

doca_error_t soft_doca_task_batch_get_status(const struct doca_task_batch *task_batch)
{
	(void)task_batch;
	return DOCA_ERROR_INVALID_VALUE;
}

void soft_doca_task_batch_set_user_data(struct doca_task_batch *task_batch, union doca_data user_data)
{
	(void)task_batch;
	(void)user_data;
}

union doca_data soft_doca_task_batch_get_user_data(const struct doca_task_batch *task_batch)
{
	(void)task_batch;
	return no_data;
}

struct doca_ctx *soft_doca_task_batch_get_ctx(const struct doca_task_batch *task_batch)
{
	(void)task_batch;
	return NULL;
}

union doca_data soft_doca_task_batch_get_ctx_user_data(const struct doca_task_batch *task_batch)
{
	(void)task_batch;
	return no_data;
}

uint16_t soft_doca_task_batch_get_tasks_num(struct doca_task_batch *task_batch)
{
	(void)task_batch;
	return 0;
}
