/* SPDX-License-Identifier: Apache-2.0 */
/* The time model, by name and by number, and memcpy tasks with it. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../device/buf.h"
#include "../device/config.h"
#include "../device/dev.h"
#include "../device/limit.h"
#include "../device/mmap.h"
#include "../device/schedule.h"
#include "setup.h"

static const char *words(const char *limits, bool moves)
{
	static char text[200];
	setup_configure(limits);
	CHECK(soft_describe_model(text, sizeof(text)) == moves);
	return text;
}

static void test_words(void)
{
	CHECK(strcmp(words("", true), "") == 0);
	CHECK(strcmp(words("task_latency_us=7", true), "") == 0);
	CHECK(strcmp(words("move_bytes=0", false), "") == 0);
	CHECK(strcmp(words("model=400g", true), "400g: read 50.0 GB/s, write 50.0 GB/s, 1437 ns per task") == 0);
	CHECK(strcmp(words("model=400g,move_bytes=0", false),
		     "400g: read 50.0 GB/s, write 50.0 GB/s, 1437 ns per task") == 0);
	CHECK(strcmp(words("model=bluefield3,dma_latency_ns=5,dma_write_mb_per_s=0", true),
		     "bluefield3 with other numbers: read 38.1 GB/s, write no bound, 5 ns per task") == 0);
	CHECK(strcmp(words("dma_read_mb_per_s=1500", true), "custom: read 1.5 GB/s, write no bound, 0 ns per task") ==
	      0);
}

static void test_numbers_alter_the_model(void)
{
	setup_configure("model=bluefield3");
	struct soft_limits preset = *soft_limits();
	CHECK(soft_model_on(&preset) && preset.dma_read_mb_per_s == 38118 && preset.dma_write_mb_per_s == 31568);
	CHECK(preset.task_latency_us == 0 && preset.move_bytes == 1 && preset.max_buf_size == 2097152);
	setup_configure("dma_at_once=9,model=bluefield3,dma_read_mb_per_s=7"); /* in either order */
	CHECK(soft_limits()->dma_at_once == 9 && soft_limits()->dma_read_mb_per_s == 7);
	CHECK(soft_limits()->dma_write_mb_per_s == preset.dma_write_mb_per_s);
	setup_configure("model=bluefield3,model=bluefield2");
	CHECK(soft_limits()->dma_read_mb_per_s == 19059 && soft_limits()->dma_write_mb_per_s == 15784);
	setup_configure("model=bluefield3");
	setup_configure("");
	CHECK(!soft_model_on(soft_limits()));
}

static void refuse(const char *limits, const char *named)
{
	char error[300] = "";
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_configure(setup_dir(), limits, error, sizeof(error)));
	CHECK(strstr(error, named) != NULL);
	CHECK(!soft_model_on(soft_limits()));
}

static void test_what_is_refused(void)
{
	setup_configure("");
	refuse("model=", "\"\"");
	refuse("model=bluefield4", "bluefield2, bluefield3 or 400g, not \"bluefield4\"");
	refuse("model=bluefield", "\"bluefield\"");
	refuse("model=400G", "\"400G\"");
	refuse("max_buf_size=1,model=1", "\"1\"");
	refuse("model", "\"model\"");
	refuse("model=400g,nonsense=1", "nonsense");
	refuse("models=400g", "models");
	refuse("move_bytes=2", "move_bytes");
	refuse("dma_at_once=1025", "dma_at_once");
	refuse("dma_read_mb_per_s=10000001", "dma_read_mb_per_s");
	refuse("dma_latency_ns=60000000001", "dma_latency_ns");
	refuse("dma_read_gap_ns=-1", "dma_read_gap_ns");
}

/* ---- Tasks ---- */

static uint8_t source[8192], target[8192];
static struct engine engine;
static struct doca_mmap *from, *to;

static void open_engine(const char *limits)
{
	setup_configure(limits);
	engine_open(&engine, DPU_PCI, 16);
	from = setup_mmap(engine.dev, source, sizeof(source), 0);
	to = setup_mmap(engine.dev, target, sizeof(target), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	memset(source, 7, sizeof(source));
	memset(target, 0, sizeof(target));
}

static void close_engine(void)
{
	CHECK_OK(soft_doca_mmap_destroy(from));
	CHECK_OK(soft_doca_mmap_destroy(to));
	engine_close(&engine);
}

static doca_error_t copy(void)
{
	return engine_copy(&engine, to, target, from, source, sizeof(source));
}

static void test_bytes_arrive(void)
{
	open_engine("model=bluefield2,dma_at_once=1");
	CHECK_OK(copy());
	CHECK(memcmp(target, source, sizeof(target)) == 0);
	close_engine();
}

/* A task that moves no bytes is checked as any other. */
static void test_no_bytes_arrive(void)
{
	static const uint8_t zeros[sizeof(target)];
	open_engine("model=400g,move_bytes=0");
	CHECK_OK(copy());
	CHECK(memcmp(target, zeros, sizeof(target)) == 0);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, engine_copy(&engine, from, source + 4096, to, target, 10));
	CHECK_OK(copy());
	close_engine();
}

static struct doca_buf *src, *dst;

static void submit(void)
{
	src = setup_buf(engine.inventory, from, source, 10, 10);
	dst = setup_buf(engine.inventory, to, target, 10, 0);
	engine_submit(&engine, src, dst);
}

static void drop_buffers(void)
{
	CHECK_OK(soft_doca_buf_dec_refcount(src, NULL));
	CHECK_OK(soft_doca_buf_dec_refcount(dst, NULL));
}

static int readable(doca_notification_handle_t handle, int timeout_ms)
{
	struct pollfd wait = {.fd = handle, .events = POLLIN};
	return poll(&wait, 1, timeout_ms);
}

/* The handle wakes at the time of completion, however near. */
static void test_an_armed_engine_wakes(void)
{
	doca_notification_handle_t handle;
	open_engine("dma_latency_ns=3000");
	CHECK_OK(soft_doca_pe_get_notification_handle(engine.pe, &handle));
	for (unsigned i = 1; i <= 500; i++) {
		submit();
		CHECK_OK(soft_doca_pe_request_notification(engine.pe));
		CHECK(readable(handle, 30000) == 1);
		CHECK(soft_doca_pe_progress(engine.pe) == 1);
		CHECK(engine.completed == i && engine.failed == 0);
		CHECK_OK(soft_doca_pe_clear_notification(engine.pe, handle));
		drop_buffers();
	}
	close_engine();
}

static void open_engine_with_faults(const char *limits, const char *faults)
{
	CHECK(setenv("DMA_COPY_SOFT_FAULTS", faults, 1) == 0);
	open_engine(limits);
	CHECK(unsetenv("DMA_COPY_SOFT_FAULTS") == 0);
}

/* The wakeup for the first task is not one for the second, which completes a minute later. */
static void test_an_armed_engine_falls_silent(void)
{
	doca_notification_handle_t handle;
	open_engine_with_faults("dma_latency_ns=3000", "delay=2:60000000");
	CHECK_OK(soft_doca_pe_get_notification_handle(engine.pe, &handle));
	submit();
	struct doca_buf *first[] = {src, dst};
	submit();
	CHECK_OK(soft_doca_pe_request_notification(engine.pe));
	CHECK(readable(handle, 30000) == 1);
	CHECK(soft_doca_pe_progress(engine.pe) == 1 && engine.completed == 1);
	CHECK(readable(handle, 0) == 0 && soft_doca_pe_progress(engine.pe) == 0);
	CHECK_OK(soft_doca_pe_clear_notification(engine.pe, handle));
	CHECK_OK(soft_doca_pe_request_notification(engine.pe));
	CHECK(readable(handle, 0) == 0);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(soft_doca_dma_as_ctx(engine.dma)));
	CHECK(readable(handle, 30000) == 1); /* a task to flush */
	engine_restart(&engine);
	drop_buffers();
	src = first[0], dst = first[1];
	drop_buffers();
	close_engine();
}

static void test_flushed_tasks_leave_the_clock(void)
{
	open_engine("dma_latency_ns=60000000000");
	submit();
	CHECK(soft_doca_pe_progress(engine.pe) == 0);
	CHECK(atomic_load(&engine.dev->clock.inflight) == 1);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(soft_doca_dma_as_ctx(engine.dma)));
	engine_restart(&engine);
	CHECK(engine.failed == 1 && atomic_load(&engine.dev->clock.inflight) == 0);
	drop_buffers();
	close_engine();
}

int main(void)
{
	RUN(test_words);
	RUN(test_numbers_alter_the_model);
	RUN(test_what_is_refused);
	RUN(test_bytes_arrive);
	RUN(test_no_bytes_arrive);
	RUN(test_an_armed_engine_wakes);
	RUN(test_an_armed_engine_falls_silent);
	RUN(test_flushed_tasks_leave_the_clock);
	return 0;
}
