/* SPDX-License-Identifier: Apache-2.0 */
#include "copy.h"

#include <stdbool.h>

#include <doca_buf_inventory.h>
#include <doca_dma.h>
#include <doca_error.h>
#include <doca_pe.h>

/* ---- The task ---- */

struct outcome {
	bool done;
	doca_error_t result;
};

/* For success and failure: the task has the status. */
static void on_completion(struct doca_dma_task_memcpy *task, union doca_data task_user_data,
			  union doca_data ctx_user_data)
{
	(void)ctx_user_data;
	struct outcome *outcome = task_user_data.ptr;
	outcome->result = doca_task_get_status(doca_dma_task_memcpy_as_task(task));
	outcome->done = true;
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static doca_error_t submit_and_wait(struct doca_dma *dma, struct doca_pe *pe, struct doca_buf *src,
				    struct doca_buf *dst)
{
	struct outcome outcome = {false, DOCA_SUCCESS};
	struct doca_dma_task_memcpy *task;
	doca_error_t result = doca_dma_task_memcpy_alloc_init(dma, src, dst, (union doca_data){.ptr = &outcome}, &task);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_task_submit(doca_dma_task_memcpy_as_task(task));
	if (result != DOCA_SUCCESS) {
		doca_task_free(doca_dma_task_memcpy_as_task(task));
		return result;
	}
	while (!outcome.done)
		(void)doca_pe_progress(pe);
	return outcome.result;
}

/* ---- Buffers ---- */

static doca_error_t copy_between_buffers(struct doca_dma *dma, struct doca_pe *pe, struct doca_buf_inventory *inventory,
					 const struct copy *copy)
{
	struct doca_buf *src, *dst;
	doca_error_t result =
		doca_buf_inventory_buf_get_by_data(inventory, copy->from_mmap, copy->from, copy->len, &src);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_buf_inventory_buf_get_by_addr(inventory, copy->to_mmap, copy->to, copy->len, &dst);
	if (result == DOCA_SUCCESS) {
		result = submit_and_wait(dma, pe, src, dst);
		doca_buf_dec_refcount(dst, NULL);
	}
	doca_buf_dec_refcount(src, NULL);
	return result;
}

static doca_error_t copy_with_inventory(struct doca_dma *dma, struct doca_pe *pe, const struct copy *copy)
{
	struct doca_buf_inventory *inventory;
	doca_error_t result = doca_buf_inventory_create(2, &inventory);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_buf_inventory_start(inventory);
	if (result == DOCA_SUCCESS)
		result = copy_between_buffers(dma, pe, inventory, copy);
	doca_buf_inventory_destroy(inventory);
	return result;
}

/* ---- The engine ---- */

static void stop_and_wait(struct doca_ctx *ctx, struct doca_pe *pe)
{
	enum doca_ctx_states state;
	(void)doca_ctx_stop(ctx);
	while (doca_ctx_get_state(ctx, &state) == DOCA_SUCCESS && state != DOCA_CTX_STATE_IDLE)
		(void)doca_pe_progress(pe);
}

static doca_error_t copy_with_engine(struct doca_dma *dma, struct doca_pe *pe, const struct copy *copy)
{
	struct doca_ctx *ctx = doca_dma_as_ctx(dma);
	doca_error_t result = doca_pe_connect_ctx(pe, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_dma_task_memcpy_set_conf(dma, on_completion, on_completion, 1);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_start(ctx);
	if (result != DOCA_SUCCESS)
		return result;
	result = copy_with_inventory(dma, pe, copy);
	stop_and_wait(ctx, pe);
	return result;
}

doca_error_t copy_run(struct doca_dev *dev, const struct copy *copy)
{
	struct doca_pe *pe;
	struct doca_dma *dma;
	doca_error_t result = doca_pe_create(&pe);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_dma_create(dev, &dma);
	if (result == DOCA_SUCCESS) {
		result = copy_with_engine(dma, pe, copy);
		doca_dma_destroy(dma);
	}
	doca_pe_destroy(pe);
	return result;
}
