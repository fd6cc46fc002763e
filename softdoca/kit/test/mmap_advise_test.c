/* SPDX-License-Identifier: Apache-2.0 */
/* Advice on memory: a context whose tasks check their buffer. */
#include <doca_buf_inventory.h>
#include <doca_dev.h>
#include <doca_mmap.h>
#include <doca_mmap_advise.h>

#include "capture.h"
#include "check.h"

#define NUM_TASKS 2

static uint8_t memory[4096];

struct objects {
	struct doca_dev *dev;
	struct doca_mmap *mmap;
	struct doca_buf_inventory *inventory;
	struct doca_buf *buf;
	struct doca_pe *pe;
	struct doca_mmap_advise *advise;
	struct doca_ctx *ctx;
	unsigned completed, failed;
	uint64_t last; /* user data */
};

static void on_completed(struct doca_mmap_advise_task_invalidate_cache *task, union doca_data task_user_data,
			 union doca_data ctx_user_data)
{
	struct objects *o = (struct objects *)ctx_user_data.ptr;
	o->completed++;
	o->last = task_user_data.u64;
	doca_task_free(doca_mmap_advise_task_invalidate_cache_as_doca_task(task));
}

static void on_failed(struct doca_mmap_advise_task_invalidate_cache *task, union doca_data task_user_data,
		      union doca_data ctx_user_data)
{
	struct objects *o = (struct objects *)ctx_user_data.ptr;
	struct doca_task *base = doca_mmap_advise_task_invalidate_cache_as_doca_task(task);
	o->failed++;
	o->last = task_user_data.u64;
	EXPECT(DOCA_ERROR_IO_FAILED, doca_task_get_status(base));
	doca_task_free(base);
}

static void open_dev(struct objects *o)
{
	struct doca_devinfo **list;
	uint32_t count;
	uint64_t size;
	EXPECT(DOCA_SUCCESS, doca_devinfo_create_list(&list, &count));
	EXPECT(DOCA_SUCCESS, doca_mmap_advise_cap_task_cache_invalidate_is_supported(list[0]));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_mmap_advise_cap_task_cache_invalidate_is_supported(NULL));
	EXPECT(DOCA_SUCCESS, doca_mmap_advise_task_cache_invalidate_get_max_buf_size(list[0], &size));
	CHECK(size >= sizeof(memory));
	EXPECT(DOCA_SUCCESS, doca_dev_open(list[0], &o->dev));
	EXPECT(DOCA_SUCCESS, doca_devinfo_destroy_list(list));
}

static void open_buf(struct objects *o)
{
	EXPECT(DOCA_SUCCESS, doca_mmap_create(&o->mmap));
	EXPECT(DOCA_SUCCESS, doca_mmap_add_dev(o->mmap, o->dev));
	EXPECT(DOCA_SUCCESS, doca_mmap_set_memrange(o->mmap, memory, sizeof(memory)));
	EXPECT(DOCA_SUCCESS, doca_mmap_start(o->mmap));
	EXPECT(DOCA_SUCCESS, doca_buf_inventory_create(1, &o->inventory));
	EXPECT(DOCA_SUCCESS, doca_buf_inventory_start(o->inventory));
	EXPECT(DOCA_SUCCESS,
	       doca_buf_inventory_buf_get_by_addr(o->inventory, o->mmap, memory, sizeof(memory), &o->buf));
}

static void open_all(struct objects *o)
{
	union doca_data data;
	data.ptr = o;
	open_dev(o);
	open_buf(o);
	EXPECT(DOCA_SUCCESS, doca_pe_create(&o->pe));
	EXPECT(DOCA_SUCCESS, doca_mmap_advise_create(o->dev, &o->advise));
	o->ctx = doca_mmap_advise_as_ctx(o->advise);
	EXPECT(DOCA_SUCCESS, doca_ctx_set_user_data(o->ctx, data));
	EXPECT(DOCA_SUCCESS, doca_pe_connect_ctx(o->pe, o->ctx));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_ctx_start(o->ctx));
	EXPECT(DOCA_SUCCESS,
	       doca_mmap_advise_task_invalidate_cache_set_conf(o->advise, on_completed, on_failed, NUM_TASKS));
	EXPECT(DOCA_SUCCESS, doca_ctx_start(o->ctx));
	EXPECT(DOCA_ERROR_NOT_PERMITTED,
	       doca_mmap_advise_task_invalidate_cache_set_conf(o->advise, on_completed, on_failed, NUM_TASKS));
	EXPECT(DOCA_ERROR_IN_USE, doca_mmap_advise_destroy(o->advise));
}

static void close_all(struct objects *o)
{
	enum doca_ctx_states state;
	EXPECT(DOCA_SUCCESS, doca_ctx_get_state(o->ctx, &state));
	CHECK(state == DOCA_CTX_STATE_IDLE);
	EXPECT(DOCA_SUCCESS, doca_mmap_advise_destroy(o->advise));
	EXPECT(DOCA_SUCCESS, doca_pe_destroy(o->pe));
	EXPECT(DOCA_SUCCESS, doca_buf_dec_refcount(o->buf, NULL));
	EXPECT(DOCA_SUCCESS, doca_buf_inventory_destroy(o->inventory));
	EXPECT(DOCA_SUCCESS, doca_mmap_destroy(o->mmap));
	EXPECT(DOCA_SUCCESS, doca_dev_close(o->dev));
}

static struct doca_mmap_advise_task_invalidate_cache *alloc_task(struct objects *o, struct doca_buf *buf, uint64_t data)
{
	struct doca_mmap_advise_task_invalidate_cache *task;
	union doca_data user_data;
	user_data.u64 = data;
	EXPECT(DOCA_SUCCESS, doca_mmap_advise_task_invalidate_cache_alloc_init(o->advise, buf, user_data, &task));
	CHECK(doca_mmap_advise_task_invalidate_cache_get_buf(task) == buf);
	return task;
}

static void submit(struct doca_mmap_advise_task_invalidate_cache *task)
{
	EXPECT(DOCA_SUCCESS, doca_task_submit(doca_mmap_advise_task_invalidate_cache_as_doca_task(task)));
}

static void progress_until(struct objects *o, unsigned ended)
{
	while (o->completed + o->failed < ended)
		doca_pe_progress(o->pe);
	while (doca_pe_progress(o->pe))
		;
}

/* In order, and again and again; there are no more tasks than were asked for. */
static int tasks_complete(const void *argument)
{
	struct objects o = {.completed = 0};
	struct doca_mmap_advise_task_invalidate_cache *task;
	union doca_data none = {.u64 = 0};
	(void)argument;
	open_all(&o);
	for (unsigned i = 0; i < 10; i++) {
		struct doca_mmap_advise_task_invalidate_cache *first = alloc_task(&o, o.buf, 2 * i);
		task = alloc_task(&o, o.buf, 2 * i + 1);
		EXPECT(DOCA_ERROR_NO_MEMORY,
		       doca_mmap_advise_task_invalidate_cache_alloc_init(o.advise, o.buf, none, &task));
		submit(first);
		submit(task);
		progress_until(&o, 2 * i + 2);
		CHECK(o.failed == 0 && o.last == 2 * i + 1);
	}
	EXPECT(DOCA_SUCCESS, doca_ctx_stop(o.ctx));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_mmap_advise_task_invalidate_cache_alloc_init(o.advise, o.buf, none, &task));
	close_all(&o);
	return 0;
}

/* A task without a buffer fails, and stops the context; the task behind it is not executed. It starts again. */
static int a_failure_stops(const void *argument)
{
	struct objects o = {.completed = 0};
	(void)argument;
	open_all(&o);
	struct doca_mmap_advise_task_invalidate_cache *task = alloc_task(&o, o.buf, 5);
	doca_mmap_advise_task_invalidate_cache_set_buf(task, NULL);
	EXPECT(DOCA_ERROR_INVALID_VALUE,
	       doca_task_try_submit(doca_mmap_advise_task_invalidate_cache_as_doca_task(task)));
	submit(task);
	submit(alloc_task(&o, o.buf, 6));
	progress_until(&o, 2);
	CHECK(o.completed == 0 && o.failed == 2 && o.last == 6);
	EXPECT(DOCA_SUCCESS, doca_ctx_start(o.ctx));
	submit(alloc_task(&o, o.buf, 7));
	progress_until(&o, 3);
	CHECK(o.completed == 1 && o.last == 7);
	EXPECT(DOCA_SUCCESS, doca_ctx_stop(o.ctx));
	close_all(&o);
	return 0;
}

static const struct capture_case cases[] = {
	{"tasks complete", tasks_complete},
	{"a failure stops", a_failure_stops},
};

int main(void)
{
	return report("mmap advise", COUNT(cases), check_cases(cases, COUNT(cases)));
}
