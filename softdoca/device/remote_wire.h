/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between an exporter and an importer.
 *
 *   exporter                                              importer
 *   soft_export_open: descriptor ──── by any way ───────► soft_import_open
 *   service thread  ◄──────────────── request ─────────── (SOCK_SEQPACKET socket named by the descriptor)
 *                   ───── answer, gate, [backing] ──────►
 *   the socket stays open: when it closes, the other side has ended
 *
 * Both run on one machine, so numbers are in its byte order. Nothing that the peer sends is trusted before it is
 * checked.
 */
#ifndef DMA_COPY_SOFT_REMOTE_WIRE_H
#define DMA_COPY_SOFT_REMOTE_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define REMOTE_MAGIC 0x6d656d2d61746164ull
#define REMOTE_VERSION 2
#define REMOTE_KEY_SIZE 16
#define REMOTE_NAME_SIZE 64
#define REMOTE_MAX_FDS 2

/* Padded with zeros to the limit max_export_size. The key makes it a secret. */
struct remote_descriptor {
	uint64_t magic;
	uint32_t version;
	uint32_t permissions;
	uint64_t export_id; /* odd: memory of the DPU */
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

/*
 * Carries the descriptor of the gate, unless gate_shm is set, and the memory's, unless backing is NONE. A refusal
 * carries neither.
 */
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
 * Memory shared by the exporter and one importer. The importer increments busy before it reads revoked; the exporter
 * sets revoked before it reads busy. So once revoked is set and busy was 0, the importer does not touch the memory.
 */
struct remote_gate {
	_Atomic uint32_t revoked;
	_Atomic uint32_t busy;
};

/*
 * Creates a gate that cannot shrink under the other side's mapping. *fd is its descriptor, for the importer; if it is
 * -1 *shm is its segment, because RLIMIT_FSIZE may forbid even the smallest memfd. Returns NULL with errno set.
 */
struct remote_gate *remote_gate_create(int *fd, uint32_t *shm);

/* Returns NULL unless fd is such a gate. */
struct remote_gate *remote_gate_open(int fd);

/* Returns NULL unless shm is a gate that the process maker created. */
struct remote_gate *remote_gate_open_shm(uint32_t shm, pid_t maker);

void remote_gate_close(struct remote_gate *gate);

/* Reports whether fd is a memfd of at least size bytes that cannot shrink: mapping it can never raise SIGBUS. */
bool remote_is_sealed(int fd, uint64_t size);

/* Reports whether the process is stopped by a signal or a debugger. */
bool remote_is_stopped(pid_t pid);

/* Sends one message without waiting, and reports whether all of it was sent. */
bool remote_send(int fd, const void *message, size_t len, const int *fds, size_t num_fds);

/* Space for the descriptors of one message. */
union remote_control {
	struct cmsghdr align;
	char space[CMSG_SPACE(REMOTE_MAX_FDS * sizeof(int))];
};

/* Returns the number of descriptors of a message received into a remote_control; they are the caller's. */
size_t remote_take_fds(struct msghdr *msg, int fds[REMOTE_MAX_FDS]);

/*
 * Waits for one message of exactly len bytes: at most SOFT_PEER_TIMEOUT_NS, less if the other process is stopped. The
 * num_fds descriptors received are the caller's. False, and none, if anything else came.
 */
bool remote_receive(int fd, void *message, size_t len, int fds[REMOTE_MAX_FDS], size_t *num_fds);

#endif
