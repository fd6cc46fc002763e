/* SPDX-License-Identifier: Apache-2.0 */
#include "consumer.h"

static bool finish_start(struct doca_comch_consumer *consumer)
{
	if (!soft_member_is_up(&consumer->member)) {
		soft_ctx_fail(&consumer->ctx);
		return true;
	}
	if (!soft_member_is_registered(&consumer->member))
		return false;
	soft_member_tell(&consumer->member, consumer->announcement);
	consumer->announcement = NULL;
	soft_ctx_running(&consumer->ctx);
	return true;
}

/* What was delivered before the stop is still received, as its producers were told; the rest is flushed. */
static bool flush(struct doca_comch_consumer *consumer)
{
	if (soft_consumer_receive(consumer))
		return true;
	if (consumer->export != NULL)
		return soft_consumer_unshare(consumer);
	struct post_queue *queue = STAILQ_EMPTY(&consumer->posted) ? &consumer->unposted : &consumer->posted;
	struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(queue);
	if (task == NULL)
		return false;
	STAILQ_REMOVE_HEAD(queue, queued);
	soft_task_complete(&task->task, soft_member_is_up(&consumer->member) ? DOCA_ERROR_SHUTDOWN
									     : soft_member_fault(&consumer->member));
	return true;
}

bool soft_consumer_progress(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *consumer = soft_consumer_of(ctx);
	soft_member_heard(&consumer->member);
	if (ctx->state == DOCA_CTX_STATE_STARTING)
		return finish_start(consumer);
	if (ctx->state == DOCA_CTX_STATE_STOPPING)
		return flush(consumer);
	if (soft_consumer_receive(consumer) || soft_consumer_post_oldest(consumer))
		return true;
	if (soft_member_is_up(&consumer->member))
		return false;
	soft_ctx_fail(ctx);
	return true;
}

uint64_t soft_consumer_ready_at(const struct doca_ctx *ctx)
{
	const struct doca_comch_consumer *consumer = soft_consumer_of(ctx);
	bool unposted = !STAILQ_EMPTY(&consumer->unposted);
	bool work = unposted && !consumer->blocked;
	if (ctx->state == DOCA_CTX_STATE_STOPPING)
		work = unposted || !STAILQ_EMPTY(&consumer->posted) || consumer->export != NULL;
	return work ? 0 : UINT64_MAX;
}
