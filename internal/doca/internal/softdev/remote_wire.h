/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an exporter and an importer say to each other.
 *
 *   exporter                                              importer
 *   soft_export_open: descriptor ──── by any way ───────► soft_import_open
 *   service thread  ◄──────────────── request ─────────── (SOCK_SEQPACKET socket named by the descriptor)
 *                   ───── answer, gate, [backing] ──────►
 *   the socket stays open: its end tells either side that the other is gone
 *
 * Both run on one machine, so numbers are in its byte order. Nothing of the peer's is trusted before it is checked.
 */
#ifndef DMA_COPY_SOFT_REMOTE_WIRE_H
#define DMA_COPY_SOFT_REMOTE_WIRE_H

#include <sys/socket.h>

#include "core.h"

#define REMOTE_MAGIC 0x6d656d2d61746164ull
#define REMOTE_VERSION 2
#define REMOTE_KEY_SIZE 16
#define REMOTE_NAME_SIZE 64
#define REMOTE_MAX_FDS 2

/* How long to wait for the other side's threads, which a busy machine may not run for a while. */
#define REMOTE_TIMEOUT_NS 5000000000ull

/* How often the one who waits looks whether the other process is stopped, and how often in a row it has to be. */
#define REMOTE_LOOK_NS 100000000ull
#define REMOTE_STOPPED_LOOKS 3

/* How long taking memory back waits for a copy that the other side has begun; it may be stopped in the middle of it. */
#define REMOTE_REVOKE_NS 1000000000ull

/* Padded with zeros to the limit max_export_size. The key is what makes it a secret. */
struct remote_descriptor {
	uint64_t magic;
	uint32_t version;
	uint32_t permissions;
	uint64_t export_id;
	uint64_t addr;
	uint64_t len;
	uint8_t key[REMOTE_KEY_SIZE];
	char socket[REMOTE_NAME_SIZE]; /* zero-terminated, zeros to the end */
};

struct remote_request {
	uint64_t magic;
	uint32_t version;
	uint32_t reserved;
	uint64_t export_id;
	uint8_t key[REMOTE_KEY_SIZE];
};

enum remote_backing { REMOTE_BACKING_NONE, REMOTE_BACKING_ANONYMOUS, REMOTE_BACKING_FILE };

/* Comes with the gate's descriptor, unless gate_shm says otherwise, and, unless backing is NONE, that of the memory. A
 * refusal comes with neither. */
struct remote_answer {
	uint64_t magic;
	uint32_t version;
	uint32_t granted;
	uint32_t permissions;
	uint32_t backing;
	uint64_t addr;
	uint64_t len;
	uint64_t offset;   /* of addr in the backing */
	uint32_t gate_shm; /* 0, or where the gate is no file: one more than the number of its System V segment */
	uint32_t reserved;
};

_Static_assert(sizeof(struct remote_descriptor) == 120, "no padding");
_Static_assert(sizeof(struct remote_request) == 40, "no padding");
_Static_assert(sizeof(struct remote_answer) == 56, "no padding");

/*
 * Shared memory between the exporter and one importer: who copies counts itself in before it looks at revoked, and who
 * revokes says so before it looks at busy. So once revoked is set and busy was seen at 0, nobody touches the memory.
 */
struct remote_gate {
	_Atomic uint32_t revoked;
	_Atomic uint32_t busy;
};

/*
 * A gate that nobody can shrink under the other's mapping. *fd carries it to the importer, or *shm if *fd is -1:
 * RLIMIT_FSIZE may forbid even the smallest memfd. NULL with errno set.
 */
struct remote_gate *remote_gate_create(int *fd, uint32_t *shm);

/* NULL unless fd is such a gate. */
struct remote_gate *remote_gate_open(int fd);

/* NULL unless shm is a gate that this process has made. */
struct remote_gate *remote_gate_open_shm(uint32_t shm, pid_t maker);

void remote_gate_close(struct remote_gate *gate);

/* A memfd that keeps its size, and has at least this many bytes: mapping it can never raise SIGBUS. */
bool remote_is_sealed(int fd, uint64_t size);

/* A process that runs again only when somebody says so. */
bool remote_is_stopped(pid_t pid);

/* Sends one message without waiting. */
bool remote_send(int fd, const void *message, size_t len, const int *fds, size_t num_fds);

/* Room for what comes with a message. */
union remote_control {
	struct cmsghdr align;
	char space[CMSG_SPACE(REMOTE_MAX_FDS * sizeof(int))];
};

/* The descriptors that came with a message received into a remote_control; they are the caller's. */
size_t remote_take_fds(struct msghdr *msg, int fds[REMOTE_MAX_FDS]);

/*
 * Waits for one message of exactly len bytes, at most REMOTE_TIMEOUT_NS, and for a stopped process not as long. The received descriptors, num_fds of them, are
 * the caller's. False, and none, if anything else came.
 */
bool remote_receive(int fd, void *message, size_t len, int fds[REMOTE_MAX_FDS], size_t *num_fds);

#endif
