/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <doca_buf.h>
#include <doca_ctx.h>
#include <doca_error.h>
#include <doca_pe.h>

#include "stream.h"

/* ---- Sends ---- */

/* For success and failure: the task has the status. */
static void on_sent(struct doca_comch_producer_task_send *task, union doca_data task_user_data,
		    union doca_data ctx_user_data)
{
	struct outlet *outlet = ctx_user_data.ptr;
	doca_error_t status = doca_task_get_status(doca_comch_producer_task_send_as_task(task));
	DOCA_ERROR_PROPAGATE(outlet->result, status);
	outlet->idle[outlet->num_idle++] = task_user_data.ptr;
	doca_task_free(doca_comch_producer_task_send_as_task(task));
}

/* A task that is not submitted is freed, and its buffer idle again. */
static void take_back(struct outlet *outlet, struct doca_task *task)
{
	outlet->idle[outlet->num_idle++] = doca_task_get_user_data(task).ptr;
	doca_task_free(task);
}

/* AGAIN, as long as the consumer has posted too few buffers: the same task is tried again later. */
static doca_error_t submit(struct outlet *outlet, struct doca_task *task)
{
	doca_error_t result = doca_task_submit(task);
	outlet->refused = result == DOCA_ERROR_AGAIN ? task : NULL;
	if (result != DOCA_SUCCESS && result != DOCA_ERROR_AGAIN)
		take_back(outlet, task);
	return result;
}

static doca_error_t send_labelled(struct outlet *outlet, uint32_t consumer_id, const struct label *label)
{
	uint8_t imm[LABEL_SIZE];
	struct doca_comch_producer_task_send *task;
	struct doca_buf *buf = outlet->idle[outlet->num_idle - 1];
	label_encode(imm, label);
	doca_error_t result =
		doca_comch_producer_task_send_alloc_init(outlet->producer, buf, imm, LABEL_SIZE, consumer_id, &task);
	if (result != DOCA_SUCCESS)
		return result;
	outlet->num_idle--;
	doca_task_set_user_data(doca_comch_producer_task_send_as_task(task), (union doca_data){.ptr = buf});
	return submit(outlet, doca_comch_producer_task_send_as_task(task));
}

static doca_error_t send_block(struct outlet *outlet, uint32_t consumer_id)
{
	const struct label label = {.number = outlet->sent};
	void *block;
	doca_error_t result = doca_buf_get_data(outlet->idle[outlet->num_idle - 1], &block);
	if (result != DOCA_SUCCESS)
		return result;
	block_fill(block, outlet->sent++);
	return send_labelled(outlet, consumer_id, &label);
}

static doca_error_t send_text(struct outlet *outlet, uint32_t consumer_id)
{
	const struct label label = {.number = outlet->count, .is_text = true};
	struct doca_buf *buf = outlet->idle[outlet->num_idle - 1];
	size_t len = strlen(outlet->text) + 1;
	void *block;
	doca_error_t result = doca_buf_get_data(buf, &block);
	if (result == DOCA_SUCCESS)
		result = doca_buf_set_data(buf, block, len);
	if (result != DOCA_SUCCESS)
		return result;
	memcpy(block, outlet->text, len);
	outlet->text_sent = true;
	return send_labelled(outlet, consumer_id, &label);
}

doca_error_t outlet_send(struct outlet *outlet, uint32_t consumer_id)
{
	doca_error_t result = outlet->result;
	if (result == DOCA_SUCCESS && outlet->refused != NULL)
		result = submit(outlet, outlet->refused);
	while (result == DOCA_SUCCESS && outlet->num_idle > 0 && !outlet->text_sent)
		result =
			outlet->sent < outlet->count ? send_block(outlet, consumer_id) : send_text(outlet, consumer_id);
	return result == DOCA_ERROR_AGAIN ? DOCA_SUCCESS : result;
}

bool outlet_is_done(const struct outlet *outlet)
{
	return outlet->text_sent && outlet->num_idle == BLOCKS_AT_ONCE;
}

/* ---- The producer ---- */

static doca_error_t start(struct outlet *outlet)
{
	struct doca_ctx *ctx = doca_comch_producer_as_ctx(outlet->producer);
	doca_error_t result = doca_pe_connect_ctx(outlet->engines->data, ctx);
	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = outlet});
	if (result == DOCA_SUCCESS)
		result = doca_comch_producer_task_send_set_conf(outlet->producer, on_sent, on_sent, BLOCKS_AT_ONCE);
	return result == DOCA_SUCCESS ? engines_start(outlet->engines, ctx) : result;
}

static doca_error_t fill_idle(struct outlet *outlet)
{
	doca_error_t result = DOCA_SUCCESS;
	while (result == DOCA_SUCCESS && outlet->num_idle < BLOCKS_AT_ONCE) {
		result = pool_get_full(&outlet->pool, outlet->num_idle, &outlet->idle[outlet->num_idle]);
		if (result == DOCA_SUCCESS)
			outlet->num_idle++;
	}
	return result;
}

static void release_pool(struct outlet *outlet)
{
	while (outlet->num_idle > 0)
		doca_buf_dec_refcount(outlet->idle[--outlet->num_idle], NULL);
	pool_destroy(&outlet->pool);
}

doca_error_t outlet_open(struct outlet *outlet, struct doca_dev *dev, const struct channel *channel, uint32_t count,
			 const char *text)
{
	*outlet = (struct outlet){.engines = channel->engines, .count = count, .text = text};
	doca_error_t result = pool_create(dev, &outlet->pool);
	if (result != DOCA_SUCCESS)
		return result;
	result = fill_idle(outlet);
	if (result == DOCA_SUCCESS)
		result = doca_comch_producer_create(channel->peer, &outlet->producer);
	if (result != DOCA_SUCCESS) {
		release_pool(outlet);
		return result;
	}
	result = start(outlet);
	if (result != DOCA_SUCCESS)
		outlet_close(outlet);
	return result;
}

/* Sends in flight come back to on_sent, so all buffers are idle then. */
void outlet_close(struct outlet *outlet)
{
	if (outlet->refused != NULL)
		take_back(outlet, outlet->refused);
	engines_stop(outlet->engines, doca_comch_producer_as_ctx(outlet->producer));
	doca_comch_producer_destroy(outlet->producer);
	release_pool(outlet);
}
