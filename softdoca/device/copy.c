/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "copy.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "error.h"
#include "memory.h"
#include "sizes.h"

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

/* pwrite could extend the file; a write into a mapping cannot. */
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

static doca_error_t memory_missing(const char *reason)
{
	soft_detail("the memory of a copy is missing: %s", reason);
	return DOCA_ERROR_IO_FAILED;
}

/* Slow, but available everywhere: copies by way of a temporary file. */
static doca_error_t copy_through_file(uint8_t *to, const uint8_t *from, size_t len)
{
	int fd = memfd_create("dma-copy-bounce", MFD_CLOEXEC);
	if (fd < 0)
		return memory_missing(strerror(errno));
	doca_error_t result = DOCA_SUCCESS;
	for (size_t done = 0; done < len && result == DOCA_SUCCESS;) {
		size_t piece = len - done < SOFT_BOUNCE_BYTES ? len - done : SOFT_BOUNCE_BYTES;
		if (pwrite(fd, from + done, piece, 0) != (ssize_t)piece ||
		    pread(fd, to + done, piece, 0) != (ssize_t)piece)
			result = memory_missing(strerror(errno));
		done += piece;
	}
	close(fd);
	return result;
}

/* Lets the kernel copy, which reports missing memory; touching it would raise SIGBUS. */
static doca_error_t copy_unknown(uint8_t *to, const uint8_t *from, size_t len)
{
	for (size_t done = 0; done < len;) {
		struct iovec target = {to + done, len - done};
		struct iovec source = {(uint8_t *)from + done, len - done};
		ssize_t n = process_vm_readv(getpid(), &target, 1, &source, 1, 0);
		if (n < 0 && (errno == EPERM || errno == ENOSYS))
			return copy_through_file(to + done, from + done, len - done);
		if (n <= 0)
			return memory_missing(n == 0 ? "nothing copied" : strerror(errno));
		done += (size_t)n;
	}
	return DOCA_SUCCESS;
}

/* The memory of one end of a copy. */
struct end {
	enum { SOLID, FILE_MAPPING, UNKNOWN } kind;
	struct memory_backing backing; /* of a file mapping */
};

/* Memory of our own allocator cannot shrink; a file mapping can, and so can memory that others have registered. */
static struct end classify(const void *addr, size_t len)
{
	struct end end = {.kind = UNKNOWN};
	if (memory_find(addr, len, &end.backing))
		end.kind = end.backing.kind == MEMORY_FILE ? FILE_MAPPING : SOLID;
	return end;
}

static doca_error_t copy_between(void *to, const struct end *target, const void *from, const struct end *source,
				 size_t len)
{
	if (target->kind == FILE_MAPPING)
		return soft_copy_to_fd(target->backing.fd, target->backing.offset, from, len);
	if (source->kind == FILE_MAPPING)
		return soft_copy_from_fd(source->backing.fd, source->backing.offset, to, len);
	if (target->kind == UNKNOWN || source->kind == UNKNOWN)
		return copy_unknown(to, from, len);
	memcpy(to, from, len);
	return DOCA_SUCCESS;
}

static const struct end solid = {.kind = SOLID};

doca_error_t soft_copy_local(void *to, const void *from, size_t len)
{
	struct end target = classify(to, len), source = classify(from, len);
	return copy_between(to, &target, from, &source, len);
}

doca_error_t soft_copy_from_mapping(void *to, const void *mapped, size_t len)
{
	struct end target = classify(to, len);
	return copy_between(to, &target, mapped, &solid, len);
}

doca_error_t soft_copy_to_mapping(void *mapped, const void *from, size_t len)
{
	struct end source = classify(from, len);
	return copy_between(mapped, &solid, from, &source, len);
}
