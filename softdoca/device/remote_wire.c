/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "memory.h"
#include "now.h"
#include "sizes.h"
#include "socket.h"

/* ---- Gates ---- */

static struct remote_gate *map_gate(int fd)
{
	void *gate = mmap(NULL, sizeof(struct remote_gate), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return gate == MAP_FAILED ? NULL : gate;
}

/* The segment is removed at once and lives until its last mapping; until then the importer can attach it. */
static struct remote_gate *create_shm_gate(uint32_t *shm)
{
	int id = shmget(IPC_PRIVATE, sizeof(struct remote_gate), 0600);
	if (id < 0)
		return NULL;
	void *gate = shmat(id, NULL, 0);
	int err = errno;
	shmctl(id, IPC_RMID, NULL);
	errno = err;
	if (gate == (void *)-1)
		return NULL;
	*shm = (uint32_t)id + 1;
	return gate;
}

struct remote_gate *remote_gate_open_shm(uint32_t shm, pid_t maker)
{
	struct shmid_ds segment;
	int id = (int)(shm - 1);
	if (id < 0 || maker <= 0 || shmctl(id, IPC_STAT, &segment) != 0 || segment.shm_cpid != maker ||
	    segment.shm_segsz < sizeof(struct remote_gate))
		return NULL;
	void *gate = shmat(id, NULL, 0);
	return gate == (void *)-1 ? NULL : gate;
}

struct remote_gate *remote_gate_create(int *fd, uint32_t *shm)
{
	*fd = -1;
	*shm = 0;
	if (!memory_may_be_file(sizeof(struct remote_gate)))
		return create_shm_gate(shm);
	int created = memfd_create("dma-copy-gate", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (created < 0)
		return NULL;
	struct remote_gate *gate = NULL;
	if (ftruncate(created, sizeof(*gate)) == 0 && fcntl(created, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		gate = map_gate(created);
	if (gate == NULL)
		close(created);
	else
		*fd = created;
	return gate;
}

/* Huge pages are not accepted: they can run out at the time of access. */
static bool is_memfd(int fd)
{
	struct statfs fs;
	return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

bool remote_is_sealed(int fd, uint64_t size)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	return is_memfd(fd) && seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &st) == 0 && st.st_size >= 0 &&
	       (uint64_t)st.st_size >= size;
}

struct remote_gate *remote_gate_open(int fd)
{
	return remote_is_sealed(fd, sizeof(struct remote_gate)) ? map_gate(fd) : NULL;
}

void remote_gate_close(struct remote_gate *gate)
{
	munmap(gate, sizeof(*gate));
}

/* ---- Messages ---- */

bool remote_send(int fd, const void *message, size_t len, const int *fds, size_t num_fds)
{
	union remote_control control = {.space = {0}};
	struct iovec iov = {.iov_base = (void *)message, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	if (num_fds > 0) {
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		struct cmsghdr *header = CMSG_FIRSTHDR(&msg);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		memcpy(CMSG_DATA(header), fds, num_fds * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

/* Returns true once fd is readable or its peer has closed it. */
static bool readable_within(int fd, uint64_t wait_ns)
{
	uint64_t deadline = soft_now_ns() + wait_ns;
	for (;;) {
		uint64_t now = soft_now_ns();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int ready = now >= deadline ? 0 : poll(&p, 1, (int)((deadline - now) / 1000000 + 1));
		if (ready >= 0 || errno != EINTR)
			return ready > 0;
	}
}

/* The state follows the name, which may contain anything, so search for the last parenthesis. */
bool remote_is_stopped(pid_t pid)
{
	char path[64], stat[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	stat[n > 0 ? n : 0] = '\0';
	const char *name_end = strrchr(stat, ')');
	return name_end != NULL && (strncmp(name_end, ") T", 3) == 0 || strncmp(name_end, ") t", 3) == 0);
}

/* A loaded machine may not run the other side for long, but a stopped process does not answer until it is continued. */
static bool wait_readable(int fd)
{
	pid_t pid = 0;
	bool known = soft_socket_peer(fd, &pid);
	int stopped = 0;
	for (uint64_t waited = 0; waited < SOFT_PEER_TIMEOUT_NS && stopped < SOFT_STOPPED_CHECKS;
	     waited += SOFT_STOPPED_CHECK_NS) {
		if (readable_within(fd, SOFT_STOPPED_CHECK_NS))
			return true;
		stopped = known && remote_is_stopped(pid) ? stopped + 1 : 0;
	}
	return readable_within(fd, 0);
}

/* The control buffer holds at most REMOTE_MAX_FDS; the kernel closes the others. */
size_t remote_take_fds(struct msghdr *msg, int fds[REMOTE_MAX_FDS])
{
	size_t num = 0;
	for (struct cmsghdr *header = CMSG_FIRSTHDR(msg); header != NULL; header = CMSG_NXTHDR(msg, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds + num, CMSG_DATA(header), count * sizeof(int));
		num += count;
	}
	return num;
}

bool remote_receive(int fd, void *message, size_t len, int fds[REMOTE_MAX_FDS], size_t *num_fds)
{
	union remote_control control = {.space = {0}};
	struct iovec iov = {.iov_base = message, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.space,
			     .msg_controllen = sizeof(control.space)};
	if (!wait_readable(fd))
		return false;
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return false;
	size_t num = remote_take_fds(&msg, fds);
	if (n == (ssize_t)len && (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) {
		*num_fds = num;
		return true;
	}
	while (num > 0)
		close(fds[--num]);
	return false;
}
