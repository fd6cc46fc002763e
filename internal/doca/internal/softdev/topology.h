/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions the device has: a host and a BlueField with two physical functions each, and beside them, if they are
 * configured (DMA_COPY_SOFT_FUNCTIONS), a virtual and a scalable function of the host.
 */
#ifndef DMA_COPY_SOFT_TOPOLOGY_H
#define DMA_COPY_SOFT_TOPOLOGY_H

#include "core.h"

#define SOFT_NUM_HOST_FUNCTIONS 4
#define SOFT_NUM_FUNCTIONS 6

/* Each points to its function. They live as long as the process, so a devinfo outlives its list. */
extern struct doca_dev soft_devices[SOFT_NUM_FUNCTIONS];

/* Each function of the DPU has its own representors of all the host's functions. */
struct soft_representors {
	struct doca_dev *dev;
	struct doca_devinfo_rep infos[SOFT_NUM_HOST_FUNCTIONS];
};

#define SOFT_NUM_REPRESENTED 2
extern struct soft_representors soft_representors[SOFT_NUM_REPRESENTED];

/* False for a virtual or scalable function that is not configured. */
bool soft_function_exists(const struct doca_devinfo *function);

/* "vf,sf", one of them, or nothing, to a set of bits by enum doca_pci_func_type. INVALID_VALUE, with a detail. */
doca_error_t soft_parse_functions(const char *text, uint32_t *kinds);

#endif
