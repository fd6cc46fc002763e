/* SPDX-License-Identifier: Apache-2.0 */
/* Completion contexts for consumers on a DPA: messages that have arrived, until code of the DPA acks them. */
#ifndef DMA_COPY_SOFT_DPA_CONSUMER_COMPLETION_H
#define DMA_COPY_SOFT_DPA_CONSUMER_COMPLETION_H

#include "dpa.h"
#include "ring.h"

/* The longest immediate data from or to a DPA, in bytes. */
#define SOFT_MSGQ_IMM 32

/* A message that has arrived. Its bytes are in the context's imm. */
struct soft_arrival {
	uint32_t producer_id;
	uint32_t len;
};

struct doca_comch_consumer_completion {
	struct soft_object object;      /* from creation on, so that consumers can name it */
	struct doca_dpa_thread *thread; /* NULL: code of the DPA polls */
	uint32_t max_num_consumers, max_num_recv, imm_data_len;

	/* Under the lock. */
	bool started;
	const struct doca_dpa *dpa;       /* of the thread, otherwise of the running consumers */
	uint32_t num_consumers, num_recv; /* running consumers, and the sum of their receives */
	struct soft_ring ring;
	struct soft_arrival *arrivals;
	uint8_t *imm; /* SOFT_MSGQ_IMM bytes for each element */
};

/*
 * A consumer of num_recv receives starts to use the context with this handle, or stops. INVALID_VALUE, with a detail:
 * the context is not started, or too small, or on another DPA. Called with the lock held.
 */
doca_error_t soft_consumer_completion_join(uint64_t handle, const struct doca_dpa *dpa, uint32_t num_recv,
					   uint32_t imm_data_len, struct doca_comch_consumer_completion **joined);
void soft_consumer_completion_leave(struct doca_comch_consumer_completion *completion, uint32_t num_recv);

/* Adds a message of at most SOFT_MSGQ_IMM bytes. False: the queue is full. Called with the lock held. */
bool soft_consumer_completion_arrive(struct doca_comch_consumer_completion *completion, uint32_t producer_id,
				     const uint8_t *imm, uint32_t len);

#endif
