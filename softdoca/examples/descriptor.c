/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptor.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static bool write_all(int fd, const struct descriptor *descriptor)
{
	uint64_t head[] = {descriptor->addr, descriptor->len};
	return write(fd, head, sizeof(head)) == (ssize_t)sizeof(head) &&
	       write(fd, descriptor->blob, descriptor->blob_len) == (ssize_t)descriptor->blob_len;
}

doca_error_t descriptor_save(const struct descriptor *descriptor, const char *path)
{
	char temporary[4096];
	if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary))
		return DOCA_ERROR_INVALID_VALUE;
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return DOCA_ERROR_IO_FAILED;
	bool written = write_all(fd, descriptor);
	if (close(fd) == 0 && written && rename(temporary, path) == 0)
		return DOCA_SUCCESS;
	unlink(temporary);
	return DOCA_ERROR_IO_FAILED;
}

doca_error_t descriptor_load(struct descriptor *descriptor, const char *path, void *buffer, size_t size)
{
	uint64_t head[2];
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return DOCA_ERROR_IO_FAILED;
	bool has_head = read(fd, head, sizeof(head)) == (ssize_t)sizeof(head);
	ssize_t blob_len = has_head ? read(fd, buffer, size) : -1;
	close(fd);
	if (blob_len <= 0)
		return DOCA_ERROR_INVALID_VALUE;
	*descriptor = (struct descriptor){head[0], head[1], buffer, (size_t)blob_len};
	return DOCA_SUCCESS;
}
