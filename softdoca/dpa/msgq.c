/* SPDX-License-Identifier: Apache-2.0 */
#include "msgq.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "config.h"
#include "error.h"
#include "soft_dpa.h"

/* ---- creation and destruction ---- */

/* One consumer and one producer unless the program says otherwise: no default is documented. */
doca_error_t soft_doca_comch_msgq_create(struct doca_dev *dev, struct doca_comch_msgq **msgq)
{
	if (dev == NULL || msgq == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_comch_msgq *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	created->dev = dev;
	created->max_consumers = created->max_producers = 1;
	LIST_INIT(&created->consumers);
	atomic_fetch_add(&dev->users, 1);
	*msgq = created;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_msgq_destroy(struct doca_comch_msgq *msgq)
{
	if (msgq == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (msgq->started)
		return DOCA_ERROR_IN_USE;
	if (msgq->dpa != NULL)
		soft_dpa_unuse(msgq->dpa);
	atomic_fetch_sub(&msgq->dev->users, 1);
	free(msgq);
	return DOCA_SUCCESS;
}

/* ---- configuration ---- */

static doca_error_t configurable(const struct doca_comch_msgq *msgq)
{
	return msgq->started ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

/* A queue has one direction. The same may be set again. */
static doca_error_t set_direction(struct doca_comch_msgq *msgq, struct doca_dpa *dpa,
				  enum soft_msgq_direction direction)
{
	if (msgq == NULL || dpa == NULL || dpa->dev != msgq->dev)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = configurable(msgq);
	if (result != DOCA_SUCCESS)
		return result;
	if (msgq->direction != SOFT_MSGQ_CPU_TO_CPU && msgq->direction != direction) {
		soft_detail("a message queue has one direction: create a second one for the other");
		return DOCA_ERROR_BAD_STATE;
	}
	soft_dpa_use(dpa);
	if (msgq->dpa != NULL)
		soft_dpa_unuse(msgq->dpa);
	msgq->dpa = dpa;
	msgq->direction = direction;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_msgq_set_dpa_consumer(struct doca_comch_msgq *msgq, struct doca_dpa *dpa)
{
	return set_direction(msgq, dpa, SOFT_MSGQ_TO_DPA);
}

doca_error_t soft_doca_comch_msgq_set_dpa_producer(struct doca_comch_msgq *msgq, struct doca_dpa *dpa)
{
	return set_direction(msgq, dpa, SOFT_MSGQ_FROM_DPA);
}

doca_error_t soft_doca_comch_msgq_set_max_num_consumers(struct doca_comch_msgq *msgq, uint32_t max_num_consumers)
{
	if (msgq == NULL || max_num_consumers == 0 || max_num_consumers > soft_limits()->max_consumers)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = configurable(msgq);
	if (result == DOCA_SUCCESS)
		msgq->max_consumers = max_num_consumers;
	return result;
}

doca_error_t soft_doca_comch_msgq_set_max_num_producers(struct doca_comch_msgq *msgq, uint32_t max_num_producers)
{
	if (msgq == NULL || max_num_producers == 0 || max_num_producers > soft_limits()->max_producers)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = configurable(msgq);
	if (result == DOCA_SUCCESS)
		msgq->max_producers = max_num_producers;
	return result;
}

/* ---- start and stop ---- */

doca_error_t soft_doca_comch_msgq_start(struct doca_comch_msgq *msgq)
{
	if (msgq == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = configurable(msgq);
	if (result == DOCA_SUCCESS && msgq->dpa != NULL && !soft_dpa_is_started(msgq->dpa))
		result = DOCA_ERROR_BAD_STATE;
	if (result == DOCA_SUCCESS)
		msgq->started = true;
	return result;
}

doca_error_t soft_doca_comch_msgq_stop(struct doca_comch_msgq *msgq)
{
	if (msgq == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!msgq->started)
		return DOCA_ERROR_BAD_STATE;
	if (msgq->num_consumers > 0 || msgq->num_producers > 0)
		return DOCA_ERROR_IN_USE;
	msgq->started = false;
	return DOCA_SUCCESS;
}

/* ---- contexts that have nothing to do ---- */

void soft_msgq_nothing(struct doca_ctx *ctx)
{
	(void)ctx;
}

bool soft_msgq_quiet(const struct doca_ctx *ctx)
{
	(void)ctx;
	return true;
}

bool soft_msgq_no_progress(struct doca_ctx *ctx)
{
	(void)ctx;
	return false;
}

uint64_t soft_msgq_never_ready(const struct doca_ctx *ctx)
{
	(void)ctx;
	return UINT64_MAX;
}

/* ---- where a consumer or producer runs ---- */

/* The same DPA as the message queue's. Other contexts have no data path there. */
doca_error_t soft_doca_ctx_set_datapath_on_dpa(struct doca_ctx *ctx, struct doca_dpa *dpa_dev)
{
	if (ctx == NULL || dpa_dev == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(ctx);
	if (result != DOCA_SUCCESS)
		return result;
	struct soft_msgq_consumer *consumer = soft_msgq_dpa_consumer(ctx);
	struct soft_msgq_producer *producer = soft_msgq_dpa_producer(ctx);
	if (consumer == NULL && producer == NULL) {
		soft_detail("only consumers and producers on the DPA's side of a message queue can be on a DPA");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	const struct doca_comch_msgq *msgq = consumer != NULL ? consumer->msgq : producer->msgq;
	if (msgq->dpa != dpa_dev)
		return DOCA_ERROR_INVALID_VALUE;
	*(consumer != NULL ? &consumer->dpa : &producer->dpa) = dpa_dev;
	return DOCA_SUCCESS;
}
