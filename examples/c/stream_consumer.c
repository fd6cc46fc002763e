/* SPDX-License-Identifier: Apache-2.0 */
#include <doca_buf.h>
#include <doca_comch_consumer.h>
#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

#include "block.h"
#include "pool.h"
#include "stream_receive.h"

/* A consumer with its buffers, each of which has a task: posted, or waiting to be. */
struct inlet {
	struct doca_comch_consumer *consumer;
	struct doca_comch_consumer_task_post_recv *unposted[BLOCKS_AT_ONCE];
	size_t num_unposted;
	bool stopping;
	struct tally *tally;
	doca_error_t result;
};

/* ---- Blocks ---- */

static void count_block(struct tally *tally, const void *data, size_t len, bool numbered, uint32_t number)
{
	if (!numbered || number != tally->blocks || !block_is_whole(data, len, number))
		tally->wrong++;
	tally->blocks++;
	tally->bytes += len;
}

static void count_message(struct tally *tally, const struct doca_comch_consumer_task_post_recv *task)
{
	struct doca_buf *buf = doca_comch_consumer_task_post_recv_get_buf(task);
	uint32_t number = 0;
	bool numbered = block_number_decode(doca_comch_consumer_task_post_recv_get_imm_data(task),
					    doca_comch_consumer_task_post_recv_get_imm_data_len(task), &number);
	void *data = NULL;
	size_t len = 0;
	(void)doca_buf_get_data(buf, &data);
	(void)doca_buf_get_data_len(buf, &len);
	if (len > 0 || !numbered) {
		count_block(tally, data, len, numbered, number);
	} else {
		tally->ended = true;
		tally->announced = number;
	}
}

/* ---- Receives ---- */

static void free_receive(struct doca_comch_consumer_task_post_recv *task)
{
	doca_buf_dec_refcount(doca_comch_consumer_task_post_recv_get_buf(task), NULL);
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
}

/*
 * Data is appended to a buffer, so one that is posted again must be emptied. What comes while we stop is the last of
 * it.
 */
static void on_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_user_data,
			union doca_data ctx_user_data)
{
	(void)task_user_data;
	struct inlet *inlet = ctx_user_data.ptr;
	count_message(inlet->tally, task);
	if (inlet->stopping) {
		free_receive(task);
		return;
	}
	doca_buf_reset_data_len(doca_comch_consumer_task_post_recv_get_buf(task));
	inlet->unposted[inlet->num_unposted++] = task;
}

/* Stopping the consumer brings all posted buffers back here. */
static void on_not_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_user_data,
			    union doca_data ctx_user_data)
{
	(void)task_user_data;
	struct inlet *inlet = ctx_user_data.ptr;
	doca_error_t status = doca_task_get_status(doca_comch_consumer_task_post_recv_as_task(task));
	DOCA_ERROR_PROPAGATE(inlet->result, status);
	free_receive(task);
}

static doca_error_t add_receive(struct inlet *inlet, const struct pool *pool)
{
	struct doca_buf *buf;
	doca_error_t result = pool_get_empty(pool, inlet->num_unposted, &buf);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_comch_consumer_task_post_recv_alloc_init(inlet->consumer, buf,
							       &inlet->unposted[inlet->num_unposted]);
	if (result == DOCA_SUCCESS)
		inlet->num_unposted++;
	else
		doca_buf_dec_refcount(buf, NULL);
	return result;
}

/* AGAIN is no failure: the rest is posted after some progress. */
static doca_error_t post_receives(struct inlet *inlet)
{
	doca_error_t result = DOCA_SUCCESS;
	while (result == DOCA_SUCCESS && inlet->num_unposted > 0) {
		struct doca_comch_consumer_task_post_recv *task = inlet->unposted[inlet->num_unposted - 1];
		result = doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task));
		if (result == DOCA_SUCCESS)
			inlet->num_unposted--;
	}
	return result == DOCA_ERROR_AGAIN ? DOCA_SUCCESS : result;
}

static doca_error_t receive_all(struct receiver *receiver, struct inlet *inlet)
{
	while (inlet->result == DOCA_SUCCESS && !inlet->tally->ended) {
		if (!channel_is_connected(&receiver->channel))
			return DOCA_ERROR_NOT_CONNECTED;
		doca_error_t result = post_receives(inlet);
		if (result != DOCA_SUCCESS)
			return result;
		engines_progress(&receiver->engines);
	}
	return inlet->result;
}

/* ---- The consumer ---- */

static doca_error_t start(struct receiver *receiver, struct inlet *inlet)
{
	struct doca_ctx *ctx = doca_comch_consumer_as_ctx(inlet->consumer);
	doca_error_t result = doca_pe_connect_ctx(receiver->engines.data, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = inlet});
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_set_imm_data_len(inlet->consumer, BLOCK_NUMBER);
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_task_post_recv_set_conf(inlet->consumer, on_received, on_not_received,
								     BLOCKS_AT_ONCE);
	return result == DOCA_SUCCESS ? engines_start(&receiver->engines, ctx) : result;
}

/* The context is not IDLE before its last task is freed: those that are posted come back, the others are freed here. */
static void stop(struct receiver *receiver, struct inlet *inlet)
{
	inlet->stopping = true;
	while (inlet->num_unposted > 0)
		free_receive(inlet->unposted[--inlet->num_unposted]);
	engines_stop(&receiver->engines, doca_comch_consumer_as_ctx(inlet->consumer));
}

static doca_error_t consume_into(struct receiver *receiver, const struct pool *pool)
{
	struct inlet inlet = {.tally = &receiver->tally};
	doca_error_t result = doca_comch_consumer_create(receiver->channel.peer, pool->mmap, &inlet.consumer);
	if (result != DOCA_SUCCESS)
		return result;
	result = start(receiver, &inlet);
	while (result == DOCA_SUCCESS && inlet.num_unposted < BLOCKS_AT_ONCE)
		result = add_receive(&inlet, pool);
	if (result == DOCA_SUCCESS)
		result = receive_all(receiver, &inlet);
	stop(receiver, &inlet);
	doca_comch_consumer_destroy(inlet.consumer);
	return result;
}

doca_error_t stream_consume(struct receiver *receiver)
{
	struct pool pool;
	doca_error_t result = pool_create(receiver->dev, &pool);
	if (result != DOCA_SUCCESS)
		return result;
	result = consume_into(receiver, &pool);
	pool_destroy(&pool);
	return result;
}
