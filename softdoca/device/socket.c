/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "error.h"
#include "now.h"
#include "sizes.h"

static void sleep_briefly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL);
}

/*
 * Addresses the socket through a descriptor, because many temporary directories are longer than the 107 bytes of
 * sun_path.
 */
static struct sockaddr_un address_of(int fd, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d%s%s", fd, *name == '\0' ? "" : "/",
		 name);
	return address;
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Sockets are accessible to us alone, or to all who may enter the directory; the peer's user is checked in any case. */
static mode_t file_mode(void)
{
	return soft_has_other_users() ? 0666 : 0600;
}

int soft_set_mode(int fd, mode_t mode)
{
	char link[32];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* fchmod does not accept O_PATH */
	return chmod(link, mode);
}

/* ---- Directory lock ---- */

/* The owner sets the mode that the umask may have changed, unless the file is a link to another. */
static int open_lock(void)
{
	int fd = openat(soft_runtime_dirfd(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_nlink == 1 &&
	    (st.st_mode & 0777) != file_mode())
		(void)fchmod(fd, file_mode());
	return fd;
}

/*
 * A bound socket that does not listen yet looks like one of a dead process, so creating and checking sockets are
 * serialized. The wait is bounded: a debugger may have stopped the holder.
 */
static int lock_directory(void)
{
	int fd = open_lock();
	if (fd < 0)
		return -errno;
	uint64_t deadline = soft_now_ns() + SOFT_LOCK_WAIT_NS;
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || soft_now_ns() > deadline) {
			int err = errno;
			close(fd);
			return -err;
		}
		sleep_briefly();
	}
	return fd;
}

/* ---- Connecting ---- */

/* Tries once. Returns 0 or a negative errno. */
static int connect_name(int fd, const char *name)
{
	int file = openat(soft_runtime_dirfd(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return -errno;
	struct sockaddr_un address = address_of(file, "");
	int err = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : -errno;
	close(file);
	return err;
}

/* connect on a local socket succeeds at once, or fails with EAGAIN if the backlog is full. */
static int connect_until(int fd, const char *name, uint64_t deadline)
{
	for (;;) {
		int err = connect_name(fd, name);
		if (err != -EAGAIN && err != -EINTR)
			return err;
		if (soft_now_ns() > deadline)
			return -ETIMEDOUT;
		sleep_briefly();
	}
}

int soft_socket_connect(const char *name, uint64_t timeout_ns)
{
	int fd = new_socket();
	if (fd < 0)
		return fd;
	int err = connect_until(fd, name, soft_now_ns() + timeout_ns);
	if (err == 0)
		return fd;
	close(fd);
	return err;
}

/* ---- Dead sockets ---- */

/* EAGAIN (full backlog) and EPROTOTYPE (another type of socket) mean that a process listens. */
static bool is_stale_socket(const char *name)
{
	int fd = new_socket();
	if (fd < 0)
		return false;
	bool refused = connect_name(fd, name) == -ECONNREFUSED;
	close(fd);
	return refused;
}

static bool is_ours(const char *name)
{
	return strncmp(name, "mem.", 4) == 0 || strncmp(name, "comch.", 6) == 0;
}

static void sweep(void)
{
	int fd = openat(soft_runtime_dirfd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	DIR *dir = fdopendir(fd);
	if (dir == NULL) {
		close(fd);
		return;
	}
	const struct dirent *entry;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_type == DT_SOCK && is_ours(entry->d_name) && is_stale_socket(entry->d_name))
			unlinkat(fd, entry->d_name, 0);
	}
	closedir(dir);
}

void soft_sweep_runtime_dir(void)
{
	int lock = lock_directory();
	if (lock < 0)
		return;
	sweep();
	close(lock);
}

/* ---- Listening ---- */

static int try_bind(int fd, const char *name)
{
	struct sockaddr_un address = address_of(soft_runtime_dirfd(), name);
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : -errno;
}

static int bind_name(int fd, const char *name)
{
	int err = try_bind(fd, name);
	if (err != -EADDRINUSE || !is_stale_socket(name))
		return err;
	soft_socket_unlink(name);
	return try_bind(fd, name);
}

/*
 * bind applied the umask. The directory may belong to another user, who is trusted with this device but not with other
 * files: a file that has replaced the socket, or has other links, keeps its mode.
 */
static int set_socket_mode(const char *name)
{
	struct stat st;
	int fd = openat(soft_runtime_dirfd(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int err = 0;
	if (fstat(fd, &st) != 0)
		err = -errno;
	else if (!S_ISSOCK(st.st_mode) || st.st_nlink != 1)
		err = -EPERM;
	else if (soft_set_mode(fd, file_mode()) != 0)
		err = -errno;
	close(fd);
	return err;
}

static int bind_and_listen(int fd, const char *name, int backlog)
{
	int err = bind_name(fd, name);
	if (err != 0)
		return err;
	err = set_socket_mode(name);
	if (err != 0)
		return err;
	return listen(fd, backlog) == 0 ? 0 : -errno;
}

int soft_socket_listen(const char *name, int backlog)
{
	int lock = lock_directory();
	if (lock < 0)
		return lock;
	int fd = new_socket();
	int err = fd < 0 ? fd : bind_and_listen(fd, name, backlog);
	close(lock);
	if (err == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

void soft_socket_unlink(const char *name)
{
	unlinkat(soft_runtime_dirfd(), name, 0);
}

/* ---- The other end ---- */

/* Warns once per user in a row, because a refused process may retry. */
static void refuse_peer(const struct ucred *peer)
{
	static _Atomic uint64_t warned = UINT64_MAX;
	char text[256];
	snprintf(text, sizeof(text),
		 "process %d of user %u is refused as a peer, as this one runs as user %u: run both as one user, or "
		 "list %u in DMA_COPY_SOFT_USERS",
		 (int)peer->pid, (unsigned)peer->uid, (unsigned)geteuid(), (unsigned)peer->uid);
	soft_detail("%s", text);
	if (atomic_exchange(&warned, peer->uid) != peer->uid)
		soft_log(DOCA_LOG_LEVEL_WARNING, text);
}

bool soft_socket_peer(int fd, pid_t *pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return false;
	if (!soft_config_trusts(soft_config(), peer.uid)) {
		refuse_peer(&peer);
		return false;
	}
	*pid = peer.pid;
	return true;
}

bool soft_socket_hung_up(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};
	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0;
}
