/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop in which a copy spends its time: submits batches of tasks and polls completions, over memory that a host
 * exports. As a test it checks the bytes; `make instructions` runs it under callgrind and counts hot_loop alone, which
 * therefore must stay a function. Tasks are small, so that the count is of the work around the bytes.
 */
#define _GNU_SOURCE
#include "../engine.h"
#include "fixture.h"
#include "memory.h"

#define DEPTH 32U
#define TASKS 6400U
#define TASK_BYTES 64U
#define WINDOW ((size_t)DEPTH * TASK_BYTES)

static struct fixture fixture;
static uint8_t *window, *buffers;
static struct doca_mmap *exported, *imported, *local;
static struct engine *engine;

static struct doca_mmap *register_memory(struct doca_dev *dev, void *memory, uint32_t permissions)
{
	struct doca_mmap *map;
	CHECK_OK(soft_doca_mmap_create(&map));
	CHECK_OK(soft_doca_mmap_set_memrange(map, memory, WINDOW));
	CHECK_OK(soft_doca_mmap_add_dev(map, dev));
	CHECK_OK(soft_doca_mmap_set_permissions(map, permissions));
	CHECK_OK(soft_doca_mmap_start(map));
	return map;
}

static struct doca_mmap *import_window(void)
{
	const void *descriptor;
	size_t length;
	struct doca_mmap *map;
	CHECK_OK(soft_doca_mmap_export_pci(exported, fixture.host, &descriptor, &length));
	CHECK_OK(soft_doca_mmap_create_from_export(NULL, descriptor, length, fixture.dpu, &map));
	return map;
}

static void open_all(void)
{
	fixture_open(&fixture, NULL);
	window = memory_alloc(WINDOW);
	buffers = memory_alloc(WINDOW);
	CHECK(window != NULL && buffers != NULL);
	exported = register_memory(fixture.host, window, DOCA_ACCESS_FLAG_PCI_READ_ONLY);
	local = register_memory(fixture.dpu, buffers, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	imported = import_window();
	CHECK_OK(engine_open(soft_ops(), fixture.dpu, DEPTH, DEPTH, &engine).status);
}

static void close_all(void)
{
	CHECK_OK(progress_stop(&engine->progress).status);
	CHECK_OK(engine_close(engine).status);
	CHECK_OK(soft_doca_mmap_destroy(imported));
	CHECK_OK(soft_doca_mmap_destroy(local));
	CHECK_OK(soft_doca_mmap_destroy(exported));
	memory_free(window, WINDOW);
	memory_free(buffers, WINDOW);
	fixture_close(&fixture);
}

static void fill_batch(struct engine_copy batch[DEPTH])
{
	for (uint32_t i = 0; i < DEPTH; i++) {
		batch[i] = (struct engine_copy){
			.source_map = imported,
			.target_map = local,
			.source = (uintptr_t)window + i * TASK_BYTES,
			.target = (uintptr_t)buffers + i * TASK_BYTES,
			.len = TASK_BYTES,
			.tag = i,
		};
	}
}

/* Every task is submitted once and polled once; a batch is full whenever the engine is empty. */
__attribute__((noipa)) static uint32_t hot_loop(const struct engine_copy batch[DEPTH], uint32_t tasks)
{
	uint32_t good = 0;
	for (uint32_t begun = 0, ended = 0; ended < tasks;) {
		if (begun == ended)
			begun += engine_submit(engine, batch, DEPTH, NULL).submitted;
		uint32_t n = engine_poll(engine, DEPTH);
		for (uint32_t i = 0; i < n; i++)
			good += engine->completions[i].status == DOCA_SUCCESS;
		ended += n;
	}
	return good;
}

static void tasks_complete_in_a_loop(void)
{
	struct engine_copy batch[DEPTH];
	open_all();
	for (size_t i = 0; i < WINDOW; i++)
		window[i] = (uint8_t)(i * 7 + 1);
	fill_batch(batch);
	CHECK(engine_submit(engine, batch, 1, NULL).submitted == 1); /* the first opens the import */
	while (engine_poll(engine, 1) == 0)
		;
	memset(buffers, 0, WINDOW);
	CHECK(hot_loop(batch, TASKS) == TASKS);
	CHECK(memcmp(buffers, window, WINDOW) == 0);
	close_all();
}

int main(void)
{
	RUN(tasks_complete_in_a_loop);
	return 0;
}
