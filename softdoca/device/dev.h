/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices and representors: a host and a BlueField with two physical functions each and, if configured
 * (DMA_COPY_SOFT_FUNCTIONS), a virtual and a scalable function of the host.
 */
#ifndef DMA_COPY_SOFT_DEV_H
#define DMA_COPY_SOFT_DEV_H

#include <stdatomic.h>
#include <stdbool.h>

#include "config.h"
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

/*
 * Parses names separated by commas, or nothing: "vf" and "sf", as bits by enum doca_pci_func_type, and "host=BB:DD" and
 * "dpu=BB:DD". INVALID_VALUE, with a detail.
 */
doca_error_t soft_parse_functions(const char *text, uint32_t *kinds, struct soft_places *places);

/* Gives the functions their PCI addresses. No device is open. */
void soft_place_functions(const struct soft_places *places);

/* Converts "DDDD:BB:DD.F" or "BB:DD.F", in hexadecimal digits of either case, to the long form in lower case. */
bool soft_parse_pci_addr(const char *text, char addr[DOCA_DEVINFO_PCI_ADDR_SIZE]);

#endif
