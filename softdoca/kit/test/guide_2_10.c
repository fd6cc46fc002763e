/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as DOCA 2.10's guides show: one DMA task within the memory of this side. It never calls
 * doca_mmap_set_permissions, and closes its device in a shared function and then once more, as NULL.
 */
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_error.h>
#include <doca_log.h>
#include <doca_mmap.h>
#include <doca_pe.h>

DOCA_LOG_REGISTER(GUIDE_2_10);

#define SIZE 4096
#define NUM_BUFS 2

struct objects {
	struct doca_dev *dev;
	struct doca_mmap *src_mmap, *dst_mmap;
	struct doca_buf_inventory *inventory;
	struct doca_pe *pe;
	struct doca_dma *dma;
	struct doca_ctx *ctx;
};

typedef doca_error_t (*is_wanted)(const struct doca_devinfo *devinfo);

static doca_error_t copies_memory(const struct doca_devinfo *devinfo)
{
	uint64_t rate, size;
	doca_error_t result = doca_devinfo_get_active_rate(devinfo, &rate);
	if (result == DOCA_SUCCESS)
		result = doca_dma_cap_task_memcpy_get_max_buf_size(devinfo, &size);
	if (result != DOCA_SUCCESS || size < SIZE)
		return DOCA_ERROR_NOT_SUPPORTED;
	DOCA_LOG_INFO("%" PRIu64 " bits per second, %" PRIu64 " bytes per task", rate, size);
	return doca_dma_cap_task_memcpy_is_supported(devinfo);
}

static doca_error_t open_device_that(is_wanted wanted, struct doca_dev **dev)
{
	struct doca_devinfo **list;
	uint32_t count;
	doca_error_t result = doca_devinfo_create_list(&list, &count);
	if (result != DOCA_SUCCESS)
		return result;
	result = DOCA_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < count && result == DOCA_ERROR_NOT_FOUND; i++) {
		if (wanted(list[i]) == DOCA_SUCCESS)
			result = doca_dev_open(list[i], dev);
	}
	doca_devinfo_destroy_list(list);
	return result;
}

static doca_error_t map_memory(struct doca_dev *dev, void *memory, struct doca_mmap **mmap)
{
	doca_error_t result = doca_mmap_create(mmap);
	if (result == DOCA_SUCCESS)
		result = doca_mmap_set_memrange(*mmap, memory, SIZE);
	if (result == DOCA_SUCCESS)
		result = doca_mmap_add_dev(*mmap, dev);
	return result == DOCA_SUCCESS ? doca_mmap_start(*mmap) : result;
}

static void completed(struct doca_dma_task_memcpy *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)ctx_data;
	*(doca_error_t *)task_data.ptr = doca_task_get_status(doca_dma_task_memcpy_as_task(task));
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static doca_error_t start_context(struct objects *objects)
{
	doca_error_t result = doca_pe_create(&objects->pe);
	if (result == DOCA_SUCCESS)
		result = doca_dma_create(objects->dev, &objects->dma);
	if (result != DOCA_SUCCESS)
		return result;
	objects->ctx = doca_dma_as_ctx(objects->dma);
	result = doca_dma_task_memcpy_set_conf(objects->dma, completed, completed, 1);
	if (result == DOCA_SUCCESS)
		result = doca_pe_connect_ctx(objects->pe, objects->ctx);
	return result == DOCA_SUCCESS ? doca_ctx_start(objects->ctx) : result;
}

static doca_error_t open_objects(struct objects *objects, void *src, void *dst)
{
	doca_error_t result = open_device_that(copies_memory, &objects->dev);
	if (result == DOCA_SUCCESS)
		result = map_memory(objects->dev, src, &objects->src_mmap);
	if (result == DOCA_SUCCESS)
		result = map_memory(objects->dev, dst, &objects->dst_mmap);
	if (result == DOCA_SUCCESS)
		result = doca_buf_inventory_create(NUM_BUFS, &objects->inventory);
	if (result == DOCA_SUCCESS)
		result = doca_buf_inventory_start(objects->inventory);
	return result == DOCA_SUCCESS ? start_context(objects) : result;
}

static doca_error_t close_objects(struct objects *objects)
{
	doca_error_t result = objects->ctx == NULL ? DOCA_SUCCESS : doca_ctx_stop(objects->ctx);
	if (objects->dma != NULL)
		DOCA_ERROR_PROPAGATE(result, doca_dma_destroy(objects->dma));
	if (objects->pe != NULL)
		DOCA_ERROR_PROPAGATE(result, doca_pe_destroy(objects->pe));
	if (objects->inventory != NULL)
		DOCA_ERROR_PROPAGATE(result, doca_buf_inventory_destroy(objects->inventory));
	if (objects->dst_mmap != NULL)
		DOCA_ERROR_PROPAGATE(result, doca_mmap_destroy(objects->dst_mmap));
	if (objects->src_mmap != NULL)
		DOCA_ERROR_PROPAGATE(result, doca_mmap_destroy(objects->src_mmap));
	DOCA_ERROR_PROPAGATE(result, doca_dev_close(objects->dev));
	objects->dev = NULL;
	return result;
}

static doca_error_t copy(struct objects *objects, void *src, void *dst)
{
	struct doca_buf *from, *to;
	struct doca_dma_task_memcpy *task;
	union doca_data data;
	doca_error_t status = DOCA_ERROR_IN_PROGRESS;
	data.ptr = &status;
	doca_error_t result =
		doca_buf_inventory_buf_get_by_data(objects->inventory, objects->src_mmap, src, SIZE, &from);
	if (result == DOCA_SUCCESS)
		result = doca_buf_inventory_buf_get_by_addr(objects->inventory, objects->dst_mmap, dst, SIZE, &to);
	if (result == DOCA_SUCCESS)
		result = doca_dma_task_memcpy_alloc_init(objects->dma, from, to, data, &task);
	if (result == DOCA_SUCCESS)
		result = doca_task_submit(doca_dma_task_memcpy_as_task(task));
	if (result != DOCA_SUCCESS)
		return result;
	while (status == DOCA_ERROR_IN_PROGRESS)
		doca_pe_progress(objects->pe);
	doca_buf_dec_refcount(to, NULL);
	doca_buf_dec_refcount(from, NULL);
	return status;
}

int main(void)
{
	struct objects objects;
	uint8_t *src = (uint8_t *)malloc(SIZE), *dst = (uint8_t *)calloc(1, SIZE);
	memset(&objects, 0, sizeof(objects));
	memset(src, 0x5a, SIZE);
	doca_error_t result = doca_log_backend_create_standard();
	if (result == DOCA_SUCCESS)
		result = open_objects(&objects, src, dst);
	if (result == DOCA_SUCCESS)
		result = copy(&objects, src, dst);
	DOCA_ERROR_PROPAGATE(result, close_objects(&objects));
	DOCA_ERROR_PROPAGATE(result, doca_dev_close(objects.dev));
	bool same = memcmp(src, dst, SIZE) == 0;
	free(src);
	free(dst);
	DOCA_LOG_INFO("%s, the bytes %s", doca_error_get_descr(result), same ? "are the same" : "differ");
	return result == DOCA_SUCCESS && same ? EXIT_SUCCESS : EXIT_FAILURE;
}
