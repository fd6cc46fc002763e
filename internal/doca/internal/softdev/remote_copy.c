/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote_import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum direction { FROM_EXPORTER, TO_EXPORTER };

/* ---- Choosing a method ---- */

/* False where the memory is not a memfd whose pages stay, or the kernel will not map it. */
static bool map_backing(struct soft_import *import)
{
	size_t within_page = import->backing_offset % (size_t)sysconf(_SC_PAGESIZE);
	bool read_only = import->range.permissions == DOCA_ACCESS_FLAG_PCI_READ_ONLY;
	size_t len;
	if (!remote_is_sealed(import->backing_fd, import->backing_offset + import->range.len) ||
	    __builtin_add_overflow(import->range.len, within_page, &len))
		return false;
	void *mapping = mmap(NULL, len, read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, import->backing_fd,
			     (off_t)(import->backing_offset - within_page));
	if (mapping == MAP_FAILED)
		return false;
	import->mapping = mapping;
	import->mapping_len = len;
	import->mapped = (uint8_t *)mapping + within_page;
	return true;
}

void soft_import_choose_method(struct soft_import *import)
{
	bool mapped = import->backing == REMOTE_BACKING_ANONYMOUS && soft_limits()->remote_mapping != 0 &&
		      map_backing(import);
	atomic_init(&import->method, mapped ? REMOTE_BY_MAPPING : REMOTE_BY_PROCESS);
}

static int yama_scope(void)
{
	char digit = '0';
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, &digit, 1);
	close(fd);
	return n == 1 ? digit - '0' : 0;
}

/* Says what to change. AGAIN: by another method. */
static doca_error_t process_refused(struct soft_import *import, const char *call, int err)
{
	if (import->backing != REMOTE_BACKING_NONE) {
		atomic_store(&import->method, REMOTE_BY_DESCRIPTOR);
		return DOCA_ERROR_AGAIN;
	}
	if (import->pid <= 0)
		soft_detail("the exporter's process is not visible here: run both sides in one PID namespace");
	else if (err == EPERM && yama_scope() > 0)
		soft_detail("%s of process %d refused: set kernel.yama.ptrace_scope to 0, or run both sides as root",
			    call, (int)import->pid);
	else
		soft_detail("%s of process %d refused (%s): allow it in the seccomp profile, or add CAP_SYS_PTRACE",
			    call, (int)import->pid, strerror(err));
	return DOCA_ERROR_NOT_PERMITTED;
}

/* ---- The methods ---- */

static doca_error_t copy_by_mapping(struct soft_import *import, enum direction direction, void *local, size_t offset,
				    size_t len)
{
	uint8_t *mapped = import->mapped + offset;
	return direction == FROM_EXPORTER ? soft_copy_from_mapping(local, mapped, len)
					  : soft_copy_to_mapping(mapped, local, len);
}

static doca_error_t copy_by_process(struct soft_import *import, enum direction direction, void *local, size_t offset,
				    size_t len)
{
	const char *call = direction == FROM_EXPORTER ? "process_vm_readv" : "process_vm_writev";
	if (import->pid <= 0)
		return process_refused(import, call, EPERM);
	for (size_t done = 0; done < len;) {
		struct iovec here = {(uint8_t *)local + done, len - done};
		struct iovec there = {(uint8_t *)import->range.addr + offset + done, len - done};
		ssize_t n = direction == FROM_EXPORTER ? process_vm_readv(import->pid, &here, 1, &there, 1, 0)
						       : process_vm_writev(import->pid, &here, 1, &there, 1, 0);
		if (n < 0 && (errno == EPERM || errno == ENOSYS))
			return process_refused(import, call, errno);
		if (n <= 0) {
			soft_detail("%s of process %d failed: %s", call, (int)import->pid,
				    n == 0 ? "nothing copied" : strerror(errno));
			return DOCA_ERROR_IO_FAILED;
		}
		done += (size_t)n;
	}
	return DOCA_SUCCESS;
}

static doca_error_t copy_by_descriptor(struct soft_import *import, enum direction direction, void *local, size_t offset,
				       size_t len)
{
	uint64_t at = import->backing_offset + offset;
	return direction == FROM_EXPORTER ? soft_copy_from_fd(import->backing_fd, at, local, len)
					  : soft_copy_to_fd(import->backing_fd, at, local, len);
}

static doca_error_t copy_by_chosen(struct soft_import *import, enum direction direction, void *local, size_t offset,
				   size_t len)
{
	switch (atomic_load(&import->method)) {
	case REMOTE_BY_MAPPING:
		return copy_by_mapping(import, direction, local, offset, len);
	case REMOTE_BY_PROCESS:
		return copy_by_process(import, direction, local, offset, len);
	case REMOTE_BY_DESCRIPTOR:
		return copy_by_descriptor(import, direction, local, offset, len);
	}
	return DOCA_ERROR_UNEXPECTED;
}

/* ---- The gate ---- */

static doca_error_t access_ended(struct soft_import *import)
{
	if (atomic_load(&import->gate->revoked) != 0) {
		soft_detail("the exporter has ended the access to its memory");
		return DOCA_ERROR_IO_FAILED;
	}
	soft_detail("the exporter (process %d) is gone", (int)import->pid);
	if (!atomic_exchange(&import->swept, true))
		soft_sweep_runtime_dir();
	return DOCA_ERROR_IO_FAILED;
}

/* Counted in before looking at revoked, see struct remote_gate. The caller leaves by atomic_fetch_sub. */
static bool enter(struct remote_gate *gate)
{
	atomic_fetch_add(&gate->busy, 1);
	if (atomic_load(&gate->revoked) == 0)
		return true;
	atomic_fetch_sub(&gate->busy, 1);
	return false;
}

/* A memfd outlives its process, and a process id is given out again, so the socket says whether the exporter lives. */
static doca_error_t copy(struct soft_import *import, enum direction direction, void *local, const void *remote,
			 size_t len)
{
	if (soft_socket_hung_up(import->socket) || !enter(import->gate))
		return access_ended(import);
	size_t offset = (uintptr_t)remote - (uintptr_t)import->range.addr;
	doca_error_t result = copy_by_chosen(import, direction, local, offset, len);
	if (result == DOCA_ERROR_AGAIN)
		result = copy_by_chosen(import, direction, local, offset, len);
	atomic_fetch_sub(&import->gate->busy, 1);
	return result;
}

doca_error_t soft_import_read(struct soft_import *import, void *local, const void *remote, size_t len)
{
	return copy(import, FROM_EXPORTER, local, remote, len);
}

doca_error_t soft_import_write(struct soft_import *import, void *remote, const void *local, size_t len)
{
	if (import->range.permissions != DOCA_ACCESS_FLAG_PCI_READ_WRITE) {
		soft_detail("the memory was exported for reading only");
		return DOCA_ERROR_NOT_PERMITTED;
	}
	return copy(import, TO_EXPORTER, (void *)local, remote, len);
}
