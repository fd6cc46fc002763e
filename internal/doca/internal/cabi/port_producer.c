/* SPDX-License-Identifier: Apache-2.0 */
#include "port.h"

/* For success and failure. */
static void on_sent(struct doca_comch_producer_task_send *task, union doca_data tag, union doca_data ctx_data)
{
	struct port *port = ctx_data.ptr;
	const struct doca_ops *ops = port->progress.ops;
	(void)tag;
	port_complete(port, ops->doca_comch_producer_task_send_as_task(task),
		      ops->doca_comch_producer_task_send_get_buf(task));
}

static struct outcome create(struct port *port, struct doca_comch_connection *connection)
{
	const struct doca_ops *ops = port->progress.ops;
	TRY(ops, doca_comch_producer_create, connection, &port->producer);
	port->ctx = ops->doca_comch_producer_as_ctx(port->producer);
	TRY(ops, doca_comch_producer_task_send_set_conf, port->producer, on_sent, on_sent, port->depth);
	return port_start(port);
}

struct outcome producer_open(const struct doca_ops *ops, struct doca_comch_connection *connection, uint32_t depth,
			     struct port **out)
{
	struct port *port;
	struct outcome o = port_make(ops, depth, 0, &port);
	if (o.status != DOCA_SUCCESS)
		return o;
	o = create(port, connection);
	if (o.status == DOCA_SUCCESS)
		*out = port;
	else
		port_close(port);
	return o;
}

static struct outcome take_buffer(struct port *port, const struct port_message *message, struct doca_buf **buf)
{
	*buf = NULL;
	if (message->len == 0)
		return OUTCOME_SUCCESS;
	doca_error_t status = doca_ops_buf_get_by_data(port->progress.ops, port->inventory, message->map,
						       (void *)(uintptr_t)message->address, message->len, buf);
	return (struct outcome){status, "doca_buf_inventory_buf_get_by_data"};
}

static struct outcome send_one(struct port *port, const struct port_message *message, const uint8_t *imm)
{
	const struct doca_ops *ops = port->progress.ops;
	struct doca_comch_producer_task_send *task;
	struct doca_buf *buf;
	if (port->inflight == port->depth)
		return (struct outcome){DOCA_ERROR_AGAIN, "doca_task_submit"};
	struct outcome o = take_buffer(port, message, &buf);
	if (o.status != DOCA_SUCCESS)
		return o;
	uint8_t *bytes = message->imm_len == 0 ? NULL : (uint8_t *)imm + message->imm_offset;
	doca_error_t status = ops->doca_comch_producer_task_send_alloc_init(port->producer, buf, bytes,
									    message->imm_len, message->to, &task);
	if (status != DOCA_SUCCESS) {
		port_drop_buffer(port, buf);
		return (struct outcome){status, "doca_comch_producer_task_send_alloc_init"};
	}
	return port_submit(port, ops->doca_comch_producer_task_send_as_task(task), buf, message->tag);
}

struct outcome producer_send(struct port *port, const struct port_message *messages, uint32_t count, const uint8_t *imm)
{
	struct outcome o = OUTCOME_SUCCESS;
	port->taken = 0;
	while (port->taken < count && o.status == DOCA_SUCCESS) {
		o = send_one(port, &messages[port->taken], imm);
		port->taken += o.status == DOCA_SUCCESS;
	}
	return o;
}
