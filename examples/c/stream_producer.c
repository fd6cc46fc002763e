/* SPDX-License-Identifier: Apache-2.0 */
#include <doca_buf.h>
#include <doca_comch_producer.h>
#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

#include "block.h"
#include "pool.h"
#include "stream_send.h"

/* A producer with the buffers that are not on their way. */
struct outlet {
	struct doca_comch_producer *producer;
	struct doca_buf *idle[BLOCKS_AT_ONCE];
	size_t num_idle;
	doca_error_t result;
};

/* ---- Sends ---- */

/* For success and failure: the task has the status. The end of the stream has no buffer. */
static void on_sent(struct doca_comch_producer_task_send *task, union doca_data task_user_data,
		    union doca_data ctx_user_data)
{
	struct outlet *outlet = ctx_user_data.ptr;
	doca_error_t status = doca_task_get_status(doca_comch_producer_task_send_as_task(task));
	DOCA_ERROR_PROPAGATE(outlet->result, status);
	if (task_user_data.ptr != NULL)
		outlet->idle[outlet->num_idle++] = task_user_data.ptr;
	doca_task_free(doca_comch_producer_task_send_as_task(task));
}

/* AGAIN, as long as the consumer has posted too few buffers: progress, and once more. */
static doca_error_t submit(struct sender *sender, const struct outlet *outlet, struct doca_task *task)
{
	doca_error_t result = doca_task_submit(task);
	while (result == DOCA_ERROR_AGAIN) {
		if (!sender->has_consumer || !channel_is_connected(&sender->channel))
			return DOCA_ERROR_NOT_CONNECTED;
		engines_progress(&sender->engines);
		result = outlet->result == DOCA_SUCCESS ? doca_task_submit(task) : outlet->result;
	}
	return result;
}

/* With NULL for a buffer, only the number is sent. */
static doca_error_t send_numbered(struct sender *sender, struct outlet *outlet, struct doca_buf *buf, uint32_t number)
{
	uint8_t imm[BLOCK_NUMBER];
	struct doca_comch_producer_task_send *task;
	block_number_encode(imm, number);
	doca_error_t result = doca_comch_producer_task_send_alloc_init(outlet->producer, buf, imm, BLOCK_NUMBER,
								       sender->consumer_id, &task);
	if (result != DOCA_SUCCESS)
		return result;
	doca_task_set_user_data(doca_comch_producer_task_send_as_task(task), (union doca_data){.ptr = buf});
	result = submit(sender, outlet, doca_comch_producer_task_send_as_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_comch_producer_task_send_as_task(task));
	return result;
}

/* Waits until at most this many sends are on their way. */
static doca_error_t wait_for_sends(struct sender *sender, const struct outlet *outlet, size_t at_most)
{
	const struct doca_ctx *ctx = doca_comch_producer_as_ctx(outlet->producer);
	size_t inflight = 0;
	(void)doca_ctx_get_num_inflight_tasks(ctx, &inflight);
	while (outlet->result == DOCA_SUCCESS && inflight > at_most) {
		if (!channel_is_connected(&sender->channel))
			return DOCA_ERROR_NOT_CONNECTED;
		engines_progress(&sender->engines);
		(void)doca_ctx_get_num_inflight_tasks(ctx, &inflight);
	}
	return outlet->result;
}

static doca_error_t send_block(struct sender *sender, struct outlet *outlet, uint32_t number)
{
	void *block;
	doca_error_t result = wait_for_sends(sender, outlet, BLOCKS_AT_ONCE - 1);
	if (result != DOCA_SUCCESS)
		return result;
	struct doca_buf *buf = outlet->idle[outlet->num_idle - 1];
	result = doca_buf_get_data(buf, &block);
	if (result != DOCA_SUCCESS)
		return result;
	block_fill(block, number);
	outlet->num_idle--;
	result = send_numbered(sender, outlet, buf, number);
	if (result != DOCA_SUCCESS)
		outlet->idle[outlet->num_idle++] = buf;
	return result;
}

static doca_error_t send_all(struct sender *sender, struct outlet *outlet, uint32_t count)
{
	doca_error_t result = DOCA_SUCCESS;
	for (uint32_t number = 0; number < count && result == DOCA_SUCCESS; number++)
		result = send_block(sender, outlet, number);
	if (result == DOCA_SUCCESS)
		result = wait_for_sends(sender, outlet, BLOCKS_AT_ONCE - 1);
	if (result == DOCA_SUCCESS)
		result = send_numbered(sender, outlet, NULL, count);
	return result == DOCA_SUCCESS ? wait_for_sends(sender, outlet, 0) : result;
}

/* ---- The producer ---- */

static doca_error_t start(struct sender *sender, struct outlet *outlet)
{
	struct doca_ctx *ctx = doca_comch_producer_as_ctx(outlet->producer);
	doca_error_t result = doca_pe_connect_ctx(sender->engines.data, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = outlet});
	if (result == DOCA_SUCCESS)
		result = doca_comch_producer_task_send_set_conf(outlet->producer, on_sent, on_sent, BLOCKS_AT_ONCE);
	return result == DOCA_SUCCESS ? engines_start(&sender->engines, ctx) : result;
}

static doca_error_t produce_from(struct sender *sender, struct outlet *outlet, uint32_t count)
{
	doca_error_t result = doca_comch_producer_create(sender->channel.peer, &outlet->producer);
	if (result != DOCA_SUCCESS)
		return result;
	result = start(sender, outlet);
	if (result == DOCA_SUCCESS)
		result = send_all(sender, outlet, count);
	engines_stop(&sender->engines, doca_comch_producer_as_ctx(outlet->producer));
	doca_comch_producer_destroy(outlet->producer);
	return result;
}

/* ---- Memory ---- */

static doca_error_t produce_with_pool(struct sender *sender, const struct pool *pool, uint32_t count)
{
	struct outlet outlet = {.num_idle = 0};
	doca_error_t result = DOCA_SUCCESS;
	while (result == DOCA_SUCCESS && outlet.num_idle < BLOCKS_AT_ONCE) {
		result = pool_get_full(pool, outlet.num_idle, &outlet.idle[outlet.num_idle]);
		if (result == DOCA_SUCCESS)
			outlet.num_idle++;
	}
	if (result == DOCA_SUCCESS)
		result = produce_from(sender, &outlet, count);
	while (outlet.num_idle > 0)
		doca_buf_dec_refcount(outlet.idle[--outlet.num_idle], NULL);
	return result;
}

doca_error_t stream_produce(struct sender *sender, uint32_t count)
{
	struct pool pool;
	doca_error_t result = pool_create(sender->dev, &pool);
	if (result != DOCA_SUCCESS)
		return result;
	result = produce_with_pool(sender, &pool, count);
	pool_destroy(&pool);
	return result;
}
