/* SPDX-License-Identifier: Apache-2.0 */
/* How an export travels from host to DPU: a file. A real program sends it over Comch. */
#ifndef EXAMPLES_DESCRIPTOR_H
#define EXAMPLES_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>

struct descriptor {
	uint64_t addr; /* in the exporter's address space */
	uint64_t len;
	const void *blob;
	size_t blob_len;
};

/* For the owner's eyes only, and whole when it appears under its name. IO_FAILED. */
doca_error_t descriptor_save(const struct descriptor *descriptor, const char *path);

/* Reads the blob into buffer, which has size bytes. IO_FAILED, INVALID_VALUE. */
doca_error_t descriptor_load(struct descriptor *descriptor, const char *path, void *buffer, size_t size);

#endif
