/* SPDX-License-Identifier: Apache-2.0 */
/* No function here allocates a batch of tasks: every pointer to one is refused, and what it points to is unchanged. */
#include <string.h>

#include "setup.h"

#define MARK 0x5a

/* Never read. */
static unsigned char foreign[64];
#define FOREIGN ((struct doca_task_batch *)foreign)

static void refuses(struct doca_task_batch *batch)
{
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_batch_submit(batch));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_batch_try_submit(batch));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_batch_get_status(batch));
	soft_doca_task_batch_set_user_data(batch, (union doca_data){.u64 = 7});
	CHECK(soft_doca_task_batch_get_user_data(batch).u64 == 0);
	CHECK(soft_doca_task_batch_get_ctx(batch) == NULL);
	CHECK(soft_doca_task_batch_get_ctx_user_data(batch).u64 == 0);
	CHECK(soft_doca_task_batch_get_tasks_num(batch) == 0);
	soft_doca_task_batch_free(batch);
}

static void null_is_no_batch(void)
{
	refuses(NULL);
}

static void foreign_memory_is_no_batch(void)
{
	memset(foreign, MARK, sizeof(foreign));
	refuses(FOREIGN);
	for (size_t i = 0; i < sizeof(foreign); i++)
		CHECK(foreign[i] == MARK);
}

/* A task of a running context is the most similar object. It completes as without the refused calls. */
static void a_task_is_no_batch(void)
{
	static uint8_t source[8] = "a batch", target[8];
	struct engine engine;
	engine_open(&engine, DPU_PCI, 1);
	struct doca_mmap *from = setup_mmap(engine.dev, source, sizeof(source), DOCA_ACCESS_FLAG_LOCAL_READ_ONLY);
	struct doca_mmap *to = setup_mmap(engine.dev, target, sizeof(target), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_buf *src = setup_buf(engine.inventory, from, source, sizeof(source), sizeof(source));
	struct doca_buf *dst = setup_buf(engine.inventory, to, target, sizeof(target), 0);
	struct doca_task *task = soft_doca_dma_task_memcpy_as_task(engine_task(&engine, src, dst));
	refuses((struct doca_task_batch *)task);
	CHECK_OK(soft_doca_task_submit(task));
	engine_wait(&engine, 1);
	CHECK(engine.failed == 0 && memcmp(source, target, sizeof(source)) == 0);
	CHECK_OK(soft_doca_buf_dec_refcount(src, NULL));
	CHECK_OK(soft_doca_buf_dec_refcount(dst, NULL));
	CHECK_OK(soft_doca_mmap_destroy(from));
	CHECK_OK(soft_doca_mmap_destroy(to));
	engine_close(&engine);
}

int main(void)
{
	setup_configure(NULL);
	RUN(null_is_no_batch);
	RUN(foreign_memory_is_no_batch);
	RUN(a_task_is_no_batch);
	return 0;
}
