/* SPDX-License-Identifier: Apache-2.0 */
#include <doca_ctx.h>
#include <doca_error.h>

#include "engines.h"
#include "msgq.h"

/* ---- Sends ---- */

/* For success and failure: the task has the status. */
static void on_sent(struct doca_comch_producer_task_send *task, union doca_data task_user_data,
		    union doca_data ctx_user_data)
{
	struct msgq_to_dpa *queue = ctx_user_data.ptr;
	(void)task_user_data;
	doca_error_t status = doca_task_get_status(doca_comch_producer_task_send_as_task(task));
	DOCA_ERROR_PROPAGATE(queue->result, status);
	doca_task_free(doca_comch_producer_task_send_as_task(task));
}

/* The only consumer of a message queue has the id 1. */
doca_error_t msgq_to_dpa_send(struct msgq_to_dpa *queue, const void *message, uint32_t len)
{
	struct doca_comch_producer_task_send *task;
	doca_error_t result =
		doca_comch_producer_task_send_alloc_init(queue->producer, NULL, (uint8_t *)message, len, 1, &task);
	if (result == DOCA_ERROR_NO_MEMORY)
		return DOCA_ERROR_AGAIN;
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_task_submit(doca_comch_producer_task_send_as_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_comch_producer_task_send_as_task(task));
	return result;
}

/* ---- The consumer on the DPA ---- */

static doca_error_t open_arrivals(struct msgq_to_dpa *queue, struct msgq_handles *handles)
{
	doca_error_t result = doca_comch_consumer_completion_create(&queue->arrivals);
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_completion_set_max_num_recv(queue->arrivals, MSGQ_SIZE);
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_completion_set_imm_data_len(queue->arrivals, 32);
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_completion_set_dpa_thread(queue->arrivals, queue->thread);
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_completion_start(queue->arrivals);
	return result == DOCA_SUCCESS
		       ? doca_comch_consumer_completion_get_dpa_handle(queue->arrivals, &handles->arrivals)
		       : result;
}

static doca_error_t open_consumer(struct msgq_to_dpa *queue, struct msgq_handles *handles)
{
	doca_error_t result = doca_comch_msgq_consumer_create(queue->msgq, &queue->consumer);
	if (result != DOCA_SUCCESS)
		return result;
	struct doca_ctx *ctx = doca_comch_consumer_as_ctx(queue->consumer);
	result = doca_ctx_set_datapath_on_dpa(ctx, queue->dpa);
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_set_imm_data_len(queue->consumer, 32);
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_set_completion(queue->consumer, queue->arrivals, 0);
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_set_dev_max_num_recv(queue->consumer, MSGQ_SIZE);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_start(ctx);
	return result == DOCA_SUCCESS ? doca_comch_consumer_get_dpa_handle(queue->consumer, &handles->consumer)
				      : result;
}

/* ---- The producer on the CPU ---- */

static doca_error_t open_producer(struct msgq_to_dpa *queue)
{
	doca_error_t result = doca_comch_msgq_producer_create(queue->msgq, &queue->producer);
	if (result != DOCA_SUCCESS)
		return result;
	struct doca_ctx *ctx = doca_comch_producer_as_ctx(queue->producer);
	result = doca_pe_connect_ctx(queue->pe, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = queue});
	if (result == DOCA_SUCCESS)
		result = doca_comch_producer_task_send_set_conf(queue->producer, on_sent, on_sent, MSGQ_SIZE);
	return result == DOCA_SUCCESS ? doca_ctx_start(ctx) : result;
}

/* ---- The whole ---- */

static doca_error_t open_msgq(struct msgq_to_dpa *queue)
{
	doca_error_t result = doca_comch_msgq_create(queue->dev, &queue->msgq);
	if (result == DOCA_SUCCESS)
		result = doca_comch_msgq_set_max_num_consumers(queue->msgq, 1);
	if (result == DOCA_SUCCESS)
		result = doca_comch_msgq_set_max_num_producers(queue->msgq, 1);
	if (result == DOCA_SUCCESS)
		result = doca_comch_msgq_set_dpa_consumer(queue->msgq, queue->dpa);
	return result == DOCA_SUCCESS ? doca_comch_msgq_start(queue->msgq) : result;
}

doca_error_t msgq_to_dpa_open(struct msgq_to_dpa *queue, struct msgq_handles *handles)
{
	doca_error_t result = open_arrivals(queue, handles);
	if (result == DOCA_SUCCESS)
		result = open_msgq(queue);
	if (result == DOCA_SUCCESS)
		result = open_consumer(queue, handles);
	if (result == DOCA_SUCCESS)
		result = open_producer(queue);
	if (result != DOCA_SUCCESS)
		msgq_to_dpa_close(queue);
	return result;
}

/* Any part may be missing, if it could not be opened. */
void msgq_to_dpa_close(struct msgq_to_dpa *queue)
{
	const struct engines engines = {.control = queue->pe};
	if (queue->producer != NULL) {
		engines_stop(&engines, doca_comch_producer_as_ctx(queue->producer));
		doca_comch_producer_destroy(queue->producer);
	}
	if (queue->consumer != NULL) {
		doca_ctx_stop(doca_comch_consumer_as_ctx(queue->consumer));
		doca_comch_consumer_destroy(queue->consumer);
	}
	if (queue->msgq != NULL) {
		doca_comch_msgq_stop(queue->msgq);
		doca_comch_msgq_destroy(queue->msgq);
	}
	if (queue->arrivals != NULL) {
		doca_comch_consumer_completion_stop(queue->arrivals);
		doca_comch_consumer_completion_destroy(queue->arrivals);
	}
}
