/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote_export.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "config.h"
#include "error.h"
#include "memory.h"
#include "remote.h"
#include "remote_wire.h"

/* Returns our own descriptor of the backing, with no more access than the export grants. */
static int share_fd(int fd, bool read_only)
{
	if (!read_only || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return fcntl(fd, F_DUPFD_CLOEXEC, 0);
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Without a backing importers read the memory of this process. */
static void find_backing(struct soft_export *export)
{
	struct memory_backing found;
	export->backing = REMOTE_BACKING_NONE;
	export->backing_fd = -1;
	if (!memory_find(export->range.addr, export->range.len, &found) || found.kind == MEMORY_PRIVATE)
		return;
	int fd = share_fd(found.fd, (export->range.permissions & DOCA_ACCESS_FLAG_PCI_READ_WRITE) == 0);
	if (fd < 0)
		return;
	export->backing = found.kind == MEMORY_FILE ? REMOTE_BACKING_FILE : REMOTE_BACKING_ANONYMOUS;
	export->backing_fd = fd;
	export->backing_offset = found.offset;
}

static void write_descriptor(struct soft_export *export, const char socket[REMOTE_NAME_SIZE])
{
	struct remote_descriptor d = {
		.magic = REMOTE_MAGIC,
		.version = REMOTE_VERSION,
		.permissions = export->range.permissions,
		.export_id = export->id,
		.addr = (uintptr_t) export->range.addr,
		.len = export->range.len,
	};
	memcpy(d.key, export->key, sizeof(d.key));
	memcpy(d.socket, socket, sizeof(d.socket));
	memcpy(export->descriptor, &d, sizeof(d));
}

static struct soft_export *new_export(const struct soft_range *range)
{
	size_t len = sizeof(struct remote_descriptor);
	if (len < soft_limits()->max_export_size)
		len = soft_limits()->max_export_size;
	struct soft_export *export = calloc(1, sizeof(*export));
	if (export == NULL)
		return NULL;
	export->descriptor = calloc(1, len);
	export->descriptor_len = len;
	export->range = *range;
	if (export->descriptor != NULL)
		return export;
	free(export);
	return NULL;
}

static void free_export(struct soft_export *export)
{
	explicit_bzero(export->key, sizeof(export->key));
	explicit_bzero(export->descriptor, export->descriptor_len);
	free(export->descriptor);
	free(export);
}

doca_error_t soft_export_open(const struct soft_range *range, struct soft_export **export)
{
	struct soft_export *created = new_export(range);
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	if (getrandom(created->key, sizeof(created->key), 0) != sizeof(created->key)) {
		free_export(created);
		return DOCA_ERROR_DRIVER;
	}
	find_backing(created);
	char socket[REMOTE_NAME_SIZE];
	doca_error_t result = soft_service_add(created, socket);
	if (result != DOCA_SUCCESS) {
		if (created->backing_fd >= 0)
			close(created->backing_fd);
		free_export(created);
		return result;
	}
	write_descriptor(created, socket);
	*export = created;
	return DOCA_SUCCESS;
}

void soft_export_descriptor(const struct soft_export *export, const void **desc, size_t *len)
{
	*desc = export->descriptor;
	*len = export->descriptor_len;
}

doca_error_t soft_export_close(struct soft_export *export)
{
	if (!soft_service_remove(export)) {
		soft_detail("an importer has not finished its copy, so the memory stays registered");
		return DOCA_ERROR_IN_USE;
	}
	if (export->backing_fd >= 0)
		close(export->backing_fd);
	free_export(export);
	return DOCA_SUCCESS;
}
