/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include <stdbool.h>
#include <stdlib.h>

/*
 * The same callback for success and failure: the status differs. DOCA allows freeing the task inside the callback, and
 * a context that stops after a failure waits for that.
 */
static void on_completion(struct doca_dma_task_memcpy *memcpy_task, union doca_data tag, union doca_data ctx_data)
{
	struct engine *engine = ctx_data.ptr;
	const struct doca_ops *ops = engine->progress.ops;
	struct doca_task *task = ops->doca_dma_task_memcpy_as_task(memcpy_task);
	struct engine_completion *c = &engine->completions[engine->completed++];

	c->tag = tag.u64;
	c->status = ops->doca_task_get_status(task);
	drop_buffer(ops, ops->doca_dma_task_memcpy_get_src(memcpy_task));
	drop_buffer(ops, ops->doca_dma_task_memcpy_get_dst(memcpy_task));
	ops->doca_task_free(task);
	engine->inflight--;
}

static struct outcome configure(struct engine *engine)
{
	const struct doca_ops *ops = engine->progress.ops;
	engine->progress.ctx = ops->doca_dma_as_ctx(engine->dma);
	TRY(ops, doca_dma_task_memcpy_set_conf, engine->dma, on_completion, on_completion, engine->depth);
	struct outcome o = progress_connect(&engine->progress, engine);
	if (o.status != DOCA_SUCCESS)
		return o;
	TRY(ops, doca_buf_inventory_create, (size_t)engine->depth + engine->sources, &engine->inventory);
	TRY(ops, doca_buf_inventory_start, engine->inventory);
	TRY(ops, doca_ctx_start, engine->progress.ctx);
	return OUTCOME_SUCCESS;
}

static struct outcome open_parts(struct engine *engine, const struct doca_ops *ops, struct doca_dev *dev)
{
	struct outcome o = progress_open(&engine->progress, ops);
	if (o.status != DOCA_SUCCESS)
		return o;
	TRY(ops, doca_dma_create, dev, &engine->dma);
	return configure(engine);
}

struct outcome engine_open(const struct doca_ops *ops, struct doca_dev *dev, uint32_t depth, uint32_t sources,
			   struct engine **out)
{
	struct engine *engine = calloc(1, sizeof(*engine) + depth * sizeof(engine->completions[0]));
	if (engine == NULL)
		return (struct outcome){DOCA_ERROR_NO_MEMORY, "calloc"};
	engine->depth = depth;
	engine->sources = sources;
	struct outcome o = open_parts(engine, ops, dev);
	if (o.status == DOCA_SUCCESS)
		*out = engine;
	else
		engine_close(engine);
	return o;
}

struct outcome engine_max_depth(const struct doca_ops *ops, struct doca_dev *dev, uint32_t *depth)
{
	struct doca_dma *dma;
	TRY(ops, doca_dma_create, dev, &dma);
	doca_error_t status = ops->doca_dma_cap_get_max_num_tasks(dma, depth);
	/* It cannot be tried again later. */
	if (ops->doca_dma_destroy(dma) != DOCA_SUCCESS)
		TRY(ops, doca_dma_destroy, dma);
	return (struct outcome){status, "doca_dma_cap_get_max_num_tasks"};
}

/*
 * The inventory has a buffer for every range and every target that may be in flight, so it is empty only because of
 * copies in flight.
 */
static struct outcome not_taken(const struct engine *engine, doca_error_t status, const char *op)
{
	bool empty = status == DOCA_ERROR_NO_MEMORY && engine->inflight > 0;
	return (struct outcome){empty ? DOCA_ERROR_AGAIN : status, op};
}

static inline struct outcome take_source(struct engine *engine, struct doca_mmap *map, uint64_t source, uint64_t len,
					 struct doca_buf **buf)
{
	doca_error_t status = doca_ops_buf_get_by_data(engine->progress.ops, engine->inventory, map,
						       (void *)(uintptr_t)source, len, buf);
	if (status == DOCA_SUCCESS)
		return OUTCOME_SUCCESS;
	return not_taken(engine, status, "doca_buf_inventory_buf_get_by_data");
}

/* A known tail saves DOCA the walk to it. */
static struct outcome append_buffer(const struct doca_ops *ops, struct doca_buf *head, struct doca_buf *tail,
				    struct doca_buf *buf)
{
	if (ops->doca_buf_chain_list_tail != NULL)
		TRY(ops, doca_buf_chain_list_tail, head, tail, buf);
	else
		TRY(ops, doca_buf_chain_list, head, buf);
	return OUTCOME_SUCCESS;
}

/* On failure the list has the buffers before the one that failed. */
static struct outcome append_sources(struct engine *engine, struct doca_mmap *map, const struct engine_range *ranges,
				     uint64_t count, struct doca_buf *head)
{
	struct doca_buf *tail = head;
	for (uint64_t i = 0; i < count; i++) {
		struct doca_buf *buf;
		struct outcome o = take_source(engine, map, ranges[i].source, ranges[i].len, &buf);
		if (o.status != DOCA_SUCCESS)
			return o;
		o = append_buffer(engine->progress.ops, head, tail, buf);
		if (o.status != DOCA_SUCCESS) {
			drop_buffer(engine->progress.ops, buf);
			return o;
		}
		tail = buf;
	}
	return OUTCOME_SUCCESS;
}

static uint64_t length_of(const struct engine_copy *copy, const struct engine_range *more)
{
	uint64_t len = copy->len;
	for (uint64_t i = 0; i < copy->more; i++)
		len += more[i].len;
	return len;
}

/* The reference count of the first buffer of a list counts for all. */
static struct outcome take_buffers(struct engine *engine, const struct engine_copy *copy,
				   const struct engine_range *more, struct doca_buf **source, struct doca_buf **target)
{
	const struct doca_ops *ops = engine->progress.ops;
	struct outcome o = take_source(engine, copy->source_map, copy->source, copy->len, source);
	if (o.status != DOCA_SUCCESS)
		return o;
	if (copy->more > 0)
		o = append_sources(engine, copy->source_map, more, copy->more, *source);
	if (o.status == DOCA_SUCCESS) {
		doca_error_t status =
			doca_ops_buf_get_by_addr(ops, engine->inventory, copy->target_map,
						 (void *)(uintptr_t)copy->target, length_of(copy, more), target);
		if (status == DOCA_SUCCESS)
			return OUTCOME_SUCCESS;
		o = not_taken(engine, status, "doca_buf_inventory_buf_get_by_addr");
	}
	drop_buffer(ops, *source);
	return o;
}

static struct outcome submit_task(struct engine *engine, struct doca_buf *source, struct doca_buf *target, uint64_t tag)
{
	const struct doca_ops *ops = engine->progress.ops;
	struct doca_dma_task_memcpy *memcpy_task;
	union doca_data user_data = {.u64 = tag};

	TRY(ops, doca_dma_task_memcpy_alloc_init, engine->dma, source, target, user_data, &memcpy_task);
	struct doca_task *task = ops->doca_dma_task_memcpy_as_task(memcpy_task);
	doca_error_t status = ops->doca_task_submit(task);
	if (status != DOCA_SUCCESS)
		ops->doca_task_free(task);
	return (struct outcome){status, "doca_task_submit"};
}

static struct outcome submit_one(struct engine *engine, const struct engine_copy *copy, const struct engine_range *more)
{
	if (engine->inflight == engine->depth)
		return (struct outcome){DOCA_ERROR_AGAIN, "doca_task_submit"};
	struct doca_buf *source;
	struct doca_buf *target;
	struct outcome o = take_buffers(engine, copy, more, &source, &target);
	if (o.status != DOCA_SUCCESS)
		return o;
	o = submit_task(engine, source, target, copy->tag);
	if (o.status == DOCA_SUCCESS) {
		engine->inflight++;
		return o;
	}
	drop_buffer(engine->progress.ops, target);
	drop_buffer(engine->progress.ops, source);
	return o;
}

struct engine_submission engine_submit(struct engine *engine, const struct engine_copy *copies, uint32_t count,
				       const struct engine_range *more)
{
	/* GCC 11 reports fields that follow a macro and are not named. */
	struct engine_submission s = {.outcome = OUTCOME_SUCCESS, .submitted = 0};
	while (s.submitted < count && s.outcome.status == DOCA_SUCCESS) {
		const struct engine_copy *copy = &copies[s.submitted];
		s.outcome = submit_one(engine, copy, more);
		s.submitted += s.outcome.status == DOCA_SUCCESS;
		if (copy->more > 0)
			more += copy->more;
	}
	return s;
}

uint32_t engine_poll(struct engine *engine, uint32_t max)
{
	const struct doca_ops *ops = engine->progress.ops;
	engine->completed = 0;
	while (engine->completed < max && ops->doca_pe_progress(engine->progress.pe))
		;
	return engine->completed;
}

struct outcome engine_close(struct engine *engine)
{
	const struct doca_ops *ops = engine->progress.ops;
	if (engine->dma != NULL) {
		TRY(ops, doca_dma_destroy, engine->dma);
		engine->dma = NULL;
		engine->progress.ctx = NULL;
	}
	struct outcome o = progress_close(&engine->progress);
	if (o.status != DOCA_SUCCESS)
		return o;
	if (engine->inventory != NULL)
		TRY(ops, doca_buf_inventory_destroy, engine->inventory);
	free(engine);
	return OUTCOME_SUCCESS;
}
