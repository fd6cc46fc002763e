/* SPDX-License-Identifier: Apache-2.0 */
/* The DPA of a device, and memory of it. */
#ifndef EXAMPLES_DPA_H
#define EXAMPLES_DPA_H

#include <doca_dev.h>
#include <doca_dpa.h>

/* Starts the DPA with this program. */
doca_error_t dpa_open(struct doca_dev *dev, struct doca_dpa_app *app, struct doca_dpa **dpa);

/* Returns what the DPA's code has done wrong, if anything. */
doca_error_t dpa_close(struct doca_dpa *dpa);

/* Copies what a kernel needs to know into memory of the DPA, which lives as long as the DPA. */
doca_error_t dpa_store(struct doca_dpa *dpa, void *from, size_t size, doca_dpa_dev_uintptr_t *stored);

/* A thread that runs the kernel when a completion activates it; started, and not yet run. */
doca_error_t dpa_thread_open(struct doca_dpa *dpa, doca_dpa_func_t *kernel, uint64_t arg,
			     struct doca_dpa_thread **thread);

#endif
