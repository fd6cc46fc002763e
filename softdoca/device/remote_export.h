/* SPDX-License-Identifier: Apache-2.0 */
/* An export, and the service thread that gives importers access to it. */
#ifndef DMA_COPY_SOFT_REMOTE_EXPORT_H
#define DMA_COPY_SOFT_REMOTE_EXPORT_H

#include "remote.h"
#include "remote_wire.h"

struct remote_peer;

struct soft_export {
	struct soft_export *next; /* in the service's list */
	uint64_t id;
	uint8_t key[REMOTE_KEY_SIZE];
	struct soft_range range;
	enum remote_backing backing;
	int backing_fd; /* -1 with REMOTE_BACKING_NONE */
	uint64_t backing_offset;
	uint8_t *descriptor;
	size_t descriptor_len;
	bool withdrawn;              /* no new importer is admitted */
	struct remote_peer *revoked; /* importers at the time it was withdrawn, which may still be copying */
};

/* From now on the export can be imported, through the socket of this name. The first export starts the service. */
doca_error_t soft_service_add(struct soft_export *export, char socket[REMOTE_NAME_SIZE]);

/*
 * Returns true once no importer touches the memory; false if one has not finished a copy within SOFT_REVOKE_NS. No
 * other importer is admitted, and it can be called again. The last export stops the service.
 */
bool soft_service_remove(struct soft_export *export);

#endif
