/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of tasks. In DOCA only a library that has batches allocates them, which its Ethernet queues do, DMA and Comch do
 * not. So whatever a program passes here is no batch: it is refused and never looked into.
 */
#include "soft.h"

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
