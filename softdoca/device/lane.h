/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: the peer's consumer, as the producers of this side see it. It is a pair of SOCK_SEQPACKET sockets, one end
 * with the consumer, the other with all producers of the peer. The consumer posts buffers as slots; a producer writes
 * its bytes into the oldest slot, through an import of the consumer's memory, and sends a delivery. Any thread may call
 * these functions. No callback is called with the lock held.
 */
#ifndef DMA_COPY_SOFT_LANE_H
#define DMA_COPY_SOFT_LANE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "doca_abi.h"
#include "remote.h"
#include "remote_wire.h"

/* ---- the protocol ---- */

/* Follows a CONSUMER frame, whose value is the id; the peer's end of the lane comes with it. */
struct soft_consumer_info {
	uint32_t imm_data_len;
	uint32_t num_tasks;
	uint8_t descriptor[sizeof(struct remote_descriptor)];
};
_Static_assert(sizeof(struct soft_consumer_info) == 128, "fixed layout");

/* Sent by the consumer: one posted buffer. capacity, in bytes, is 0 for a task that takes immediate data only. */
struct soft_slot {
	uint64_t addr;
	uint64_t capacity;
};

/* Sent to the consumer: the oldest slot is filled. imm_len bytes follow. */
struct soft_delivery {
	uint32_t producer_id;
	uint32_t len;
	uint32_t imm_len;
	uint32_t reserved;
};
_Static_assert(sizeof(struct soft_slot) == 16 && sizeof(struct soft_delivery) == 16, "fixed layout");

/* ---- the producers' end ---- */

struct soft_lane {
	TAILQ_ENTRY(soft_lane) link; /* under the lock of its soft_fast */
	atomic_uint refs;
	uint32_t consumer_id;
	uint32_t imm_data_len;
	int fd;
	atomic_bool ended; /* the consumer or the connection has ended */
	uint8_t descriptor[sizeof(struct remote_descriptor)];

	pthread_mutex_t lock;       /* guards what follows */
	struct soft_import *import; /* from the first bytes on */
	struct soft_range range;
	struct soft_slot *slots; /* a ring */
	uint32_t num_slots, first, posted;
	uint32_t reserved; /* slots that submitted tasks have reserved */
};

/* Takes ownership of fd unless it returns NULL: no memory, or the info or the socket is not valid. */
struct soft_lane *soft_lane_open(uint32_t consumer_id, const struct soft_consumer_info *info, int fd);
void soft_lane_unref(struct soft_lane *lane);

/* Ends the lane and wakes the consumer. */
void soft_lane_end(struct soft_lane *lane);

/*
 * Reserves a slot for a message of len bytes. AGAIN: none is posted. INVALID_VALUE: the message does not fit, or the
 * consumer has expired.
 */
doca_error_t soft_lane_reserve(struct soft_lane *lane, size_t len, uint32_t imm_len);
void soft_lane_cancel(struct soft_lane *lane);

/*
 * Fills the oldest slot and drops the reservation. AGAIN: the socket is full, the reservation stays. INVALID_VALUE: the
 * message does not fit. CONNECTION_RESET: the consumer is gone. IO_FAILED.
 */
doca_error_t soft_lane_deliver(struct soft_lane *lane, uint32_t producer_id, const void *bytes, size_t len,
			       const void *imm, uint32_t imm_len);

/* Reports whether a small packet fits into the socket. */
bool soft_lane_writable(int fd);

#endif
