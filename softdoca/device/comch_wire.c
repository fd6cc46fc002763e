/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "comch_wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "error.h"
#include "lane.h"
#include "remote_wire.h"
#include "socket.h"

#define PCI_LEN (DOCA_DEVINFO_PCI_ADDR_SIZE - 1)

struct soft_frame soft_frame_make(enum soft_frame_type type, uint32_t value, uint32_t chosen)
{
	return (struct soft_frame){.magic = SOFT_FRAME_MAGIC,
				   .version = SOFT_FRAME_VERSION,
				   .type = (uint16_t)type,
				   .value = value,
				   .chosen = chosen};
}

bool soft_frame_parse(const void *data, size_t len, struct soft_frame *frame)
{
	if (len < sizeof(*frame))
		return false;
	memcpy(frame, data, sizeof(*frame));
	size_t bytes = 0;
	if (frame->type == SOFT_FRAME_MESSAGE)
		bytes = frame->value;
	else if (frame->type == SOFT_FRAME_CONSUMER)
		bytes = sizeof(struct soft_consumer_info);
	return frame->magic == SOFT_FRAME_MAGIC && frame->version == SOFT_FRAME_VERSION &&
	       len - sizeof(*frame) == bytes;
}

bool soft_frame_send(int fd, const struct soft_frame *frame)
{
	return send(fd, frame, sizeof(*frame), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*frame);
}

/* Keeps the only descriptor of a message; closes any others. */
static void take_descriptor(struct msghdr *msg, int *fd)
{
	int fds[REMOTE_MAX_FDS];
	size_t num = remote_take_fds(msg, fds);
	while (num > 1)
		close(fds[--num]);
	if (num == 1)
		*fd = fds[0];
}

ssize_t soft_frame_receive(int socket, void *packet, size_t size, int *fd)
{
	union remote_control control = {.space = {0}};
	struct iovec iov = {.iov_base = packet, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.space,
			     .msg_controllen = sizeof(control.space)};
	ssize_t n = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	if (n >= 0)
		take_descriptor(&msg, fd);
	return n;
}

/* ---- addresses ---- */

/* Percent-encodes slash, dot and tilde, among others. False if out is too small. */
static bool encode_name(const char *name, char *out, size_t size)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	for (; *name != '\0'; name++) {
		int n = snprintf(out, size, strchr(plain, *name) != NULL ? "%c" : "%%%02X", (unsigned char)*name);
		if ((size_t)n >= size)
			return false;
		out += n;
		size -= (size_t)n;
	}
	return true;
}

/* FNV-1a with the basis of the caller. */
static uint64_t hash(const char *name, uint64_t basis)
{
	for (; *name != '\0'; name++)
		basis = (basis ^ (unsigned char)*name) * 0x100000001b3U;
	return basis;
}

/* A name too long for a socket address is replaced by a hash of 128 bits. */
void soft_comch_address_make(struct soft_comch_address *address, const char *rep_pci, const char *dev_pci,
			     const char *name)
{
	int n = snprintf(address->file, sizeof(address->file), "comch.%s.%s.", rep_pci, dev_pci);
	char *rest = address->file + n;
	size_t size = sizeof(address->file) - (size_t)n;
	if (!encode_name(name, rest, size))
		snprintf(rest, size, "~%016llx%016llx", (unsigned long long)hash(name, 0xcbf29ce484222325U),
			 (unsigned long long)hash(name, 0x84222325cbf29ce4U));
}

/* Reports whether file is the address of a server of that name for that function, and sets dev_pci to its device. */
static bool match_server(const char *file, const char *rep_pci, const char *name,
			 char dev_pci[DOCA_DEVINFO_PCI_ADDR_SIZE])
{
	const size_t prefix = strlen("comch.") + PCI_LEN + strlen(".");
	struct soft_comch_address address;
	if (strlen(file) <= prefix + PCI_LEN)
		return false;
	memcpy(dev_pci, file + prefix, PCI_LEN);
	dev_pci[PCI_LEN] = '\0';
	soft_comch_address_make(&address, rep_pci, dev_pci, name);
	return strcmp(address.file, file) == 0;
}

bool soft_comch_next_server(const char *rep_pci, const char *name, char dev_pci[DOCA_DEVINFO_PCI_ADDR_SIZE])
{
	char best[DOCA_DEVINFO_PCI_ADDR_SIZE] = "", found[DOCA_DEVINFO_PCI_ADDR_SIZE];
	int fd = openat(soft_runtime_dirfd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL)
		goto close_fd;
	for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
		if (match_server(entry->d_name, rep_pci, name, found) && strcmp(found, dev_pci) > 0 &&
		    (best[0] == '\0' || strcmp(found, best) < 0))
			memcpy(best, found, sizeof(best));
	}
	closedir(dir);
	if (best[0] == '\0')
		return false;
	memcpy(dev_pci, best, sizeof(best));
	return true;

close_fd:
	if (fd >= 0)
		close(fd);
	return false;
}

/* ---- sockets ---- */

doca_error_t soft_comch_listen(const struct soft_comch_address *address, int *listener)
{
	int fd = soft_socket_listen(address->file, SOMAXCONN);
	if (fd == -EADDRINUSE) {
		soft_detail("another server has this name on this device and representor");
		return DOCA_ERROR_ALREADY_EXIST;
	}
	if (fd < 0) {
		soft_detail("cannot listen in the runtime directory: %s", strerror(-fd));
		return DOCA_ERROR_OPERATING_SYSTEM;
	}
	*listener = fd;
	return DOCA_SUCCESS;
}

/* The file is removed while the socket still listens, so that it cannot be another server's. */
void soft_comch_unlisten(const struct soft_comch_address *address, int listener)
{
	soft_socket_unlink(address->file);
	close(listener);
}

static int only_if_trusted(int fd)
{
	pid_t pid;
	if (fd < 0)
		return -1;
	if (soft_socket_peer(fd, &pid))
		return fd;
	close(fd);
	return -1;
}

int soft_comch_connect(const struct soft_comch_address *address)
{
	return only_if_trusted(soft_socket_connect(address->file, 0));
}

int soft_comch_accept(int listener)
{
	return only_if_trusted(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}
