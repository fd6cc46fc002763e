/* SPDX-License-Identifier: Apache-2.0 */
#include "msgq_end.h"

/* ---- message queues ---- */

struct doca_comch_msgq *msgq_open(struct doca_dpa *dpa, enum msgq_direction direction)
{
	struct doca_comch_msgq *msgq;
	CHECK_OK(soft_doca_comch_msgq_create(fixture.dpu, &msgq));
	CHECK_OK(soft_doca_comch_msgq_set_max_num_consumers(msgq, 2));
	CHECK_OK(soft_doca_comch_msgq_set_max_num_producers(msgq, 2));
	if (dpa != NULL && direction == MSGQ_TO_DPA)
		CHECK_OK(soft_doca_comch_msgq_set_dpa_consumer(msgq, dpa));
	else if (dpa != NULL)
		CHECK_OK(soft_doca_comch_msgq_set_dpa_producer(msgq, dpa));
	CHECK_OK(soft_doca_comch_msgq_start(msgq));
	return msgq;
}

void msgq_close(struct doca_comch_msgq *msgq)
{
	CHECK_OK(soft_doca_comch_msgq_stop(msgq));
	CHECK_OK(soft_doca_comch_msgq_destroy(msgq));
}

void msgq_settle(struct doca_pe *pe)
{
	while (soft_doca_pe_progress(pe))
		;
}

enum doca_ctx_states msgq_state(struct doca_ctx *ctx)
{
	enum doca_ctx_states state;
	CHECK_OK(soft_doca_ctx_get_state(ctx, &state));
	return state;
}

static void start_on_cpu(struct doca_ctx *ctx, struct doca_pe *pe, void *user)
{
	CHECK_OK(soft_doca_ctx_set_user_data(ctx, (union doca_data){.ptr = user}));
	CHECK_OK(soft_doca_pe_connect_ctx(pe, ctx));
	CHECK_OK(soft_doca_ctx_start(ctx));
}

static void stop_on_cpu(struct doca_ctx *ctx, struct doca_pe *pe)
{
	doca_error_t result = soft_doca_ctx_stop(ctx);
	CHECK(result == DOCA_SUCCESS || result == DOCA_ERROR_IN_PROGRESS);
	msgq_settle(pe);
	CHECK(msgq_state(ctx) == DOCA_CTX_STATE_IDLE);
}

/* ---- from the CPU to a DPA ---- */

static void on_sent(struct doca_comch_producer_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	struct to_dpa *end = ctx_data.ptr;
	(void)task_data;
	end->sent++;
	soft_doca_task_free(soft_doca_comch_producer_task_send_as_task(task));
}

static void on_not_sent(struct doca_comch_producer_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	struct to_dpa *end = ctx_data.ptr;
	(void)task_data;
	end->failed++;
	end->last_failure = soft_doca_task_get_status(soft_doca_comch_producer_task_send_as_task(task));
	soft_doca_task_free(soft_doca_comch_producer_task_send_as_task(task));
}

static void open_arrivals(struct to_dpa *end, struct doca_dpa_thread *thread, uint32_t num_recv)
{
	CHECK_OK(soft_doca_comch_consumer_completion_create(&end->arrivals));
	CHECK_OK(soft_doca_comch_consumer_completion_set_max_num_recv(end->arrivals, num_recv));
	if (thread != NULL)
		CHECK_OK(soft_doca_comch_consumer_completion_set_dpa_thread(end->arrivals, thread));
	CHECK_OK(soft_doca_comch_consumer_completion_start(end->arrivals));
	CHECK_OK(soft_doca_comch_consumer_completion_get_dpa_handle(end->arrivals, &end->handles.arrivals));
}

static void open_dpa_consumer(struct to_dpa *end, uint32_t num_recv)
{
	CHECK_OK(soft_doca_comch_msgq_consumer_create(end->msgq, &end->consumer));
	struct doca_ctx *ctx = soft_doca_comch_consumer_as_ctx(end->consumer);
	CHECK_OK(soft_doca_ctx_set_datapath_on_dpa(ctx, end->dpa));
	CHECK_OK(soft_doca_comch_consumer_set_completion(end->consumer, end->arrivals, 0));
	CHECK_OK(soft_doca_comch_consumer_set_dev_max_num_recv(end->consumer, num_recv));
	CHECK_OK(soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_comch_consumer_get_dpa_handle(end->consumer, &end->handles.consumer));
}

void to_dpa_open(struct to_dpa *end, struct doca_dpa *dpa, struct doca_dpa_thread *thread, uint32_t num_recv)
{
	*end = (struct to_dpa){.dpa = dpa};
	CHECK_OK(soft_doca_pe_create(&end->pe));
	open_arrivals(end, thread, num_recv);
	end->msgq = msgq_open(dpa, MSGQ_TO_DPA);
	open_dpa_consumer(end, num_recv);
	CHECK_OK(soft_doca_comch_msgq_producer_create(end->msgq, &end->producer));
	CHECK_OK(soft_doca_comch_producer_task_send_set_conf(end->producer, on_sent, on_not_sent, MSGQ_TASKS));
	start_on_cpu(soft_doca_comch_producer_as_ctx(end->producer), end->pe, end);
}

void to_dpa_close(struct to_dpa *end)
{
	stop_on_cpu(soft_doca_comch_producer_as_ctx(end->producer), end->pe);
	CHECK_OK(soft_doca_comch_producer_destroy(end->producer));
	CHECK_OK(soft_doca_ctx_stop(soft_doca_comch_consumer_as_ctx(end->consumer)));
	CHECK_OK(soft_doca_comch_consumer_destroy(end->consumer));
	msgq_close(end->msgq);
	CHECK_OK(soft_doca_comch_consumer_completion_stop(end->arrivals));
	CHECK_OK(soft_doca_comch_consumer_completion_destroy(end->arrivals));
	CHECK_OK(soft_doca_pe_destroy(end->pe));
}

doca_error_t to_dpa_send(struct to_dpa *end, uint32_t consumer_id, const void *imm, uint32_t len)
{
	struct doca_comch_producer_task_send *task;
	doca_error_t result = soft_doca_comch_producer_task_send_alloc_init(end->producer, NULL, (uint8_t *)imm, len,
									    consumer_id, &task);
	if (result != DOCA_SUCCESS)
		return result;
	struct doca_task *base = soft_doca_comch_producer_task_send_as_task(task);
	result = soft_doca_task_submit(base);
	if (result != DOCA_SUCCESS)
		soft_doca_task_free(base);
	msgq_settle(end->pe);
	return result;
}

/* ---- from a DPA to the CPU ---- */

static void on_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
			union doca_data ctx_data)
{
	struct from_dpa *end = ctx_data.ptr;
	struct doca_task *base = soft_doca_comch_consumer_task_post_recv_as_task(task);
	(void)task_data;
	end->received++;
	end->last_producer = soft_doca_comch_consumer_task_post_recv_get_producer_id(task);
	end->last_len = soft_doca_comch_consumer_task_post_recv_get_imm_data_len(task);
	if (end->last_len > 0)
		memcpy(end->last_imm, soft_doca_comch_consumer_task_post_recv_get_imm_data(task), end->last_len);
	if (end->reposts)
		CHECK_OK(soft_doca_task_submit(base));
	else
		soft_doca_task_free(base);
	if (end->on_received != NULL)
		end->on_received(end);
}

static void on_not_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
			    union doca_data ctx_data)
{
	struct from_dpa *end = ctx_data.ptr;
	(void)task_data;
	end->failed++;
	end->last_failure = soft_doca_task_get_status(soft_doca_comch_consumer_task_post_recv_as_task(task));
	soft_doca_task_free(soft_doca_comch_consumer_task_post_recv_as_task(task));
}

static void open_dpa_producer(struct from_dpa *end, uint32_t num_send)
{
	CHECK_OK(soft_doca_comch_msgq_producer_create(end->msgq, &end->producer));
	struct doca_ctx *ctx = soft_doca_comch_producer_as_ctx(end->producer);
	CHECK_OK(soft_doca_ctx_set_user_data(ctx, (union doca_data){.u64 = 0x12345678}));
	CHECK_OK(soft_doca_ctx_set_datapath_on_dpa(ctx, end->dpa));
	CHECK_OK(soft_doca_comch_producer_set_dev_max_num_send(end->producer, num_send));
	CHECK_OK(soft_doca_comch_producer_dpa_completion_attach(end->producer, end->completions));
	CHECK_OK(soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_comch_producer_get_dpa_handle(end->producer, &end->handles.producer));
}

void from_dpa_open(struct from_dpa *end, struct doca_dpa *dpa, uint32_t num_send)
{
	*end = (struct from_dpa){.dpa = dpa};
	CHECK_OK(soft_doca_pe_create(&end->pe));
	CHECK_OK(soft_doca_dpa_completion_create(dpa, num_send, &end->completions));
	CHECK_OK(soft_doca_dpa_completion_start(end->completions));
	CHECK_OK(soft_doca_dpa_completion_get_dpa_handle(end->completions, &end->handles.completions));
	end->msgq = msgq_open(dpa, MSGQ_FROM_DPA);
	CHECK_OK(soft_doca_comch_msgq_consumer_create(end->msgq, &end->consumer));
	CHECK_OK(soft_doca_comch_consumer_task_post_recv_set_conf(end->consumer, on_received, on_not_received,
								  MSGQ_TASKS));
	start_on_cpu(soft_doca_comch_consumer_as_ctx(end->consumer), end->pe, end);
	open_dpa_producer(end, num_send);
}

void from_dpa_close(struct from_dpa *end)
{
	end->reposts = false;
	stop_on_cpu(soft_doca_comch_consumer_as_ctx(end->consumer), end->pe);
	CHECK_OK(soft_doca_comch_consumer_destroy(end->consumer));
	CHECK_OK(soft_doca_ctx_stop(soft_doca_comch_producer_as_ctx(end->producer)));
	CHECK_OK(soft_doca_comch_producer_destroy(end->producer));
	msgq_close(end->msgq);
	CHECK_OK(soft_doca_dpa_completion_stop(end->completions));
	CHECK_OK(soft_doca_dpa_completion_destroy(end->completions));
	CHECK_OK(soft_doca_pe_destroy(end->pe));
}

void from_dpa_post(struct from_dpa *end, unsigned count)
{
	for (; count > 0; count--) {
		struct doca_comch_consumer_task_post_recv *task;
		CHECK_OK(soft_doca_comch_consumer_task_post_recv_alloc_init(end->consumer, NULL, &task));
		CHECK_OK(soft_doca_task_submit(soft_doca_comch_consumer_task_post_recv_as_task(task)));
	}
}
