/* SPDX-License-Identifier: Apache-2.0 */
/* Message queues in both directions, each with one consumer and one producer, for the tests. */
#ifndef DMA_COPY_MSGQ_END_H
#define DMA_COPY_MSGQ_END_H

#include "dpa_end.h"

#define MSGQ_TASKS 16

/* Handles for the DPA's code. */
struct msgq_handles {
	doca_dpa_dev_comch_consumer_completion_t arrivals; /* where messages arrive */
	doca_dpa_dev_comch_consumer_t consumer;
	doca_dpa_dev_completion_t completions; /* of the producer */
	doca_dpa_dev_comch_producer_t producer;
};

/* From the CPU to a DPA. */
struct to_dpa {
	struct doca_dpa *dpa;
	struct doca_pe *pe;
	struct doca_comch_consumer_completion *arrivals;
	struct doca_comch_msgq *msgq;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	unsigned sent, failed; /* tasks of the producer */
	doca_error_t last_failure;
	struct msgq_handles handles;
};

/* Everything runs; arrivals activate the thread, unless it is NULL. The consumer has num_recv receives. */
void to_dpa_open(struct to_dpa *end, struct doca_dpa *dpa, struct doca_dpa_thread *thread, uint32_t num_recv);
void to_dpa_close(struct to_dpa *end);

/* Sends to a consumer and progresses until the task has ended. */
doca_error_t to_dpa_send(struct to_dpa *end, uint32_t consumer_id, const void *imm, uint32_t len);

/* From a DPA to the CPU. */
struct from_dpa {
	struct doca_dpa *dpa;
	struct doca_pe *pe;
	struct doca_dpa_completion *completions;
	struct doca_comch_msgq *msgq;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	unsigned received, failed; /* tasks of the consumer */
	doca_error_t last_failure;
	uint32_t last_producer, last_len;
	uint8_t last_imm[32];
	bool reposts; /* completed tasks */
	void (*on_received)(struct from_dpa *end);
	struct msgq_handles handles;
};

/* Everything runs; the producer's user data is 0x12345678, its queues have num_send elements. */
void from_dpa_open(struct from_dpa *end, struct doca_dpa *dpa, uint32_t num_send);
void from_dpa_close(struct from_dpa *end);

/* Posts receives. */
void from_dpa_post(struct from_dpa *end, unsigned count);

/* Progresses until nothing moves. */
void msgq_settle(struct doca_pe *pe);

/* A message queue that is started, between the CPU and the DPA unless it is NULL. */
enum msgq_direction { MSGQ_TO_DPA, MSGQ_FROM_DPA };
struct doca_comch_msgq *msgq_open(struct doca_dpa *dpa, enum msgq_direction direction);
void msgq_close(struct doca_comch_msgq *msgq);

enum doca_ctx_states msgq_state(struct doca_ctx *ctx);

#endif
