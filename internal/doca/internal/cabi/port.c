/* SPDX-License-Identifier: Apache-2.0 */
#include "port.h"

#include <stdlib.h>

void port_drop_buffer(const struct port *port, const struct doca_buf *buf)
{
	if (buf != NULL)
		port->progress.ops->doca_buf_dec_refcount((struct doca_buf *)buf, NULL);
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

struct outcome port_make(const struct doca_ops *ops, uint32_t depth, uint32_t imm_size, struct port **out)
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

/* A consumer's start continues in progress. */
struct outcome port_start(struct port *port)
{
	const struct doca_ops *ops = port->progress.ops;
	union doca_data self = {.ptr = port};
	TRY(ops, doca_ctx_set_user_data, port->ctx, self);
	TRY(ops, doca_pe_connect_ctx, port->progress.pe, port->ctx);
	doca_error_t status = ops->doca_ctx_start(port->ctx);
	if (status == DOCA_SUCCESS || status == DOCA_ERROR_IN_PROGRESS)
		return OUTCOME_SUCCESS;
	return (struct outcome){status, "doca_ctx_start"};
}

/* ---- use ---- */

struct outcome port_submit(struct port *port, struct doca_task *task, struct doca_buf *buf, uint64_t tag)
{
	const struct doca_ops *ops = port->progress.ops;
	ops->doca_task_set_user_data(task, (union doca_data){.u64 = tag});
	doca_error_t status = ops->doca_task_submit(task);
	if (status == DOCA_SUCCESS) {
		port->inflight++;
		return OUTCOME_SUCCESS;
	}
	ops->doca_task_free(task);
	port_drop_buffer(port, buf);
	return (struct outcome){status, "doca_task_submit"};
}

/* A stopping context waits until its tasks are freed, so free them here, where DOCA allows it. */
struct port_completion *port_complete(struct port *port, struct doca_task *task, const struct doca_buf *buf)
{
	const struct doca_ops *ops = port->progress.ops;
	struct port_completion *c = &port->completions[port->completed++];
	*c = (struct port_completion){.tag = ops->doca_task_get_user_data(task).u64,
				      .status = ops->doca_task_get_status(task)};
	port_drop_buffer(port, buf);
	ops->doca_task_free(task);
	port->inflight--;
	return c;
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

uint32_t port_state(const struct port *port)
{
	return progress_state(&port->progress, port->ctx);
}

/* ---- tear-down ---- */

/* After AGAIN and IN_USE the context stops nevertheless, once it is progressed. */
struct outcome port_stop(struct port *port)
{
	if (port_state(port) == DOCA_CTX_STATE_IDLE)
		return OUTCOME_SUCCESS;
	doca_error_t status = port->progress.ops->doca_ctx_stop(port->ctx);
	if (status == DOCA_ERROR_AGAIN || status == DOCA_ERROR_IN_USE)
		status = DOCA_ERROR_IN_PROGRESS;
	return (struct outcome){status, "doca_ctx_stop"};
}

static struct outcome destroy_context(struct port *port)
{
	const struct doca_ops *ops = port->progress.ops;
	if (port->consumer != NULL)
		TRY(ops, doca_comch_consumer_destroy, port->consumer);
	port->consumer = NULL;
	if (port->producer != NULL)
		TRY(ops, doca_comch_producer_destroy, port->producer);
	port->producer = NULL;
	port->ctx = NULL;
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
