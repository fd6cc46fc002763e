/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of DOCA that the device does not support, because it has no RDMA, dma-buf, DPA or GPU. Arguments are
 * checked first, as everywhere.
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

/* ---- memory and contexts ---- */

doca_error_t soft_doca_mmap_dev_get_dpa_handle(struct doca_mmap *mmap, const struct doca_dev *dev,
					       doca_dpa_dev_mmap_t *dpa_mmap_handle)
{
	return unsupported(mmap != NULL && dev != NULL && dpa_mmap_handle != NULL);
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

doca_error_t soft_doca_dma_get_gpu_handle(struct doca_dma *dma, struct doca_gpu_dma **gpu_dma)
{
	return unsupported(dma != NULL && gpu_dma != NULL);
}

/* ---- completion contexts: none can be made, so none is ever looked into ---- */

doca_error_t soft_doca_comch_consumer_completion_create(struct doca_comch_consumer_completion **consumer_comp)
{
	return unsupported(consumer_comp != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_set_dpa_thread(struct doca_comch_consumer_completion *consumer_comp,
								struct doca_dpa_thread *dpa_thread)
{
	return unsupported(consumer_comp != NULL && dpa_thread != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_destroy(struct doca_comch_consumer_completion *consumer_comp)
{
	return unsupported(consumer_comp != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_start(struct doca_comch_consumer_completion *consumer_comp)
{
	return unsupported(consumer_comp != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_stop(struct doca_comch_consumer_completion *consumer_comp)
{
	return unsupported(consumer_comp != NULL);
}

doca_error_t
soft_doca_comch_consumer_completion_get_dpa_handle(struct doca_comch_consumer_completion *consumer_comp,
						   doca_dpa_dev_comch_consumer_completion_t *consumer_comp_handle)
{
	return unsupported(consumer_comp != NULL && consumer_comp_handle != NULL);
}

doca_error_t
soft_doca_comch_consumer_completion_set_max_num_consumers(struct doca_comch_consumer_completion *consumer_comp,
							  uint32_t max_num_consumers)
{
	(void)max_num_consumers;
	return unsupported(consumer_comp != NULL);
}

doca_error_t
soft_doca_comch_consumer_completion_get_max_num_consumers(const struct doca_comch_consumer_completion *consumer_comp,
							  uint32_t *max_num_consumers)
{
	return unsupported(consumer_comp != NULL && max_num_consumers != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_set_max_num_recv(struct doca_comch_consumer_completion *consumer_comp,
								  uint32_t max_num_recv)
{
	(void)max_num_recv;
	return unsupported(consumer_comp != NULL);
}

doca_error_t
soft_doca_comch_consumer_completion_get_max_num_recv(const struct doca_comch_consumer_completion *consumer_comp,
						     uint32_t *max_num_recv)
{
	return unsupported(consumer_comp != NULL && max_num_recv != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_set_imm_data_len(struct doca_comch_consumer_completion *consumer_comp,
								  uint32_t imm_data_len)
{
	(void)imm_data_len;
	return unsupported(consumer_comp != NULL);
}

doca_error_t
soft_doca_comch_consumer_completion_get_imm_data_len(const struct doca_comch_consumer_completion *consumer_comp,
						     uint32_t *imm_data_len)
{
	return unsupported(consumer_comp != NULL && imm_data_len != NULL);
}

/* ---- consumers and producers ---- */

doca_error_t soft_doca_comch_consumer_set_dev_max_num_recv(struct doca_comch_consumer *consumer, uint32_t dev_num_recv)
{
	(void)dev_num_recv;
	return unsupported(consumer != NULL);
}

doca_error_t soft_doca_comch_consumer_set_completion(struct doca_comch_consumer *consumer,
						     struct doca_comch_consumer_completion *consumer_comp,
						     uint32_t user_data)
{
	(void)user_data;
	return unsupported(consumer != NULL && consumer_comp != NULL);
}

doca_error_t soft_doca_comch_consumer_get_dpa_handle(struct doca_comch_consumer *consumer,
						     doca_dpa_dev_comch_consumer_t *dpa_consumer)
{
	return unsupported(consumer != NULL && dpa_consumer != NULL);
}

doca_error_t soft_doca_comch_producer_set_dev_max_num_send(struct doca_comch_producer *producer, uint32_t dev_num_send)
{
	(void)dev_num_send;
	return unsupported(producer != NULL);
}

doca_error_t soft_doca_comch_producer_dpa_completion_attach(struct doca_comch_producer *producer,
							    struct doca_dpa_completion *dpa_comp)
{
	return unsupported(producer != NULL && dpa_comp != NULL);
}

doca_error_t soft_doca_comch_producer_get_dpa_handle(struct doca_comch_producer *producer,
						     doca_dpa_dev_comch_producer_t *dpa_producer)
{
	return unsupported(producer != NULL && dpa_producer != NULL);
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
