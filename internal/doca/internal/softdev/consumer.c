/* SPDX-License-Identifier: Apache-2.0 */
#include "consumer.h"

#include <stdlib.h>

static const struct soft_ctx_class consumer_class = {
	.name = "comch consumer",
	.is_comch = true,
	.start = soft_consumer_start,
	.stopping = soft_consumer_stopping,
	.quiet = soft_consumer_quiet,
	.idle = soft_consumer_idle,
	.progress = soft_consumer_progress,
	.ready_at = soft_consumer_ready_at,
	.validate = soft_consumer_validate,
	.submit = soft_consumer_submit,
	.ended = soft_consumer_ended,
	.release = soft_consumer_release,
};

doca_error_t soft_doca_comch_consumer_create(struct doca_comch_connection *comch_connection, struct doca_mmap *buf_mmap,
					     struct doca_comch_consumer **consumer)
{
	if (comch_connection == NULL || buf_mmap == NULL || consumer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct soft_fast *fast = comch_connection->fast;
	if (!soft_consumer_suits(buf_mmap, fast->dev)) {
		soft_detail("a consumer's memory map needs PCI_READ_WRITE and the connection's device");
		return DOCA_ERROR_INVALID_VALUE;
	}
	struct doca_comch_consumer *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	doca_error_t result = soft_member_join(&created->member, fast, SOFT_CONSUMER);
	if (result != DOCA_SUCCESS) {
		free(created);
		return result;
	}
	atomic_fetch_add(&buf_mmap->consumers, 1);
	created->mmap = buf_mmap;
	created->lane = -1;
	soft_ctx_init(&created->ctx, &consumer_class, fast->dev);
	*consumer = created;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_consumer_destroy(struct doca_comch_consumer *consumer)
{
	if (consumer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_fini(&consumer->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	soft_member_leave(&consumer->member);
	atomic_fetch_sub(&consumer->mmap->consumers, 1);
	free(consumer);
	return DOCA_SUCCESS;
}

struct doca_ctx *soft_doca_comch_consumer_as_ctx(struct doca_comch_consumer *consumer)
{
	return (struct doca_ctx *)consumer;
}

doca_error_t soft_doca_comch_consumer_get_id(const struct doca_comch_consumer *consumer, uint32_t *id)
{
	if (consumer == NULL || id == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*id = consumer->member.id;
	return DOCA_SUCCESS;
}

/* Nothing says what the default is, so there is no immediate data for a consumer that did not ask for it. */
doca_error_t soft_doca_comch_consumer_set_imm_data_len(struct doca_comch_consumer *consumer, uint32_t imm_data_len)
{
	if (consumer == NULL || imm_data_len > soft_limits()->max_imm_data_len)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(&consumer->ctx);
	if (result == DOCA_SUCCESS)
		consumer->imm_data_len = imm_data_len;
	return result;
}

doca_error_t soft_doca_comch_consumer_get_imm_data_len(const struct doca_comch_consumer *consumer,
						       uint32_t *imm_data_len)
{
	if (consumer == NULL || imm_data_len == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*imm_data_len = consumer->imm_data_len;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_consumer_task_post_recv_set_conf(
	struct doca_comch_consumer *consumer, doca_comch_consumer_task_post_recv_completion_cb_t task_completion_cb,
	doca_comch_consumer_task_post_recv_completion_cb_t task_error_cb, uint32_t num_post_recv_tasks)
{
	if (consumer == NULL || task_completion_cb == NULL || task_error_cb == NULL || num_post_recv_tasks == 0 ||
	    num_post_recv_tasks > soft_limits()->max_fast_tasks)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(&consumer->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	consumer->received = task_completion_cb;
	consumer->failed = task_error_cb;
	consumer->num_tasks = num_post_recv_tasks;
	return DOCA_SUCCESS;
}
