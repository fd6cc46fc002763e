/* SPDX-License-Identifier: Apache-2.0 */
#include "fast_end.h"

#include "../device/memory.h"

/* ---- callbacks ---- */

static void finish(struct fast_end *end, struct doca_task *task, struct doca_buf *buf)
{
	doca_error_t status = soft_doca_task_get_status(task);
	if (!end->frees_early)
		soft_doca_task_free(task);
	if (status == DOCA_SUCCESS) {
		end->completed++;
	} else {
		end->failed++;
		end->last_failure = status;
	}
	if (end->on_completed != NULL)
		end->on_completed(end, buf);
	else if (buf != NULL)
		CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
}

static void on_post_recv(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
			 union doca_data ctx_data)
{
	struct fast_end *end = ctx_data.ptr;
	(void)task_data;
	end->last_producer = soft_doca_comch_consumer_task_post_recv_get_producer_id(task);
	end->last_imm_len = soft_doca_comch_consumer_task_post_recv_get_imm_data_len(task);
	const uint8_t *imm = soft_doca_comch_consumer_task_post_recv_get_imm_data(task);
	CHECK((imm == NULL) == (end->last_imm_len == 0) && end->last_imm_len <= FAST_IMM);
	if (imm != NULL)
		memcpy(end->last_imm, imm, end->last_imm_len);
	finish(end, soft_doca_comch_consumer_task_post_recv_as_task(task),
	       soft_doca_comch_consumer_task_post_recv_get_buf(task));
}

static void on_produced(struct doca_comch_producer_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task_data;
	finish(ctx_data.ptr, soft_doca_comch_producer_task_send_as_task(task),
	       (struct doca_buf *)soft_doca_comch_producer_task_send_get_buf(task));
}

/* ---- life cycle ---- */

static void open_parts(struct fast_end *end, struct end *control)
{
	*end = (struct fast_end){.dev = control->server != NULL ? fixture.dpu : fixture.host};
	end->memory = memory_alloc(FAST_MEMORY);
	CHECK(end->memory != NULL);
	CHECK_OK(soft_doca_pe_create(&end->pe));
	CHECK_OK(soft_doca_buf_inventory_create(4 * FAST_TASKS, &end->inventory));
	CHECK_OK(soft_doca_buf_inventory_start(end->inventory));
	CHECK_OK(soft_doca_mmap_create(&end->mmap));
	CHECK_OK(soft_doca_mmap_set_memrange(end->mmap, end->memory, FAST_MEMORY));
	CHECK_OK(soft_doca_mmap_add_dev(end->mmap, end->dev));
	CHECK_OK(soft_doca_mmap_set_permissions(end->mmap, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	CHECK_OK(soft_doca_mmap_start(end->mmap));
}

static void connect_ctx(struct fast_end *end)
{
	CHECK_OK(soft_doca_ctx_set_user_data(end->ctx, (union doca_data){.ptr = end}));
	CHECK_OK(soft_doca_pe_connect_ctx(end->pe, end->ctx));
}

void consumer_open(struct fast_end *end, struct end *control)
{
	open_parts(end, control);
	CHECK_OK(soft_doca_comch_consumer_create(control->connection, end->mmap, &end->consumer));
	end->ctx = soft_doca_comch_consumer_as_ctx(end->consumer);
	CHECK_OK(soft_doca_comch_consumer_set_imm_data_len(end->consumer, FAST_IMM));
	CHECK_OK(soft_doca_comch_consumer_task_post_recv_set_conf(end->consumer, on_post_recv, on_post_recv,
								  FAST_TASKS));
	connect_ctx(end);
}

void producer_open(struct fast_end *end, struct end *control)
{
	open_parts(end, control);
	for (size_t i = 0; i < FAST_MEMORY; i++)
		end->memory[i] = (uint8_t)(i * 7 + i / 251);
	CHECK_OK(soft_doca_comch_producer_create(control->connection, &end->producer));
	end->ctx = soft_doca_comch_producer_as_ctx(end->producer);
	CHECK_OK(soft_doca_comch_producer_task_send_set_conf(end->producer, on_produced, on_produced, FAST_TASKS));
	connect_ctx(end);
}

void fast_close(struct fast_end *end)
{
	if (fast_state(end) != DOCA_CTX_STATE_IDLE)
		soft_doca_ctx_stop(end->ctx);
	while (soft_doca_pe_progress(end->pe))
		;
	CHECK(fast_state(end) == DOCA_CTX_STATE_IDLE);
	if (end->consumer != NULL)
		CHECK_OK(soft_doca_comch_consumer_destroy(end->consumer));
	else
		CHECK_OK(soft_doca_comch_producer_destroy(end->producer));
	CHECK_OK(soft_doca_pe_destroy(end->pe));
	CHECK_OK(soft_doca_buf_inventory_destroy(end->inventory));
	CHECK_OK(soft_doca_mmap_destroy(end->mmap));
	memory_free(end->memory, FAST_MEMORY);
}

void settle_fast(struct end *client, struct end *server, struct fast_end *a, struct fast_end *b)
{
	struct doca_pe *engines[] = {client != NULL ? client->pe : NULL, server != NULL ? server->pe : NULL,
				     a != NULL ? a->pe : NULL, b != NULL ? b->pe : NULL};
	bool moved = true;
	while (moved) {
		moved = false;
		for (size_t i = 0; i < 4; i++)
			moved |= soft_doca_pe_progress(engines[i]);
	}
}

enum doca_ctx_states fast_state(const struct fast_end *end)
{
	enum doca_ctx_states state;
	CHECK_OK(soft_doca_ctx_get_state(end->ctx, &state));
	return state;
}

uint32_t consumer_id(const struct fast_end *consumer)
{
	uint32_t id;
	CHECK_OK(soft_doca_comch_consumer_get_id(consumer->consumer, &id));
	return id;
}

/* ---- use ---- */

static struct doca_buf *take_buf(struct fast_end *end, size_t offset, size_t len, size_t data_len)
{
	struct doca_buf *buf = NULL;
	if (len > 0)
		CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(end->inventory, end->mmap, end->memory + offset, len,
								 end->memory + offset, data_len, &buf));
	return buf;
}

static doca_error_t submit(struct doca_task *task, struct doca_buf *buf)
{
	doca_error_t result = soft_doca_task_submit(task);
	if (result == DOCA_SUCCESS)
		return result;
	soft_doca_task_free(task);
	if (buf != NULL)
		CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
	return result;
}

doca_error_t post(struct fast_end *consumer, size_t offset, size_t len)
{
	struct doca_comch_consumer_task_post_recv *task;
	struct doca_buf *buf = take_buf(consumer, offset, len, 0);
	doca_error_t result = soft_doca_comch_consumer_task_post_recv_alloc_init(consumer->consumer, buf, &task);
	if (result == DOCA_SUCCESS)
		return submit(soft_doca_comch_consumer_task_post_recv_as_task(task), buf);
	if (buf != NULL)
		CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
	return result;
}

doca_error_t produce(struct fast_end *producer, uint32_t to, size_t offset, size_t len, const void *imm,
		     uint32_t imm_len)
{
	struct doca_comch_producer_task_send *task;
	struct doca_buf *buf = take_buf(producer, offset, len, len);
	doca_error_t result = soft_doca_comch_producer_task_send_alloc_init(producer->producer, buf, (uint8_t *)imm,
									    imm_len, to, &task);
	if (result == DOCA_SUCCESS)
		return submit(soft_doca_comch_producer_task_send_as_task(task), buf);
	if (buf != NULL)
		CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
	return result;
}
