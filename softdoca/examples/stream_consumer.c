/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <doca_buf.h>
#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

#include "stream.h"

/* ---- What came ---- */

static void count_block(struct tally *tally, const void *data, size_t len, const struct label *label)
{
	if (label == NULL || label->number != tally->blocks || !block_is_whole(data, len, label->number))
		tally->wrong++;
	tally->blocks++;
	tally->bytes += len;
}

static void take_text(struct tally *tally, const char *text, size_t len, const struct label *label)
{
	tally->ended = true;
	tally->announced = label->number;
	if (len > sizeof(tally->text) - 1)
		len = sizeof(tally->text) - 1;
	memcpy(tally->text, text, len);
	tally->text[len] = '\0';
}

static void count_message(struct tally *tally, const struct doca_comch_consumer_task_post_recv *task)
{
	struct doca_buf *buf = doca_comch_consumer_task_post_recv_get_buf(task);
	struct label label;
	bool labelled = label_decode(doca_comch_consumer_task_post_recv_get_imm_data(task),
				     doca_comch_consumer_task_post_recv_get_imm_data_len(task), &label);
	void *data = NULL;
	size_t len = 0;
	(void)doca_buf_get_data(buf, &data);
	(void)doca_buf_get_data_len(buf, &len);
	if (labelled && label.is_text)
		take_text(tally, data, len, &label);
	else
		count_block(tally, data, len, labelled ? &label : NULL);
}

/* ---- Receives ---- */

static void free_receive(struct doca_comch_consumer_task_post_recv *task)
{
	doca_buf_dec_refcount(doca_comch_consumer_task_post_recv_get_buf(task), NULL);
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
}

/*
 * Data is appended to a buffer, so one that is posted again must be emptied. Data that comes while we stop is
 * the last of it.
 */
static void on_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_user_data,
			union doca_data ctx_user_data)
{
	(void)task_user_data;
	struct inlet *inlet = ctx_user_data.ptr;
	count_message(&inlet->tally, task);
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

static doca_error_t add_receive(struct inlet *inlet)
{
	struct doca_buf *buf;
	doca_error_t result = pool_get_empty(&inlet->pool, inlet->num_unposted, &buf);
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
doca_error_t inlet_receive(struct inlet *inlet)
{
	doca_error_t result = inlet->result;
	while (result == DOCA_SUCCESS && inlet->num_unposted > 0) {
		struct doca_comch_consumer_task_post_recv *task = inlet->unposted[inlet->num_unposted - 1];
		result = doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task));
		if (result == DOCA_SUCCESS)
			inlet->num_unposted--;
	}
	return result == DOCA_ERROR_AGAIN ? DOCA_SUCCESS : result;
}

/* ---- The consumer ---- */

static doca_error_t start(struct inlet *inlet)
{
	struct doca_ctx *ctx = doca_comch_consumer_as_ctx(inlet->consumer);
	doca_error_t result = doca_pe_connect_ctx(inlet->engines->data, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = inlet});
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_set_imm_data_len(inlet->consumer, LABEL_SIZE);
	if (result == DOCA_SUCCESS)
		result = doca_comch_consumer_task_post_recv_set_conf(inlet->consumer, on_received, on_not_received,
								     BLOCKS_AT_ONCE);
	if (result == DOCA_SUCCESS)
		result = engines_start(inlet->engines, ctx);
	while (result == DOCA_SUCCESS && inlet->num_unposted < BLOCKS_AT_ONCE)
		result = add_receive(inlet);
	return result;
}

/* The context is not IDLE before its last task is freed: those that are posted come back, the others are freed here. */
static void stop(struct inlet *inlet)
{
	inlet->stopping = true;
	while (inlet->num_unposted > 0)
		free_receive(inlet->unposted[--inlet->num_unposted]);
	engines_stop(inlet->engines, doca_comch_consumer_as_ctx(inlet->consumer));
	doca_comch_consumer_destroy(inlet->consumer);
}

doca_error_t inlet_open(struct inlet *inlet, struct doca_dev *dev, const struct channel *channel)
{
	inlet->engines = channel->engines;
	doca_error_t result = pool_create(dev, &inlet->pool);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_comch_consumer_create(channel->peer, inlet->pool.mmap, &inlet->consumer);
	if (result != DOCA_SUCCESS) {
		pool_destroy(&inlet->pool);
		return result;
	}
	result = start(inlet);
	if (result != DOCA_SUCCESS)
		inlet_close(inlet);
	return result;
}

void inlet_close(struct inlet *inlet)
{
	stop(inlet);
	pool_destroy(&inlet->pool);
}
