/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "setup.h"

#include <dirent.h>
#include <ftw.h>
#include <string.h>
#include <unistd.h>

static char dir[256];
static pid_t dir_owner;

/* ---- Runtime directory ---- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void setup_remove(const char *path)
{
	CHECK(nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

/* Not in a forked child, because the directory is its parent's. */
static void remove_dir(void)
{
	if (dir_owner == getpid())
		nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_dir(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(dir, sizeof(dir), "%s/dma-copy-test-XXXXXX", tmp == NULL ? "/tmp" : tmp);
	CHECK(mkdtemp(dir) != NULL);
	dir_owner = getpid();
	atexit(remove_dir);
}

void setup_configure(const char *limits)
{
	if (dir[0] == '\0')
		make_dir();
	CHECK_OK(soft_configure(dir, limits == NULL ? "" : limits, NULL, 0));
}

const char *setup_dir(void)
{
	return dir;
}

unsigned setup_count_files(const char *prefix)
{
	unsigned count = 0;
	DIR *d = opendir(dir);
	CHECK(d != NULL);
	for (const struct dirent *e; (e = readdir(d)) != NULL;)
		count += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	closedir(d);
	return count;
}

/* ---- Devices and memory ---- */

struct doca_dev *setup_open_dev(const char *pci)
{
	struct doca_devinfo **list;
	uint32_t count;
	struct doca_dev *dev = NULL;
	CHECK_OK(soft_doca_devinfo_create_list(&list, &count));
	for (uint32_t i = 0; i < count; i++) {
		uint8_t equal;
		CHECK_OK(soft_doca_devinfo_is_equal_pci_addr(list[i], pci, &equal));
		if (equal)
			CHECK_OK(soft_doca_dev_open(list[i], &dev));
	}
	CHECK_OK(soft_doca_devinfo_destroy_list(list));
	CHECK(dev != NULL);
	return dev;
}

struct doca_mmap *setup_mmap(struct doca_dev *dev, void *addr, size_t len, uint32_t permissions)
{
	struct doca_mmap *mmap;
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_OK(soft_doca_mmap_set_memrange(mmap, addr, len));
	CHECK_OK(soft_doca_mmap_add_dev(mmap, dev));
	CHECK_OK(soft_doca_mmap_set_permissions(mmap, permissions));
	CHECK_OK(soft_doca_mmap_start(mmap));
	return mmap;
}

struct doca_buf *setup_buf(struct doca_buf_inventory *inventory, struct doca_mmap *mmap, void *addr, size_t len,
			   size_t data_len)
{
	struct doca_buf *buf;
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, len, addr, data_len, &buf));
	return buf;
}

/* ---- Engine ---- */

static void on_completion(struct doca_dma_task_memcpy *task, union doca_data task_data, union doca_data ctx_data)
{
	struct engine *engine = ctx_data.ptr;
	(void)task_data;
	engine->completed++;
	engine->last_status = soft_doca_task_get_status(soft_doca_dma_task_memcpy_as_task(task));
	soft_doca_task_free(soft_doca_dma_task_memcpy_as_task(task));
}

static void on_error(struct doca_dma_task_memcpy *task, union doca_data task_data, union doca_data ctx_data)
{
	struct engine *engine = ctx_data.ptr;
	engine->failed++;
	on_completion(task, task_data, ctx_data);
}

void engine_open(struct engine *engine, const char *pci, uint32_t num_tasks)
{
	*engine = (struct engine){.dev = setup_open_dev(pci)};
	CHECK_OK(soft_doca_pe_create(&engine->pe));
	CHECK_OK(soft_doca_dma_create(engine->dev, &engine->dma));
	CHECK_OK(soft_doca_dma_task_memcpy_set_conf(engine->dma, on_completion, on_error, num_tasks));
	struct doca_ctx *ctx = soft_doca_dma_as_ctx(engine->dma);
	CHECK_OK(soft_doca_ctx_set_user_data(ctx, (union doca_data){.ptr = engine}));
	CHECK_OK(soft_doca_pe_connect_ctx(engine->pe, ctx));
	CHECK_OK(soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_buf_inventory_create(4096, &engine->inventory));
	CHECK_OK(soft_doca_buf_inventory_start(engine->inventory));
}

void engine_close(struct engine *engine)
{
	CHECK_OK(soft_doca_ctx_stop(soft_doca_dma_as_ctx(engine->dma)));
	CHECK_OK(soft_doca_dma_destroy(engine->dma));
	CHECK_OK(soft_doca_pe_destroy(engine->pe));
	CHECK_OK(soft_doca_buf_inventory_destroy(engine->inventory));
	CHECK_OK(soft_doca_dev_close(engine->dev));
}

enum doca_ctx_states engine_state(const struct engine *engine)
{
	enum doca_ctx_states state;
	CHECK_OK(soft_doca_ctx_get_state(soft_doca_dma_as_ctx(engine->dma), &state));
	return state;
}

struct doca_dma_task_memcpy *engine_task(struct engine *engine, const struct doca_buf *src, struct doca_buf *dst)
{
	struct doca_dma_task_memcpy *task;
	CHECK_OK(soft_doca_dma_task_memcpy_alloc_init(engine->dma, src, dst, (union doca_data){.u64 = 0}, &task));
	return task;
}

struct doca_task *engine_submit(struct engine *engine, const struct doca_buf *src, struct doca_buf *dst)
{
	struct doca_task *task = soft_doca_dma_task_memcpy_as_task(engine_task(engine, src, dst));
	CHECK_OK(soft_doca_task_submit(task));
	return task;
}

void engine_wait(struct engine *engine, unsigned count)
{
	while (engine->completed < count)
		soft_doca_pe_progress(engine->pe);
}

void engine_restart(struct engine *engine)
{
	while (engine_state(engine) != DOCA_CTX_STATE_IDLE)
		soft_doca_pe_progress(engine->pe);
	CHECK_OK(soft_doca_ctx_start(soft_doca_dma_as_ctx(engine->dma)));
}

doca_error_t engine_copy(struct engine *engine, struct doca_mmap *dst_mmap, void *dst, struct doca_mmap *src_mmap,
			 void *src, size_t len)
{
	struct doca_buf *from = setup_buf(engine->inventory, src_mmap, src, len, len);
	struct doca_buf *to = setup_buf(engine->inventory, dst_mmap, dst, len, 0);
	engine_submit(engine, from, to);
	engine_wait(engine, engine->completed + 1);
	doca_error_t status = engine->last_status;
	if (status != DOCA_SUCCESS)
		engine_restart(engine);
	CHECK_OK(soft_doca_buf_dec_refcount(from, NULL));
	CHECK_OK(soft_doca_buf_dec_refcount(to, NULL));
	return status;
}
