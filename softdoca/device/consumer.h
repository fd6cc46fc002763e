/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumers. Submission posts a task: its buffer becomes a slot for the peer's producers. Their deliveries complete the
 * posted tasks in order.
 */
#ifndef DMA_COPY_SOFT_CONSUMER_H
#define DMA_COPY_SOFT_CONSUMER_H

#include <pthread.h>

#include "background.h"
#include "ctx.h"
#include "doca_abi.h"
#include "fast.h"

struct doca_comch_consumer_task_post_recv {
	struct doca_task task; /* first */
	STAILQ_ENTRY(doca_comch_consumer_task_post_recv) queued;
	struct doca_buf *buf; /* NULL: immediate data only */
	size_t capacity;      /* of the posted slot, in bytes */
	uint8_t *imm;         /* imm_data_len bytes of the consumer's imm */
	uint32_t imm_len;
	uint32_t producer_id;
};

STAILQ_HEAD(post_queue, doca_comch_consumer_task_post_recv);

struct doca_comch_consumer {
	struct doca_ctx ctx; /* first */
	struct soft_member member;
	struct doca_mmap *mmap;
	doca_comch_consumer_task_post_recv_completion_cb_t received, failed;
	uint32_t num_tasks;
	uint32_t imm_data_len;
	void (*leave)(struct doca_comch_consumer *consumer); /* before it is freed */

	/* From start to IDLE. */
	struct soft_export *export;
	struct soft_notice *announcement, *expiry; /* until they are queued */
	int lane;                                  /* our end */
	bool blocked;                              /* the lane is full: waits for EPOLLOUT */
	bool lane_over;                            /* nothing more will arrive */
	struct doca_comch_consumer_task_post_recv *tasks;
	uint8_t *imm;
	uint8_t *packet; /* the delivery being received */
	struct post_queue pool;
	struct post_queue refused; /* cannot be posted: they fail in the next progress */
	pthread_mutex_t lock;      /* guards the next two: the background thread posts, too */
	struct post_queue unposted, posted;
	struct soft_job job;
};

static inline struct doca_comch_consumer *soft_consumer_of(const struct doca_ctx *ctx)
{
	return (struct doca_comch_consumer *)ctx;
}

/* ---- consumer.c ---- */

/* The tasks of a consumer that starts. NO_MEMORY. */
doca_error_t soft_consumer_make_pool(struct doca_comch_consumer *consumer);
void soft_consumer_free_pool(struct doca_comch_consumer *consumer);

/* ---- consumer_task.c ---- */

/* The members of soft_ctx_class that are about tasks. */
doca_error_t soft_consumer_validate(const struct doca_task *task);
doca_error_t soft_consumer_submit(struct doca_task *task);
void soft_consumer_ended(struct doca_task *task);
void soft_consumer_release(struct doca_task *task);

/*
 * Posts what fits into the lane; the rest is posted later, in progress or in the background. Returns whether any was.
 */
bool soft_consumer_post(struct doca_comch_consumer *consumer);

/* The job of a consumer. */
enum soft_job_result soft_consumer_post_more(struct soft_job *job);

/* Takes the oldest task of the queue, if there is one. */
struct doca_comch_consumer_task_post_recv *soft_consumer_take(struct doca_comch_consumer *consumer,
							      struct post_queue *queue);

/* Handles one delivery, or the end of the lane. False if there was nothing to do. */
bool soft_consumer_receive(struct doca_comch_consumer *consumer);

#endif
