/* SPDX-License-Identifier: Apache-2.0 */
#include "port.h"

#include <stdlib.h>
#include <string.h>

/* ---- completions ---- */

/*
 * Returns the next completion to be filled; releases the task's buffer, if it has one. A stopping context waits until
 * its tasks are freed, so free them here, where DOCA allows it.
 */
static struct port_completion *complete(struct port *port, struct doca_task *task, const struct doca_buf *buf)
{
	const struct doca_ops *ops = port->progress.ops;
	struct port_completion *c = &port->completions[port->completed++];
	*c = (struct port_completion){.tag = ops->doca_task_get_user_data(task).u64,
				      .status = ops->doca_task_get_status(task)};
	drop_buffer(ops, buf);
	ops->doca_task_free(task);
	port->inflight--;
	return c;
}

/* Called before the task is freed. Returns the number of bytes. */
static uint32_t copy_imm(const struct port *port, const struct doca_comch_consumer_task_post_recv *task, uint8_t *to)
{
	const struct doca_ops *ops = port->progress.ops;
	const uint8_t *imm = ops->doca_comch_consumer_task_post_recv_get_imm_data(task);
	uint32_t len = ops->doca_comch_consumer_task_post_recv_get_imm_data_len(task);
	if (imm == NULL || len == 0)
		return 0;
	len = len < port->imm_size ? len : port->imm_size;
	memcpy(to, imm, len);
	return len;
}

/* For success and failure. The buffer was empty when posted, so its data is what was received. */
static void on_received(struct doca_comch_consumer_task_post_recv *task, union doca_data tag, union doca_data ctx_data)
{
	struct port *port = ctx_data.ptr;
	const struct doca_ops *ops = port->progress.ops;
	struct doca_buf *buf = ops->doca_comch_consumer_task_post_recv_get_buf(task);
	uint32_t producer = ops->doca_comch_consumer_task_post_recv_get_producer_id(task);
	uint32_t imm_len = copy_imm(port, task, port->imm + (size_t)port->completed * port->imm_size);
	size_t len = 0;
	doca_error_t measured = buf == NULL ? DOCA_SUCCESS : ops->doca_buf_get_data_len(buf, &len);

	(void)tag;
	struct port_completion *c = complete(port, ops->doca_comch_consumer_task_post_recv_as_task(task), buf);
	if (c->status == DOCA_SUCCESS)
		c->status = measured;
	c->len = len;
	c->producer = producer;
	c->imm_len = imm_len;
}

/* For success and failure. */
static void on_sent(struct doca_comch_producer_task_send *task, union doca_data tag, union doca_data ctx_data)
{
	struct port *port = ctx_data.ptr;
	const struct doca_ops *ops = port->progress.ops;
	(void)tag;
	complete(port, ops->doca_comch_producer_task_send_as_task(task),
		 ops->doca_comch_producer_task_send_get_buf(task));
}

/* ---- set-up ---- */

static struct outcome open_parts(struct port *port, const struct doca_ops *ops)
{
	struct outcome o = progress_open(&port->progress, ops);
	if (o.status != DOCA_SUCCESS)
		return o;
	TRY(ops, doca_buf_inventory_create, port->depth, &port->inventory);
	TRY(ops, doca_buf_inventory_start, port->inventory);
	return OUTCOME_SUCCESS;
}

/* Allocates a port for depth tasks, without a context. */
static struct outcome make(const struct doca_ops *ops, uint32_t depth, uint32_t imm_size, struct port **out)
{
	struct port *port = calloc(1, sizeof(*port) + depth * sizeof(port->completions[0]));
	if (port == NULL)
		return (struct outcome){DOCA_ERROR_NO_MEMORY, "calloc"};
	port->depth = depth;
	port->imm_size = imm_size;
	port->imm = calloc(depth, (size_t)imm_size + 1);
	struct outcome o = {DOCA_ERROR_NO_MEMORY, "calloc"};
	if (port->imm != NULL)
		o = open_parts(port, ops);
	if (o.status == DOCA_SUCCESS)
		*out = port;
	else
		port_close(port);
	return o;
}

/* Connects the configured context to the progress engine and starts it. A consumer's start continues in progress. */
static struct outcome start(struct port *port)
{
	struct outcome o = progress_connect(&port->progress, port);
	if (o.status != DOCA_SUCCESS)
		return o;
	doca_error_t status = port->progress.ops->doca_ctx_start(port->progress.ctx);
	if (status == DOCA_SUCCESS || status == DOCA_ERROR_IN_PROGRESS)
		return OUTCOME_SUCCESS;
	return (struct outcome){status, "doca_ctx_start"};
}

static struct outcome create_consumer(struct port *port, struct doca_comch_connection *connection,
				      struct doca_mmap *map)
{
	const struct doca_ops *ops = port->progress.ops;
	TRY(ops, doca_comch_consumer_create, connection, map, &port->consumer);
	port->progress.ctx = ops->doca_comch_consumer_as_ctx(port->consumer);
	TRY(ops, doca_comch_consumer_set_imm_data_len, port->consumer, port->imm_size);
	TRY(ops, doca_comch_consumer_task_post_recv_set_conf, port->consumer, on_received, on_received, port->depth);
	return start(port);
}

static struct outcome create_producer(struct port *port, struct doca_comch_connection *connection)
{
	const struct doca_ops *ops = port->progress.ops;
	TRY(ops, doca_comch_producer_create, connection, &port->producer);
	port->progress.ctx = ops->doca_comch_producer_as_ctx(port->producer);
	TRY(ops, doca_comch_producer_task_send_set_conf, port->producer, on_sent, on_sent, port->depth);
	return start(port);
}

struct outcome port_open(const struct doca_ops *ops, struct doca_comch_connection *connection, struct doca_mmap *map,
			 uint32_t depth, uint32_t imm_size, struct port **out)
{
	struct port *port = NULL;
	struct outcome o = make(ops, depth, imm_size, &port);
	if (o.status != DOCA_SUCCESS)
		return o;
	o = map != NULL ? create_consumer(port, connection, map) : create_producer(port, connection);
	if (o.status == DOCA_SUCCESS)
		*out = port;
	else
		port_close(port);
	return o;
}

/* ---- use ---- */

/* A consumer's buffer is empty; a producer's has data. */
static struct outcome take_buffer(struct port *port, const struct port_task *task, struct doca_buf **buf)
{
	const struct doca_ops *ops = port->progress.ops;
	void *address = (void *)(uintptr_t)task->address;
	doca_error_t status;
	*buf = NULL;
	if (task->len == 0)
		return OUTCOME_SUCCESS;
	if (port->consumer != NULL) {
		status = doca_ops_buf_get_by_addr(ops, port->inventory, task->map, address, task->len, buf);
		return (struct outcome){status, "doca_buf_inventory_buf_get_by_addr"};
	}
	status = doca_ops_buf_get_by_data(ops, port->inventory, task->map, address, task->len, buf);
	return (struct outcome){status, "doca_buf_inventory_buf_get_by_data"};
}

static struct outcome make_receive(struct port *port, struct doca_buf *buf, struct doca_task **out)
{
	const struct doca_ops *ops = port->progress.ops;
	struct doca_comch_consumer_task_post_recv *task;
	TRY(ops, doca_comch_consumer_task_post_recv_alloc_init, port->consumer, buf, &task);
	*out = ops->doca_comch_consumer_task_post_recv_as_task(task);
	return OUTCOME_SUCCESS;
}

static struct outcome make_send(struct port *port, const struct port_task *t, const uint8_t *imm, struct doca_buf *buf,
				struct doca_task **out)
{
	const struct doca_ops *ops = port->progress.ops;
	struct doca_comch_producer_task_send *task;
	uint8_t *bytes = t->imm_len == 0 ? NULL : (uint8_t *)imm + t->imm_offset;
	TRY(ops, doca_comch_producer_task_send_alloc_init, port->producer, buf, bytes, t->imm_len, t->to, &task);
	*out = ops->doca_comch_producer_task_send_as_task(task);
	return OUTCOME_SUCCESS;
}

static struct outcome submit(struct port *port, struct doca_task *task, uint64_t tag)
{
	const struct doca_ops *ops = port->progress.ops;
	ops->doca_task_set_user_data(task, (union doca_data){.u64 = tag});
	doca_error_t status = ops->doca_task_submit(task);
	if (status == DOCA_SUCCESS)
		port->inflight++;
	else
		ops->doca_task_free(task);
	return (struct outcome){status, "doca_task_submit"};
}

static struct outcome submit_one(struct port *port, const struct port_task *t, const uint8_t *imm)
{
	if (port->inflight == port->depth)
		return (struct outcome){DOCA_ERROR_AGAIN, "doca_task_submit"};
	struct doca_buf *buf;
	struct doca_task *task = NULL;
	struct outcome o = take_buffer(port, t, &buf);
	if (o.status != DOCA_SUCCESS)
		return o;
	o = port->consumer != NULL ? make_receive(port, buf, &task) : make_send(port, t, imm, buf, &task);
	if (o.status == DOCA_SUCCESS)
		o = submit(port, task, t->tag);
	if (o.status != DOCA_SUCCESS)
		drop_buffer(port->progress.ops, buf);
	return o;
}

struct outcome port_submit(struct port *port, const struct port_task *tasks, uint32_t count, const uint8_t *imm)
{
	struct outcome o = OUTCOME_SUCCESS;
	port->taken = 0;
	while (port->taken < count && o.status == DOCA_SUCCESS) {
		o = submit_one(port, &tasks[port->taken], imm);
		port->taken += o.status == DOCA_SUCCESS;
	}
	return o;
}

uint32_t port_poll(struct port *port, uint32_t max)
{
	port->completed = 0;
	while (port->completed < max && port->progress.ops->doca_pe_progress(port->progress.pe))
		;
	return port->completed;
}

struct outcome port_id(const struct port *port, uint32_t *id)
{
	const struct doca_ops *ops = port->progress.ops;
	if (port->consumer != NULL)
		TRY(ops, doca_comch_consumer_get_id, port->consumer, id);
	else
		TRY(ops, doca_comch_producer_get_id, port->producer, id);
	return OUTCOME_SUCCESS;
}

/* ---- tear-down ---- */

static struct outcome destroy_context(struct port *port)
{
	const struct doca_ops *ops = port->progress.ops;
	if (port->consumer != NULL)
		TRY(ops, doca_comch_consumer_destroy, port->consumer);
	port->consumer = NULL;
	if (port->producer != NULL)
		TRY(ops, doca_comch_producer_destroy, port->producer);
	port->producer = NULL;
	port->progress.ctx = NULL;
	return OUTCOME_SUCCESS;
}

struct outcome port_close(struct port *port)
{
	struct outcome o = destroy_context(port);
	if (o.status == DOCA_SUCCESS)
		o = progress_close(&port->progress);
	if (o.status != DOCA_SUCCESS)
		return o;
	if (port->inventory != NULL)
		TRY(port->progress.ops, doca_buf_inventory_destroy, port->inventory);
	free(port->imm);
	free(port);
	return OUTCOME_SUCCESS;
}
