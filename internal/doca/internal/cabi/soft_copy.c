/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "memory.h"
#include "soft_core.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static doca_error_t fd_failure(const char *operation, const char *reason)
{
	soft_detail("%s of the file behind the memory failed: %s", operation, reason);
	return DOCA_ERROR_IO_FAILED;
}

doca_error_t soft_copy_from_fd(int fd, uint64_t offset, void *to, size_t len)
{
	uint8_t *p = to;
	while (len > 0) {
		ssize_t n = pread(fd, p, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fd_failure("reading", n == 0 ? "it is shorter than the memory" : strerror(errno));
		p += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return DOCA_SUCCESS;
}

/* A write into a mapping never makes the file longer, pwrite would. */
static bool file_covers(int fd, uint64_t offset, size_t len)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || st.st_size < 0)
		return false;
	uint64_t size = (uint64_t)st.st_size;
	return offset <= size && len <= size - offset;
}

doca_error_t soft_copy_to_fd(int fd, uint64_t offset, const void *from, size_t len)
{
	if (!file_covers(fd, offset, len))
		return fd_failure("writing", "it is shorter than the memory");
	const uint8_t *p = from;
	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fd_failure("writing", strerror(errno));
		p += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return DOCA_SUCCESS;
}

doca_error_t soft_copy_local(void *to, const void *from, size_t len)
{
	struct memory_backing backing;
	if (memory_find(to, len, &backing) && backing.kind == MEMORY_FILE)
		return soft_copy_to_fd(backing.fd, backing.offset, from, len);
	if (memory_find(from, len, &backing) && backing.kind == MEMORY_FILE)
		return soft_copy_from_fd(backing.fd, backing.offset, to, len);
	memcpy(to, from, len);
	return DOCA_SUCCESS;
}
