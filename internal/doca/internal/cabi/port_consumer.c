/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "port.h"

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
	struct port_completion *c = port_complete(port, ops->doca_comch_consumer_task_post_recv_as_task(task), buf);
	if (c->status == DOCA_SUCCESS)
		c->status = measured;
	c->len = len;
	c->producer = producer;
	c->imm_len = imm_len;
}

static struct outcome create(struct port *port, struct doca_comch_connection *connection)
{
	const struct doca_ops *ops = port->progress.ops;
	TRY(ops, doca_comch_consumer_create, connection, port->map, &port->consumer);
	port->ctx = ops->doca_comch_consumer_as_ctx(port->consumer);
	TRY(ops, doca_comch_consumer_set_imm_data_len, port->consumer, port->imm_size);
	TRY(ops, doca_comch_consumer_task_post_recv_set_conf, port->consumer, on_received, on_received, port->depth);
	return port_start(port);
}

struct outcome consumer_open(const struct doca_ops *ops, struct doca_comch_connection *connection,
			     struct doca_mmap *map, uint32_t depth, uint32_t imm_size, struct port **out)
{
	struct port *port;
	struct outcome o = port_make(ops, depth, imm_size, &port);
	if (o.status != DOCA_SUCCESS)
		return o;
	port->map = map;
	o = create(port, connection);
	if (o.status == DOCA_SUCCESS)
		*out = port;
	else
		port_close(port);
	return o;
}

static struct outcome take_buffer(struct port *port, const struct port_receive *receive, struct doca_buf **buf)
{
	*buf = NULL;
	if (receive->len == 0)
		return OUTCOME_SUCCESS;
	doca_error_t status = doca_ops_buf_get_by_addr(port->progress.ops, port->inventory, port->map,
						       (void *)(uintptr_t)receive->address, receive->len, buf);
	return (struct outcome){status, "doca_buf_inventory_buf_get_by_addr"};
}

static struct outcome post_one(struct port *port, const struct port_receive *receive)
{
	const struct doca_ops *ops = port->progress.ops;
	struct doca_comch_consumer_task_post_recv *task;
	struct doca_buf *buf;
	if (port->inflight == port->depth)
		return (struct outcome){DOCA_ERROR_AGAIN, "doca_task_submit"};
	struct outcome o = take_buffer(port, receive, &buf);
	if (o.status != DOCA_SUCCESS)
		return o;
	doca_error_t status = ops->doca_comch_consumer_task_post_recv_alloc_init(port->consumer, buf, &task);
	if (status != DOCA_SUCCESS) {
		port_drop_buffer(port, buf);
		return (struct outcome){status, "doca_comch_consumer_task_post_recv_alloc_init"};
	}
	return port_submit(port, ops->doca_comch_consumer_task_post_recv_as_task(task), buf, receive->tag);
}

struct outcome consumer_post(struct port *port, const struct port_receive *receives, uint32_t count)
{
	struct outcome o = OUTCOME_SUCCESS;
	port->taken = 0;
	while (port->taken < count && o.status == DOCA_SUCCESS) {
		o = post_one(port, &receives[port->taken]);
		port->taken += o.status == DOCA_SUCCESS;
	}
	return o;
}
