/* SPDX-License-Identifier: Apache-2.0 */
/* Exported memory, as its owner and as importers in other processes use it. Any thread may call these functions. */
#ifndef DMA_COPY_SOFT_REMOTE_H
#define DMA_COPY_SOFT_REMOTE_H

#include <stdbool.h>

#include "doca_abi.h"

struct soft_export;
struct soft_import;

struct soft_range {
	void *addr; /* in the exporter's address space */
	size_t len;
	uint32_t permissions; /* the exporter's PCI_READ_ONLY or PCI_READ_WRITE */
	bool of_dpu;          /* a memory map of the DPU, which the host may import */
};

/* Gives access to the range to every process that has the descriptor, which lives as long as the export. */
doca_error_t soft_export_open(const struct soft_range *range, struct soft_export **export);
void soft_export_descriptor(const struct soft_export *export, const void **desc, size_t *len);

/*
 * Revokes all access: after SUCCESS no importer touches the memory. IN_USE: an importer has been stopped in the middle
 * of a copy, or claims so; no other copy can begin, the export stays, and this can be called again.
 */
doca_error_t soft_export_close(struct soft_export *export);

/*
 * INVALID_VALUE: not one of our descriptors. DRIVER: the exporter is gone or refuses. TIME_OUT: its process is stopped.
 */
doca_error_t soft_import_open(const void *desc, size_t len, struct soft_import **import, struct soft_range *range);
void soft_import_close(struct soft_import *import);

/*
 * Copies between local memory and the exporter's [remote, remote + len), which the caller has checked to lie within the
 * range. IO_FAILED: the exporter revoked it, died, or its memory is gone. NOT_PERMITTED: the kernel refuses.
 */
doca_error_t soft_import_read(struct soft_import *import, void *local, const void *remote, size_t len);
doca_error_t soft_import_write(struct soft_import *import, void *remote, const void *local, size_t len);

/* For access without a copy. */

/*
 * Returns the memory as it is mapped here, regardless of the limit remote_mapping; NULL if it is not a memfd. It is
 * valid until soft_import_close, and accessed only between soft_import_begin and soft_import_end.
 */
void *soft_import_map(struct soft_import *import);

/* Until soft_import_end the exporter does not end the access. IO_FAILED: it has, or it died. */
doca_error_t soft_import_begin(struct soft_import *import);
void soft_import_end(struct soft_import *import);

#endif
