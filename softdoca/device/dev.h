/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices and representors: a host and a BlueField with two physical functions each and, if configured
 * (DMA_COPY_SOFT_FUNCTIONS), a virtual and a scalable function of the host.
 */
#ifndef DMA_COPY_SOFT_DEV_H
#define DMA_COPY_SOFT_DEV_H

#include <stdatomic.h>
#include <stdbool.h>

#include "doca_abi.h"
#include "schedule.h"

enum soft_side { SOFT_HOST, SOFT_DPU };

/* Report whether memory maps of this side can be exported over PCI, and exports of the other be imported here. */
bool soft_side_exports(enum soft_side side);
bool soft_side_imports(enum soft_side side);

struct doca_devinfo {
	enum soft_side side;
	enum doca_pci_func_type kind;
	uint32_t sf_index;     /* of a scalable function */
	const char *pci_addr;  /* "0000:b1:00.0"; a scalable function has its parent's */
	const char *comch_key; /* its name in Comch addresses: unique, as long as a PCI address */
	const char *ibdev_name;
	const char *iface_name;
	uint16_t vhca_id;
};

struct doca_devinfo_rep {
	const struct doca_devinfo *function; /* of the host, which it represents */
	const char *vuid;
	const char *iface_name;
};

struct doca_dev {
	const struct doca_devinfo *info;
	struct soft_clock clock;
	atomic_uint users; /* memory maps, contexts and representors; close returns IN_USE while there are any */
	unsigned opened;   /* under the lock of dev.c */
};

struct doca_dev_rep {
	const struct doca_devinfo_rep *info;
	struct doca_dev *dev;
	atomic_uint users;
};

/* "vf,sf", one of them, or nothing, as bits by enum doca_pci_func_type. INVALID_VALUE, with a detail. */
doca_error_t soft_parse_functions(const char *text, uint32_t *kinds);

#endif
