/* SPDX-License-Identifier: Apache-2.0 */
/* An export, and the thread that gives importers access to it. */
#ifndef DMA_COPY_SOFT_REMOTE_EXPORT_H
#define DMA_COPY_SOFT_REMOTE_EXPORT_H

#include "remote_wire.h"

struct remote_peer;

struct soft_export {
	struct soft_export *next; /* the service's */
	uint64_t id;
	uint8_t key[REMOTE_KEY_SIZE];
	struct soft_range range;
	enum remote_backing backing;
	int backing_fd; /* -1 with REMOTE_BACKING_NONE */
	uint64_t backing_offset;
	uint8_t *descriptor;
	size_t descriptor_len;
	bool withdrawn;              /* no importer gets in any more */
	struct remote_peer *revoked; /* importers that were in when it was withdrawn, and may still be copying */
};

/* The export can be imported from now on, through the socket of this name. Starts the service with the first. */
doca_error_t soft_service_add(struct soft_export *export, char socket[REMOTE_NAME_SIZE]);

/* True: nobody touches the memory any more. False: an importer has not come out of a copy within a second; nobody else gets
 * in, and it can be called again. Stops the service with the last. */
bool soft_service_remove(struct soft_export *export);

#endif
