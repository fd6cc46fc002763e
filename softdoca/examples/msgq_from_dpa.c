/* SPDX-License-Identifier: Apache-2.0 */
#include <doca_ctx.h>
#include <doca_error.h>

#include "engines.h"
#include "msgq.h"

/* ---- The consumer on the CPU ---- */

/* The message is handled before the task is posted again, because that ends its life. */
static void on_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_user_data,
			union doca_data ctx_user_data)
{
	struct msgq_from_dpa *queue = ctx_user_data.ptr;
	(void)task_user_data;
	queue->received(queue->user, doca_comch_consumer_task_post_recv_get_imm_data(task),
			doca_comch_consumer_task_post_recv_get_imm_data_len(task));
	doca_error_t result = doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task));
	if (result == DOCA_SUCCESS)
		return;
	if (!queue->closing)
		DOCA_ERROR_PROPAGATE(queue->result, result);
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
}

/* A stopped consumer returns its receives this way. */
static void on_not_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_user_data,
			    union doca_data ctx_user_data)
{
	struct msgq_from_dpa *queue = ctx_user_data.ptr;
	(void)task_user_data;
	doca_error_t status = doca_task_get_status(doca_comch_consumer_task_post_recv_as_task(task));
	if (!queue->closing)
		DOCA_ERROR_PROPAGATE(queue->result, status);
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
}

static doca_error_t post_receives(struct msgq_from_dpa *queue)
{
	doca_error_t result = DOCA_SUCCESS;
	for (int i = 0; i < MSGQ_SIZE && result == DOCA_SUCCESS; i++) {
		struct doca_comch_consumer_task_post_recv *task;
		result = doca_comch_consumer_task_post_recv_alloc_init(queue->consumer, NULL, &task);
		if (result == DOCA_SUCCESS)
			result = doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task));
	}
	return result;
}

static doca_error_t open_consumer(struct msgq_from_dpa *queue, struct msgq_handles *handles)
{
	doca_error_t result = doca_comch_msgq_consumer_create(queue->msgq, &queue->consumer);
	if (result != DOCA_SUCCESS)
		return result;
	struct doca_ctx *ctx = doca_comch_consumer_as_ctx(queue->consumer);
	result = doca_pe_connect_ctx(queue->pe, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = queue});
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_set_imm_data_len(queue->consumer, 32);
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_task_post_recv_set_conf(queue->consumer, on_received, on_not_received,
								     MSGQ_SIZE);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_start(ctx);
	if (result == DOCA_SUCCESS)
		result = post_receives(queue);
	return result == DOCA_SUCCESS ? doca_comch_consumer_get_id(queue->consumer, &handles->cpu_consumer) : result;
}

/* ---- The producer on the DPA ---- */

static doca_error_t open_completions(struct msgq_from_dpa *queue, struct msgq_handles *handles)
{
	doca_error_t result = doca_dpa_completion_create(queue->dpa, MSGQ_SIZE, &queue->completions);
	if (result == DOCA_SUCCESS)
		result = doca_dpa_completion_start(queue->completions);
	return result == DOCA_SUCCESS ? doca_dpa_completion_get_dpa_handle(queue->completions, &handles->completions)
				      : result;
}

static doca_error_t open_producer(struct msgq_from_dpa *queue, struct msgq_handles *handles)
{
	doca_error_t result = doca_comch_msgq_producer_create(queue->msgq, &queue->producer);
	if (result != DOCA_SUCCESS)
		return result;
	struct doca_ctx *ctx = doca_comch_producer_as_ctx(queue->producer);
	result = doca_ctx_set_datapath_on_dpa(ctx, queue->dpa);
	if (result == DOCA_SUCCESS)
		result = doca_comch_producer_set_dev_max_num_send(queue->producer, MSGQ_SIZE);
	if (result == DOCA_SUCCESS)
		result = doca_comch_producer_dpa_completion_attach(queue->producer, queue->completions);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_start(ctx);
	return result == DOCA_SUCCESS ? doca_comch_producer_get_dpa_handle(queue->producer, &handles->producer)
				      : result;
}

/* ---- The whole ---- */

static doca_error_t open_msgq(struct msgq_from_dpa *queue)
{
	doca_error_t result = doca_comch_msgq_create(queue->dev, &queue->msgq);
	if (result == DOCA_SUCCESS)
		result = doca_comch_msgq_set_max_num_consumers(queue->msgq, 1);
	if (result == DOCA_SUCCESS)
		result = doca_comch_msgq_set_max_num_producers(queue->msgq, 1);
	if (result == DOCA_SUCCESS)
		result = doca_comch_msgq_set_dpa_producer(queue->msgq, queue->dpa);
	return result == DOCA_SUCCESS ? doca_comch_msgq_start(queue->msgq) : result;
}

doca_error_t msgq_from_dpa_open(struct msgq_from_dpa *queue, struct msgq_handles *handles)
{
	doca_error_t result = open_completions(queue, handles);
	if (result == DOCA_SUCCESS)
		result = open_msgq(queue);
	if (result == DOCA_SUCCESS)
		result = open_consumer(queue, handles);
	if (result == DOCA_SUCCESS)
		result = open_producer(queue, handles);
	if (result != DOCA_SUCCESS)
		msgq_from_dpa_close(queue);
	return result;
}

/* Any part may be missing, if it could not be opened. */
void msgq_from_dpa_close(struct msgq_from_dpa *queue)
{
	const struct engines engines = {.control = queue->pe};
	queue->closing = true;
	if (queue->consumer != NULL) {
		engines_stop(&engines, doca_comch_consumer_as_ctx(queue->consumer));
		doca_comch_consumer_destroy(queue->consumer);
	}
	if (queue->producer != NULL) {
		doca_ctx_stop(doca_comch_producer_as_ctx(queue->producer));
		doca_comch_producer_destroy(queue->producer);
	}
	if (queue->msgq != NULL) {
		doca_comch_msgq_stop(queue->msgq);
		doca_comch_msgq_destroy(queue->msgq);
	}
	if (queue->completions != NULL) {
		doca_dpa_completion_stop(queue->completions);
		doca_dpa_completion_destroy(queue->completions);
	}
}
