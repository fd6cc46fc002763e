/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumers. A task is posted by progress: its buffer becomes a slot of the peer's producers. The deliveries that come
 * back complete the posted tasks in order.
 *
 *   consumer           what programs ask of a consumer
 *   consumer_life      from its start to its end: memory, lane, news for the peer
 *   consumer_post      tasks, and how they become slots
 *   consumer_arrival   deliveries
 *   consumer_progress  whose turn it is
 */
#ifndef DMA_COPY_SOFT_CONSUMER_H
#define DMA_COPY_SOFT_CONSUMER_H

#include "comch.h"

struct doca_comch_consumer_task_post_recv {
	struct doca_task task; /* first */
	STAILQ_ENTRY(doca_comch_consumer_task_post_recv) queued;
	struct doca_buf *buf; /* NULL: immediate data only */
	size_t capacity;      /* that was offered */
	uint8_t *imm;         /* imm_data_len bytes of the consumer's */
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

	/* From start to IDLE. */
	struct soft_export *export;
	struct soft_notice *announcement, *expiry; /* until they are told */
	int lane;                                  /* our end */
	bool blocked;                              /* the lane is full: waits for EPOLLOUT */
	bool lane_over;                            /* nothing more will come */
	struct doca_comch_consumer_task_post_recv *tasks;
	uint8_t *imm;
	uint8_t *packet; /* the delivery being received */
	struct post_queue pool, unposted, posted;
};

static inline struct doca_comch_consumer *soft_consumer_of(const struct doca_ctx *ctx)
{
	return (struct doca_comch_consumer *)ctx;
}

/* ---- consumer_life ---- */

/* Producers write into the memory from the other side of the PCIe bus, so it must be shared with them for that. */
bool soft_consumer_suits(const struct doca_mmap *mmap, const struct doca_dev *dev);

/* False: a producer does not come out of its copy. */
bool soft_consumer_unshare(struct doca_comch_consumer *consumer);

/* The parts of the class. */
doca_error_t soft_consumer_start(struct doca_ctx *ctx);
void soft_consumer_stopping(struct doca_ctx *ctx);
bool soft_consumer_quiet(const struct doca_ctx *ctx);
void soft_consumer_idle(struct doca_ctx *ctx);

/* ---- consumer_post ---- */

doca_error_t soft_consumer_validate(const struct doca_task *task);
doca_error_t soft_consumer_submit(struct doca_task *task);
void soft_consumer_ended(struct doca_task *task);
void soft_consumer_release(struct doca_task *task);

/* Posts the oldest submitted task, or fails it. False if there is none, or the lane takes no more. */
bool soft_consumer_post_oldest(struct doca_comch_consumer *consumer);

/* ---- consumer_arrival ---- */

/* Takes one delivery, or notices the lane's end. False if there was nothing to do. */
bool soft_consumer_receive(struct doca_comch_consumer *consumer);

/* ---- consumer_progress ---- */

bool soft_consumer_progress(struct doca_ctx *ctx);
uint64_t soft_consumer_ready_at(const struct doca_ctx *ctx);

#endif
