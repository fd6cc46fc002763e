/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comch's message queues: immediate data of up to 32 bytes between the CPU and a DPA of the same device. A queue has
 * one direction; a dialogue takes two. There is no server, no client and no connection.
 *
 *   create -> settings -> start -> consumers and producers -> their destruction -> stop -> destroy
 *
 * The side on the CPU uses the tasks of doca_comch_consumer.h and doca_comch_producer.h, without buffers. The side on
 * the DPA is set up on the CPU (doca_ctx_set_datapath_on_dpa) and used by the DPA's code (doca_dpa_dev_comch_msgq.h).
 * Ids of consumers and of producers begin with 1 in each queue.
 */
#ifndef DOCA_COMCH_MSGQ_H_
#define DOCA_COMCH_MSGQ_H_

#include <stdint.h>

#include "doca_compat.h"
#include "doca_dpa_abi.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_create(struct doca_dev *dev, struct doca_comch_msgq **msgq);

/* IN_USE while started. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_destroy(struct doca_comch_msgq *msgq);

/* The direction: its consumers, or its producers, are on this DPA. With neither, both sides are on the CPU. */

DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_set_dpa_consumer(struct doca_comch_msgq *msgq, struct doca_dpa *dpa);

DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_set_dpa_producer(struct doca_comch_msgq *msgq, struct doca_dpa *dpa);

/* One of each by default. */

DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_set_max_num_consumers(struct doca_comch_msgq *msgq, uint32_t max_num_consumers);

DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_set_max_num_producers(struct doca_comch_msgq *msgq, uint32_t max_num_producers);

DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_start(struct doca_comch_msgq *msgq);

/* IN_USE until all its consumers and producers are destroyed. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_stop(struct doca_comch_msgq *msgq);

/* BAD_STATE unless started. NO_MEMORY: there are as many as the settings allow. */

DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_consumer_create(struct doca_comch_msgq *msgq, struct doca_comch_consumer **consumer);

DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_producer_create(struct doca_comch_msgq *msgq, struct doca_comch_producer **producer);

#ifdef __cplusplus
}
#endif

#endif
