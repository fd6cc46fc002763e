/* SPDX-License-Identifier: Apache-2.0 */
/* The set-up of most tests: a private runtime directory, devices, registered memory, a copy engine. */
#ifndef DMA_COPY_CTEST_SETUP_H
#define DMA_COPY_CTEST_SETUP_H

#include "check.h"

#define HOST_PCI "0000:b1:00.0"
#define DPU_PCI "0000:03:00.0"

/*
 * Configures the device with a private runtime directory, which is removed when the process exits. limits may be NULL.
 */
void setup_configure(const char *limits);
const char *setup_dir(void);

/* Counts names in the runtime directory that begin with prefix. */
unsigned setup_count_files(const char *prefix);

/* Removes a directory with its contents. */
void setup_remove(const char *path);

struct doca_dev *setup_open_dev(const char *pci);

/* A started mmap over [addr, addr + len). */
struct doca_mmap *setup_mmap(struct doca_dev *dev, void *addr, size_t len, uint32_t permissions);

struct doca_buf *setup_buf(struct doca_buf_inventory *inventory, struct doca_mmap *mmap, void *addr, size_t len,
			   size_t data_len);

struct engine {
	struct doca_dev *dev;
	struct doca_pe *pe;
	struct doca_dma *dma;
	struct doca_buf_inventory *inventory;
	unsigned completed, failed; /* number of callbacks */
	doca_error_t last_status;
};

/* Runs with num_tasks memcpy tasks and 4096 buffers. */
void engine_open(struct engine *engine, const char *pci, uint32_t num_tasks);
void engine_close(struct engine *engine);

enum doca_ctx_states engine_state(const struct engine *engine);
struct doca_dma_task_memcpy *engine_task(struct engine *engine, const struct doca_buf *src, struct doca_buf *dst);
struct doca_task *engine_submit(struct engine *engine, const struct doca_buf *src, struct doca_buf *dst);

/* Progresses until there were count callbacks since engine_open. */
void engine_wait(struct engine *engine, unsigned count);

/* Progresses to IDLE and starts again. */
void engine_restart(struct engine *engine);

/* Copies bytes by one task; an engine that failed is restarted. */
doca_error_t engine_copy(struct engine *engine, struct doca_mmap *dst_mmap, void *dst, struct doca_mmap *src_mmap,
			 void *src, size_t len);

#endif
