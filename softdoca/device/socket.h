/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets (AF_UNIX, SOCK_SEQPACKET, non-blocking, close-on-exec) with short names in the runtime directory. Any thread
 * may call these functions.
 */
#ifndef DMA_COPY_SOFT_SOCKET_H
#define DMA_COPY_SOFT_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sets the mode of the file that fd refers to, even if fd was opened O_PATH. Returns -1 with errno set. */
int soft_set_mode(int fd, mode_t mode);

/*
 * Returns a listening socket or a negative errno; -EADDRINUSE: a live process has the name. A stale name is replaced.
 */
int soft_socket_listen(const char *name, int backlog);

/*
 * Returns a connected socket or a negative errno; -ECONNREFUSED and -ENOENT: no process listens. Waits at most
 * timeout_ns if the listener's backlog is full.
 */
int soft_socket_connect(const char *name, uint64_t timeout_ns);

/* Removes the name of our listening socket. */
void soft_socket_unlink(const char *name);

/*
 * Reports whether the other end belongs to our effective user or to one of DMA_COPY_SOFT_USERS; if not, sets the
 * detail. *pid is 0 if that process is not visible here.
 */
bool soft_socket_peer(int fd, pid_t *pid);

/* Reports whether the other end is closed or its process is gone. */
bool soft_socket_hung_up(int fd);

/*
 * Removes sockets ("mem.*", "comch.*") that dead processes left in the runtime directory. Every process that creates a
 * socket holds a lock on the file "lock" there, because a socket between bind and listen looks dead.
 */
void soft_sweep_runtime_dir(void);

#endif
