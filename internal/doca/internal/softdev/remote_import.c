/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote_import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- The descriptor ---- */

static bool all_zero(const uint8_t *bytes, size_t len)
{
	while (len > 0 && *bytes == 0) {
		bytes++;
		len--;
	}
	return len == 0;
}

/* The name of one of our sockets, in the runtime directory and nowhere else. */
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
	int fd = soft_socket_connect(name, REMOTE_TIMEOUT_NS);
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
	if (!remote_receive(import->socket, answer, sizeof(*answer), fds, num_fds))
		return exporter_failure(remote_is_stopped(import->pid) ? "its exporter is stopped"
								       : "its exporter does not answer");
	return DOCA_SUCCESS;
}

/* Takes the descriptors over, wanted or not, so that closing the import closes them. Returns the gate's, or -1. */
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

/* The answer must grant what the descriptor promised, with the descriptors that belong to it. */
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
	import->range = (struct soft_range){(void *)(uintptr_t)d->addr, d->len, d->permissions};
	return DOCA_SUCCESS;
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
	soft_import_choose_method(opened);
	*import = opened;
	*range = opened->range;
	return DOCA_SUCCESS;
}

/* Also of an import that was opened only in part. The socket goes last: it is what the exporter watches. */
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
