/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote_import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "config.h"
#include "copy.h"
#include "error.h"
#include "remote.h"
#include "remote_wire.h"
#include "sizes.h"
#include "socket.h"

/* ---- The descriptor ---- */

static bool all_zero(const uint8_t *bytes, size_t len)
{
	while (len > 0 && *bytes == 0) {
		bytes++;
		len--;
	}
	return len == 0;
}

/* Reports whether name is one of our sockets, in the runtime directory and nowhere else. */
static bool valid_socket_name(const char name[REMOTE_NAME_SIZE])
{
	size_t len = strnlen(name, REMOTE_NAME_SIZE);
	return len < REMOTE_NAME_SIZE && strncmp(name, "mem.", 4) == 0 && strchr(name, '/') == NULL &&
	       all_zero((const uint8_t *)name + len, REMOTE_NAME_SIZE - len);
}

static bool valid_range(uint64_t addr, uint64_t len, uint32_t permissions)
{
	return len > 0 && addr <= UINTPTR_MAX && len <= UINTPTR_MAX - addr &&
	       (permissions == DOCA_ACCESS_FLAG_PCI_READ_ONLY || permissions == DOCA_ACCESS_FLAG_PCI_READ_WRITE);
}

static bool parse_descriptor(const void *desc, size_t len, struct remote_descriptor *d)
{
	if (len < sizeof(*d))
		return false;
	memcpy(d, desc, sizeof(*d));
	return d->magic == REMOTE_MAGIC && d->version == REMOTE_VERSION &&
	       valid_range(d->addr, d->len, d->permissions) && valid_socket_name(d->socket) &&
	       all_zero((const uint8_t *)desc + sizeof(*d), len - sizeof(*d));
}

/* ---- The conversation ---- */

static doca_error_t exporter_failure(const char *reason)
{
	soft_detail("the memory cannot be imported: %s", reason);
	return DOCA_ERROR_DRIVER;
}

static doca_error_t connect_exporter(struct soft_import *import, const char *name)
{
	int fd = soft_socket_connect(name, SOFT_PEER_TIMEOUT_NS);
	if (fd == -ECONNREFUSED)
		soft_sweep_runtime_dir();
	if (fd == -ECONNREFUSED || fd == -ENOENT)
		return exporter_failure("its exporter is gone, or uses another runtime directory");
	if (fd < 0)
		return exporter_failure(strerror(-fd));
	import->socket = fd;
	return soft_socket_peer(fd, &import->pid) ? DOCA_SUCCESS : DOCA_ERROR_NOT_PERMITTED;
}

static doca_error_t ask(struct soft_import *import, const struct remote_descriptor *d, struct remote_answer *answer,
			int fds[REMOTE_MAX_FDS], size_t *num_fds)
{
	struct remote_request request = {.magic = REMOTE_MAGIC, .version = REMOTE_VERSION, .export_id = d->export_id};
	memcpy(request.key, d->key, sizeof(request.key));
	if (!remote_send(import->socket, &request, sizeof(request), NULL, 0))
		return exporter_failure("its exporter is gone");
	if (remote_receive(import->socket, answer, sizeof(*answer), fds, num_fds))
		return DOCA_SUCCESS;
	if (!remote_is_stopped(import->pid))
		return exporter_failure("its exporter does not answer");
	(void)exporter_failure("its exporter is stopped");
	return DOCA_ERROR_TIME_OUT;
}

/* Stores all descriptors, so that closing the import closes them. Returns the gate's, or -1. */
static int take_fds(struct soft_import *import, const struct remote_answer *answer, const int *fds, size_t num_fds)
{
	if (num_fds == 2)
		import->backing_fd = fds[1];
	if (num_fds == 1 && answer->gate_shm != 0) {
		import->backing_fd = fds[0];
		return -1;
	}
	return num_fds > 0 ? fds[0] : -1;
}

/* The answer must grant what the descriptor promised, with the descriptors that it needs. */
static bool is_grant(const struct remote_answer *answer, const struct remote_descriptor *d, size_t num_fds)
{
	size_t expected_fds = (answer->gate_shm == 0) + (answer->backing != REMOTE_BACKING_NONE);
	return answer->magic == REMOTE_MAGIC && answer->version == REMOTE_VERSION && answer->granted == 1 &&
	       answer->permissions == d->permissions && answer->addr == d->addr && answer->len == d->len &&
	       answer->backing <= REMOTE_BACKING_FILE && num_fds == expected_fds && answer->offset <= INT64_MAX &&
	       answer->len <= INT64_MAX - answer->offset;
}

static doca_error_t open_gate(struct soft_import *import, const struct remote_descriptor *d)
{
	struct remote_answer answer;
	int fds[REMOTE_MAX_FDS];
	size_t num_fds;
	doca_error_t result = ask(import, d, &answer, fds, &num_fds);
	if (result != DOCA_SUCCESS)
		return result;
	int gate_fd = take_fds(import, &answer, fds, num_fds);
	if (is_grant(&answer, d, num_fds))
		import->gate =
			gate_fd >= 0 ? remote_gate_open(gate_fd) : remote_gate_open_shm(answer.gate_shm, import->pid);
	if (gate_fd >= 0)
		close(gate_fd);
	if (import->gate == NULL)
		return exporter_failure("its exporter refuses the descriptor");
	import->backing = answer.backing;
	import->backing_offset = answer.offset;
	import->range = (struct soft_range){(void *)(uintptr_t)d->addr, d->len, d->permissions, d->export_id % 2 != 0};
	return DOCA_SUCCESS;
}

/* ---- Choosing a method ---- */

/* False if the memory is not a memfd that keeps its size, or cannot be mapped. */
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

void *soft_import_map(struct soft_import *import)
{
	if (import->mapping == NULL && (import->backing != REMOTE_BACKING_ANONYMOUS || !map_backing(import)))
		return NULL;
	return import->mapped;
}

static void choose_method(struct soft_import *import)
{
	bool mapped = soft_limits()->remote_mapping != 0 && soft_import_map(import) != NULL;
	atomic_init(&import->method, mapped ? REMOTE_BY_MAPPING : REMOTE_BY_PROCESS);
}

/* ---- Opening and closing ---- */

doca_error_t soft_import_open(const void *desc, size_t len, struct soft_import **import, struct soft_range *range)
{
	struct remote_descriptor d;
	if (!parse_descriptor(desc, len, &d)) {
		soft_detail("this is not an export descriptor of the software device");
		return DOCA_ERROR_INVALID_VALUE;
	}
	struct soft_import *opened = calloc(1, sizeof(*opened));
	if (opened == NULL)
		return DOCA_ERROR_NO_MEMORY;
	opened->socket = opened->backing_fd = -1;
	doca_error_t result = connect_exporter(opened, d.socket);
	if (result == DOCA_SUCCESS)
		result = open_gate(opened, &d);
	explicit_bzero(&d, sizeof(d));
	if (result != DOCA_SUCCESS) {
		soft_import_close(opened);
		return result;
	}
	choose_method(opened);
	*import = opened;
	*range = opened->range;
	return DOCA_SUCCESS;
}

/* Also closes an import that was opened in part. The socket comes last, because the exporter watches it. */
void soft_import_close(struct soft_import *import)
{
	if (import->mapping != NULL)
		munmap(import->mapping, import->mapping_len);
	if (import->gate != NULL)
		remote_gate_close(import->gate);
	if (import->backing_fd >= 0)
		close(import->backing_fd);
	if (import->socket >= 0)
		close(import->socket);
	free(import);
}

/* ---- copies ---- */

enum direction { FROM_EXPORTER, TO_EXPORTER };

/* ---- The methods ---- */

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

/* The limit on the size of a file of a process, in bytes, which any other process may read; UINT64_MAX: none. */
static uint64_t file_limit(pid_t pid)
{
	char path[sizeof("/proc//limits") + 3 * sizeof(pid)], line[128];
	uint64_t limit = UINT64_MAX;
	(void)snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	FILE *limits = fopen(path, "re");
	if (limits == NULL)
		return limit;
	while (fgets(line, sizeof(line), limits) != NULL && sscanf(line, "Max file size %" SCNu64, &limit) != 1) {
	}
	fclose(limits);
	return limit;
}

/* Sets the detail: what to change. AGAIN: try the next method. */
static doca_error_t process_refused(struct soft_import *import, const char *call, int err)
{
	if (import->backing != REMOTE_BACKING_NONE) {
		atomic_store(&import->method, REMOTE_BY_DESCRIPTOR);
		return DOCA_ERROR_AGAIN;
	}
	if (import->pid <= 0)
		soft_detail("the exporter's process is not visible here: run both sides in one PID namespace");
	else if (file_limit(import->pid) < import->range.len)
		soft_detail("the limit on file sizes keeps process %d from sharing its memory, and %s is refused (%s): "
			    "raise the limit there (ulimit -f unlimited)",
			    (int)import->pid, call, strerror(err));
	else if (err == EPERM && yama_scope() > 0)
		soft_detail("%s of process %d refused: set kernel.yama.ptrace_scope to 0, or run both sides as root",
			    call, (int)import->pid);
	else
		soft_detail("%s of process %d refused (%s): allow it in the seccomp profile, or add CAP_SYS_PTRACE",
			    call, (int)import->pid, strerror(err));
	return DOCA_ERROR_NOT_PERMITTED;
}

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

/* Increments busy before it reads revoked, see struct remote_gate. The caller decrements it. */
static bool enter(struct remote_gate *gate)
{
	atomic_fetch_add(&gate->busy, 1);
	if (atomic_load(&gate->revoked) == 0)
		return true;
	atomic_fetch_sub(&gate->busy, 1);
	return false;
}

/* A memfd outlives its process and process ids are reused, so only the socket shows whether the exporter lives. */
doca_error_t soft_import_begin(struct soft_import *import)
{
	if (soft_socket_hung_up(import->socket) || !enter(import->gate))
		return access_ended(import);
	return DOCA_SUCCESS;
}

void soft_import_end(struct soft_import *import)
{
	atomic_fetch_sub(&import->gate->busy, 1);
}

static doca_error_t copy(struct soft_import *import, enum direction direction, void *local, const void *remote,
			 size_t len)
{
	doca_error_t result = soft_import_begin(import);
	if (result != DOCA_SUCCESS)
		return result;
	size_t offset = (uintptr_t)remote - (uintptr_t)import->range.addr;
	result = copy_by_chosen(import, direction, local, offset, len);
	if (result == DOCA_ERROR_AGAIN)
		result = copy_by_chosen(import, direction, local, offset, len);
	soft_import_end(import);
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
