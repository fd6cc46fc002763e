/* SPDX-License-Identifier: Apache-2.0 */
/* Memcpy tasks between memory of this process. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "../device/memory.h"
#include "../device/now.h"
#include "setup.h"

#define READ_WRITE DOCA_ACCESS_FLAG_LOCAL_READ_WRITE
#define MIB (1u << 20)

static uint8_t source[4 * MIB], target[4 * MIB];
static struct engine engine;
static struct doca_mmap *from, *to;

static void open_all(uint32_t num_tasks, const char *limits)
{
	setup_configure(limits);
	engine_open(&engine, DPU_PCI, num_tasks);
	from = setup_mmap(engine.dev, source, sizeof(source), 0);
	to = setup_mmap(engine.dev, target, sizeof(target), READ_WRITE);
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(i * 7 + i / 251);
	memset(target, 0, sizeof(target));
}

static void close_all(void)
{
	CHECK_OK(soft_doca_mmap_destroy(from));
	CHECK_OK(soft_doca_mmap_destroy(to));
	engine_close(&engine);
}

static struct doca_buf *src_buf(size_t offset, size_t len)
{
	return setup_buf(engine.inventory, from, source + offset, len, len);
}

static struct doca_buf *dst_buf(size_t offset, size_t len)
{
	return setup_buf(engine.inventory, to, target + offset, len, 0);
}

static void drop(struct doca_buf *buf)
{
	CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
}

static size_t data_len(const struct doca_buf *buf)
{
	size_t len;
	CHECK_OK(soft_doca_buf_get_data_len(buf, &len));
	return len;
}

/* ---- Configuration ---- */

static void ignore(struct doca_dma_task_memcpy *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

static void test_configuration(void)
{
	setup_configure("max_dma_tasks=8");
	struct doca_dev *dev = setup_open_dev(DPU_PCI);
	struct doca_pe *pe;
	struct doca_dma *dma;
	struct doca_dma_task_memcpy *task;
	uint32_t num;
	uint64_t size;
	CHECK_OK(soft_doca_pe_create(&pe));
	CHECK_OK(soft_doca_dma_create(dev, &dma));
	struct doca_ctx *ctx = soft_doca_dma_as_ctx(dma);
	CHECK_OK(soft_doca_dma_cap_task_memcpy_is_supported(soft_doca_dev_as_devinfo(dev)));
	CHECK_OK(soft_doca_dma_cap_get_max_num_tasks(dma, &num));
	CHECK_OK(soft_doca_dma_cap_task_memcpy_get_max_buf_size(soft_doca_dev_as_devinfo(dev), &size));
	CHECK(num == 8 && size == 2 * MIB);
	CHECK_RESULT(DOCA_ERROR_NOT_CONNECTED, soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_pe_connect_ctx(pe, ctx));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(ctx)); /* no task kind configured */
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dma_task_memcpy_set_conf(dma, NULL, ignore, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dma_task_memcpy_set_conf(dma, ignore, NULL, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dma_task_memcpy_set_conf(dma, ignore, ignore, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dma_task_memcpy_set_conf(dma, ignore, ignore, 9));
	CHECK_OK(soft_doca_dma_task_memcpy_set_conf(dma, ignore, ignore, 1));
	union doca_data none = {.u64 = 0};
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dma_task_memcpy_alloc_init(dma, NULL, NULL, none, &task));
	CHECK_OK(soft_doca_ctx_start(ctx));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dma_task_memcpy_set_conf(dma, ignore, ignore, 1));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dma_destroy(dma));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_close(dev));
	CHECK_OK(soft_doca_dma_task_memcpy_alloc_init(dma, NULL, NULL, none, &task));
	struct doca_dma_task_memcpy *second;
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, soft_doca_dma_task_memcpy_alloc_init(dma, NULL, NULL, none, &second));
	soft_doca_task_free(soft_doca_dma_task_memcpy_as_task(task));
	CHECK_OK(soft_doca_dma_task_memcpy_alloc_init(dma, NULL, NULL, none, &second));
	soft_doca_task_free(soft_doca_dma_task_memcpy_as_task(second));
	CHECK_OK(soft_doca_ctx_stop(ctx));
	CHECK_OK(soft_doca_dma_destroy(dma));
	CHECK_OK(soft_doca_pe_destroy(pe));
	CHECK_OK(soft_doca_dev_close(dev));
}

/* ---- Copies ---- */

static void test_sizes(void)
{
	static const size_t sizes[] = {1, 2, 4095, 4096, 4097, 2 * MIB - 1, 2 * MIB};
	open_all(4, NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(target, 0, sizeof(target));
		CHECK_OK(engine_copy(&engine, to, target + 3, from, source + 5, sizes[i]));
		CHECK(memcmp(target + 3, source + 5, sizes[i]) == 0);
		CHECK(target[2] == 0 && target[3 + sizes[i]] == 0);
	}
	close_all();
}

static void test_destination_grows(void)
{
	open_all(4, NULL);
	struct doca_buf *src = src_buf(0, 100), *dst = dst_buf(0, 250);
	for (unsigned i = 1; i <= 2; i++) {
		engine_submit(&engine, src, dst);
		engine_wait(&engine, i);
		CHECK(engine.failed == 0 && data_len(dst) == 100 * i);
	}
	CHECK(memcmp(target, source, 100) == 0 && memcmp(target + 100, source, 100) == 0);
	engine_submit(&engine, src, dst); /* 50 bytes are left */
	engine_wait(&engine, 3);
	CHECK(engine.failed == 1 && engine.last_status == DOCA_ERROR_IO_FAILED && data_len(dst) == 200);
	CHECK(strstr(soft_last_detail(), "space") != NULL && target[200] == 0);
	engine_restart(&engine);
	CHECK_OK(soft_doca_buf_reset_data_len(dst));
	engine_submit(&engine, src, dst);
	engine_wait(&engine, 4);
	CHECK(engine.failed == 1 && data_len(dst) == 100 && data_len(src) == 100);
	drop(src);
	drop(dst);
	close_all();
}

static void test_source_list(void)
{
	open_all(4, "max_buf_list_len=3");
	struct doca_buf *src = src_buf(1000, 10), *dst = dst_buf(0, 100);
	CHECK_OK(soft_doca_buf_chain_list(src, src_buf(0, 20)));
	CHECK_OK(soft_doca_buf_chain_list(src, src_buf(500, 30)));
	engine_submit(&engine, src, dst);
	engine_wait(&engine, 1);
	CHECK(engine.failed == 0 && data_len(dst) == 60);
	CHECK(memcmp(target, source + 1000, 10) == 0 && memcmp(target + 10, source, 20) == 0);
	CHECK(memcmp(target + 30, source + 500, 30) == 0);
	CHECK_OK(soft_doca_buf_chain_list(src, src_buf(0, 1)));
	engine_submit(&engine, src, dst);
	engine_wait(&engine, 2);
	CHECK(engine.failed == 1 && data_len(dst) == 60);
	engine_restart(&engine);
	drop(src);
	drop(dst);
	close_all();
}

/* A file that shrank under its mapping: a plain memcpy would raise SIGBUS. */
static void test_shrunken_file(void)
{
	open_all(4, NULL);
	FILE *file = tmpfile();
	CHECK(file != NULL && ftruncate(fileno(file), 8192) == 0);
	uint8_t *mapped = memory_map_file(fileno(file), 8192, true);
	CHECK(mapped != NULL);
	struct doca_mmap *mmap = setup_mmap(engine.dev, mapped, 8192, READ_WRITE);
	CHECK_OK(engine_copy(&engine, mmap, mapped, from, source, 8192));
	CHECK(memcmp(mapped, source, 8192) == 0);
	CHECK_OK(engine_copy(&engine, to, target, mmap, mapped, 8192));
	CHECK(memcmp(target, source, 8192) == 0);
	CHECK(ftruncate(fileno(file), 4096) == 0);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, engine_copy(&engine, to, target, mmap, mapped, 8192));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, engine_copy(&engine, mmap, mapped, from, source, 8192));
	CHECK_OK(engine_copy(&engine, mmap, mapped, from, source, 4096));
	CHECK(lseek(fileno(file), 0, SEEK_END) == 4096);
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	memory_free(mapped, 8192);
	fclose(file);
	close_all();
}

/* ---- Refusals ---- */

/* The task fails with a detail and stops the context; try_submit refuses it at once. */
static void expect_refused(const struct doca_buf *src, struct doca_buf *dst, const char *reason)
{
	unsigned failed = engine.failed;
	size_t before = dst == NULL ? 0 : data_len(dst);
	struct doca_task *task = soft_doca_dma_task_memcpy_as_task(engine_task(&engine, src, dst));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_try_submit(task));
	CHECK_OK(soft_doca_task_submit(task));
	engine_wait(&engine, engine.completed + 1);
	CHECK(engine.failed == failed + 1 && engine.last_status == DOCA_ERROR_IO_FAILED);
	CHECK(strstr(soft_last_detail(), reason) != NULL);
	CHECK(engine_state(&engine) != DOCA_CTX_STATE_RUNNING);
	CHECK(dst == NULL || data_len(dst) == before);
	engine_restart(&engine);
}

static void test_refused_buffers(void)
{
	open_all(4, NULL);
	struct doca_buf *src = src_buf(0, 100), *dst = dst_buf(0, 100);
	expect_refused(NULL, dst, "no source");
	expect_refused(src, NULL, "no destination");

	CHECK_OK(soft_doca_buf_set_data(src, source, 0));
	expect_refused(src, dst, "no data");
	CHECK_OK(soft_doca_buf_set_data(src, source + 1, 100));
	expect_refused(src, dst, "outside");
	CHECK_OK(soft_doca_buf_set_data(src, source - 1, 1));
	expect_refused(src, dst, "outside");
	CHECK_OK(soft_doca_buf_set_data(src, source, 100));
	CHECK_OK(soft_doca_buf_set_data(dst, target + 1, 0));
	expect_refused(src, dst, "space");
	CHECK_OK(soft_doca_buf_set_data(dst, target, 0));

	struct doca_buf *big = src_buf(0, 2 * MIB + 1), *large = dst_buf(0, 4 * MIB);
	expect_refused(big, large, "max_buf_size");
	struct doca_buf *half = src_buf(0, MIB);
	CHECK_OK(soft_doca_buf_chain_list(half, src_buf(0, MIB + 1)));
	expect_refused(half, large, "max_buf_size");

	struct doca_buf *list = dst_buf(0, 100);
	CHECK_OK(soft_doca_buf_chain_list(list, dst_buf(100, 100)));
	expect_refused(src, list, "list");
	drop(list);
	expect_refused(src, list, "inventory");

	struct doca_buf *overlapping = setup_buf(engine.inventory, to, target + 50, 100, 100);
	expect_refused(overlapping, dst, "overlap");
	drop(overlapping);
	drop(big);
	drop(large);
	drop(half);
	drop(src);
	drop(dst);
	close_all();
}

/* doca_mmap_set_memrange is mandatory, doca_mmap_set_permissions is not: without it, the map is LOCAL_READ_WRITE. */
static void test_default_permissions(void)
{
	static uint8_t bytes[64];
	const void *desc;
	size_t len;
	struct doca_mmap *mmap;
	open_all(1, NULL);
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_OK(soft_doca_mmap_set_memrange(mmap, bytes, sizeof(bytes)));
	CHECK_OK(soft_doca_mmap_add_dev(mmap, engine.dev));
	CHECK_OK(soft_doca_mmap_start(mmap));
	CHECK_OK(engine_copy(&engine, mmap, bytes, from, source, sizeof(bytes)));
	CHECK(memcmp(bytes, source, sizeof(bytes)) == 0);
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_export_pci(mmap, engine.dev, &desc, &len));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	close_all();
}

static void test_refused_access(void)
{
	open_all(4, NULL);
	struct doca_dev *other = setup_open_dev("03:00.1");
	struct doca_mmap *elsewhere = setup_mmap(other, source, 100, READ_WRITE);
	struct doca_buf *src = src_buf(0, 100), *dst = dst_buf(0, 100);
	struct doca_buf *read_only = setup_buf(engine.inventory, from, source + 200, 100, 0);
	struct doca_buf *foreign = setup_buf(engine.inventory, elsewhere, source, 100, 100);
	expect_refused(src, read_only, "permissions");
	expect_refused(foreign, dst, "not registered");
	drop(foreign);
	drop(read_only);
	drop(src);
	drop(dst);
	CHECK_OK(soft_doca_mmap_destroy(elsewhere));
	CHECK_OK(soft_doca_dev_close(other));
	close_all();
}

/* ---- Order and failure ---- */

/* Submission copies; one progress completes all. */
static void test_submission_is_execution(void)
{
	open_all(8, NULL);
	struct doca_buf *src[8], *dst[8];
	for (unsigned i = 0; i < 8; i++) {
		src[i] = src_buf(i, 1);
		dst[i] = dst_buf(i, 1);
		engine_submit(&engine, src[i], dst[i]);
		CHECK(target[i] == source[i] && data_len(dst[i]) == 0);
	}
	CHECK(engine.completed == 0);
	CHECK(soft_doca_pe_progress(engine.pe) == 1 && engine.completed == 8);
	CHECK(soft_doca_pe_progress(engine.pe) == 0);
	for (unsigned i = 0; i < 8; i++) {
		CHECK(data_len(dst[i]) == 1);
		drop(src[i]);
		drop(dst[i]);
	}
	close_all();
}

/* As on hardware, where a task appends is known when it is submitted. */
static void test_tasks_in_flight_share_a_destination(void)
{
	open_all(8, NULL);
	struct doca_buf *src = src_buf(0, 10), *dst = dst_buf(0, 10);
	for (unsigned i = 0; i < 8; i++)
		engine_submit(&engine, src, dst);
	engine_wait(&engine, 8);
	CHECK(engine.failed == 0 && data_len(dst) == 10 && memcmp(target, source, 10) == 0);
	drop(src);
	drop(dst);
	close_all();
}

static void test_failure_flushes_the_rest(void)
{
	open_all(8, NULL);
	struct doca_buf *src = src_buf(0, 10), *empty = src_buf(0, 10), *dst = dst_buf(0, 100);
	CHECK_OK(soft_doca_buf_reset_data_len(empty));
	engine_submit(&engine, src, dst);
	engine_submit(&engine, empty, dst);
	engine_submit(&engine, src, dst);
	engine_submit(&engine, src, dst);
	struct doca_task *held = soft_doca_dma_task_memcpy_as_task(engine_task(&engine, src, dst));
	CHECK(memcmp(target, source, 10) == 0 && target[10] == 0); /* behind a failure nothing is executed */
	CHECK(soft_doca_pe_progress(engine.pe) == 1);
	CHECK(engine.completed == 4 && engine.failed == 3 && engine.last_status == DOCA_ERROR_IO_FAILED);
	CHECK(data_len(dst) == 10);
	CHECK(soft_doca_pe_progress(engine.pe) == 0 && engine_state(&engine) == DOCA_CTX_STATE_STOPPING);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_task_submit(held));
	soft_doca_task_free(held); /* it kept the context from IDLE */
	engine_restart(&engine);
	engine_submit(&engine, src, dst);
	engine_wait(&engine, 5);
	CHECK(engine.failed == 3 && data_len(dst) == 20);
	drop(src);
	drop(empty);
	drop(dst);
	close_all();
}

static void test_stop_flushes(void)
{
	open_all(8, NULL);
	struct doca_buf *src = src_buf(0, 10), *dst = dst_buf(0, 100);
	engine_submit(&engine, src, dst);
	engine_submit(&engine, src, dst);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(soft_doca_dma_as_ctx(engine.dma)));
	CHECK(engine.completed == 0);
	engine_restart(&engine);
	CHECK(engine.completed == 2 && engine.failed == 2 && data_len(dst) == 0);
	drop(src);
	drop(dst);
	close_all();
}

static void test_latency(void)
{
	open_all(8, "task_latency_us=20000");
	struct doca_buf *src = src_buf(0, 10), *dst = dst_buf(0, 100);
	uint64_t submitted = soft_now_ns();
	engine_submit(&engine, src, dst);
	engine_wait(&engine, 1);
	CHECK(soft_now_ns() - submitted >= 20000000 && engine.failed == 0);
	drop(src);
	drop(dst);
	close_all();
}

int main(void)
{
	RUN(test_configuration);
	RUN(test_sizes);
	RUN(test_destination_grows);
	RUN(test_source_list);
	RUN(test_shrunken_file);
	RUN(test_refused_buffers);
	RUN(test_default_permissions);
	RUN(test_refused_access);
	RUN(test_submission_is_execution);
	RUN(test_tasks_in_flight_share_a_destination);
	RUN(test_failure_flushes_the_rest);
	RUN(test_stop_flushes);
	RUN(test_latency);
	return 0;
}
