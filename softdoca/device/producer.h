/* SPDX-License-Identifier: Apache-2.0 */
/* Producers, of a connection (producer.c) or of a message queue. */
#ifndef DMA_COPY_SOFT_PRODUCER_H
#define DMA_COPY_SOFT_PRODUCER_H

#include <pthread.h>

#include "background.h"
#include "ctx.h"
#include "doca_abi.h"
#include "fast.h"

struct doca_comch_producer_task_send {
	struct doca_task task; /* first */
	STAILQ_ENTRY(doca_comch_producer_task_send) queued;
	const struct doca_buf *buf; /* NULL: immediate data only */
	uint32_t consumer_id;
	uint8_t *imm; /* imm_capacity bytes of the producer's imm */
	uint32_t imm_len;
	struct soft_lane *lane; /* while submitted */
	doca_error_t fault;     /* injected */
	doca_error_t result;    /* once executed */
};

STAILQ_HEAD(send_queue, doca_comch_producer_task_send);

struct doca_comch_producer {
	struct doca_ctx ctx; /* first */
	struct soft_member member;
	doca_comch_producer_task_send_completion_cb_t sent, failed;
	uint32_t num_tasks;
	void (*leave)(struct doca_comch_producer *producer); /* before it is freed */

	/* From start to IDLE. */
	struct doca_comch_producer_task_send *tasks;
	uint8_t *imm;
	uint32_t imm_capacity; /* of one task */
	uint64_t retry_at; /* when progress retries, because the lane of the first unsent task was full; 0: at once */
	struct send_queue pool;
	pthread_mutex_t lock;    /* guards what follows, up to job: the background thread sends, too */
	struct send_queue sends; /* submitted and not completed, in order */
	struct doca_comch_producer_task_send *unsent; /* the first of them that is not executed; NULL: all are */
	bool broken;                                  /* a task has failed with IO_FAILED: no more are executed */
	struct soft_job job;
};

static inline struct doca_comch_producer *soft_producer_of(const struct doca_ctx *ctx)
{
	return (struct doca_comch_producer *)ctx;
}

/* The tasks of a producer that starts, each with so many bytes of immediate data. NO_MEMORY. */
doca_error_t soft_producer_make_pool(struct doca_comch_producer *producer, uint32_t imm_capacity);
void soft_producer_free_pool(struct doca_comch_producer *producer);

/* The members of soft_ctx_class that are the same for all producers. */
void soft_producer_ended(struct doca_task *task);
void soft_producer_release(struct doca_task *task);

#endif
