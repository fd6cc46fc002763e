/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message queues: immediate data between the CPU and a DPA of one device, or within the CPU, in one direction. The
 * consumers and producers on the CPU are contexts with tasks, as for a connection; consumers and producers on the DPA
 * are contexts without a progress engine, whose handles the DPA's code uses.
 *
 * A message goes straight into the oldest task that the consumer on the CPU has posted, or into the completion context
 * of the consumer on the DPA.
 */
#ifndef DMA_COPY_SOFT_DPA_MSGQ_H
#define DMA_COPY_SOFT_DPA_MSGQ_H

#include <sys/queue.h>

#include "completion.h"
#include "consumer.h"
#include "consumer_completion.h"
#include "dpa.h"
#include "producer.h"

struct soft_msgq_consumer {
	struct doca_comch_consumer base; /* first */
	struct doca_comch_msgq *msgq;
	LIST_ENTRY(soft_msgq_consumer) link; /* under the lock, as is running */
	bool running;                        /* takes messages */

	/* On the CPU, from start to IDLE; under the lock, as are the tasks that are posted. */
	int wakeup; /* eventfd in the progress engine */
	bool woken;
	struct post_queue arrived; /* tasks with a message */

	/* On the DPA. */
	struct soft_object object; /* while running */
	struct doca_dpa *dpa;      /* by doca_ctx_set_datapath_on_dpa */
	uint32_t dev_max_num_recv;
	uint64_t completion_handle;                        /* of the context that was set; 0: none */
	struct doca_comch_consumer_completion *completion; /* while running */
	uint32_t credits;                                  /* messages that it can still receive; under the lock */
};

struct soft_msgq_producer {
	struct doca_comch_producer base; /* first */
	struct doca_comch_msgq *msgq;

	/* On the DPA. */
	struct soft_object object; /* while running */
	struct doca_dpa *dpa;      /* by doca_ctx_set_datapath_on_dpa */
	uint32_t dev_max_num_send;
	uint64_t completion_handle;             /* of the context that was attached; 0: none */
	struct doca_dpa_completion *completion; /* while running */
	uint32_t unreported; /* operations whose completions wait for one that is reported; under the lock */
};

enum soft_msgq_direction { SOFT_MSGQ_CPU_TO_CPU, SOFT_MSGQ_TO_DPA, SOFT_MSGQ_FROM_DPA };

struct doca_comch_msgq {
	struct doca_dev *dev;
	struct doca_dpa *dpa; /* NULL: none, the messages stay on the CPU */
	enum soft_msgq_direction direction;
	bool started;
	uint32_t max_consumers, max_producers;
	uint32_t num_consumers, num_producers;       /* created and not destroyed */
	uint32_t last_consumer_id, last_producer_id; /* given so far; the first is 1 */
	LIST_HEAD(, soft_msgq_consumer) consumers;   /* under the lock */
};

/* ---- msgq.c ---- */

/* Members of soft_ctx_class for contexts that have nothing to do there. */
void soft_msgq_nothing(struct doca_ctx *ctx);
bool soft_msgq_quiet(const struct doca_ctx *ctx);
bool soft_msgq_no_progress(struct doca_ctx *ctx);
uint64_t soft_msgq_never_ready(const struct doca_ctx *ctx);

/* ---- msgq_consumer.c ---- */

enum soft_msgq_delivery {
	SOFT_MSGQ_DELIVERED,
	SOFT_MSGQ_NO_CONSUMER, /* none with that id runs */
	SOFT_MSGQ_NO_RECEIVE,  /* it can receive nothing at the moment */
	SOFT_MSGQ_TOO_LONG,    /* for the consumer's immediate data */
};

/* Returns what delivering a message of len bytes would return. Called with the lock held. */
enum soft_msgq_delivery soft_msgq_can_deliver(const struct doca_comch_msgq *msgq, uint32_t consumer_id, uint32_t len);

/* Delivers a message. Called with the lock held. */
enum soft_msgq_delivery soft_msgq_deliver(struct doca_comch_msgq *msgq, uint32_t consumer_id, uint32_t producer_id,
					  const uint8_t *imm, uint32_t len);

/* Returns the consumer if the context is one of a message queue that is on the DPA, otherwise NULL. */
struct soft_msgq_consumer *soft_msgq_dpa_consumer(const struct doca_ctx *ctx);

/* ---- msgq_producer.c ---- */

struct soft_msgq_producer *soft_msgq_dpa_producer(const struct doca_ctx *ctx);

#endif
