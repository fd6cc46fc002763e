/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DMA_COPY_SOFT_REMOTE_IMPORT_H
#define DMA_COPY_SOFT_REMOTE_IMPORT_H

#include "remote.h"
#include "remote_wire.h"

/* How to copy, fastest first. */
enum remote_method {
	REMOTE_BY_MAPPING,    /* memcpy from and to the exporter's sealed memfd, mapped here too */
	REMOTE_BY_PROCESS,    /* process_vm_readv and process_vm_writev: any memory, if the kernel allows */
	REMOTE_BY_DESCRIPTOR, /* pread and pwrite of the exporter's file or memfd */
};

/* Several threads may copy through one import: only the atomic members change after soft_import_open. */
struct soft_import {
	int socket;
	pid_t pid; /* of the exporter; 0 if it is not visible here */
	struct soft_range range;
	struct remote_gate *gate;
	enum remote_backing backing;
	int backing_fd;
	uint64_t backing_offset;
	void *mapping; /* pages that hold the range, or NULL */
	size_t mapping_len;
	uint8_t *mapped; /* range.addr in them */
	_Atomic(enum remote_method) method;
	atomic_bool swept;
};

#endif
