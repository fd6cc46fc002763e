/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "error.h"
#include "kernel.h"
#include "msgq.h"
#include "pe.h"
#include "soft_dpa.h"

static struct soft_msgq_consumer *consumer_of(const struct doca_ctx *ctx)
{
	return (struct soft_msgq_consumer *)ctx;
}

static bool is_on_dpa(const struct soft_msgq_consumer *consumer)
{
	return consumer->msgq->direction == SOFT_MSGQ_TO_DPA;
}

/* ---- deliveries; all under the lock ---- */

static struct soft_msgq_consumer *find_consumer(const struct doca_comch_msgq *msgq, uint32_t id)
{
	struct soft_msgq_consumer *consumer;
	LIST_FOREACH(consumer, &msgq->consumers, link)
	{
		if (consumer->base.member.id == id && consumer->running)
			return consumer;
	}
	return NULL;
}

static bool can_receive(const struct soft_msgq_consumer *consumer)
{
	if (!is_on_dpa(consumer))
		return !STAILQ_EMPTY(&consumer->base.posted);
	return consumer->credits > 0 && !soft_ring_is_full(&consumer->completion->ring);
}

enum soft_msgq_delivery soft_msgq_can_deliver(const struct doca_comch_msgq *msgq, uint32_t consumer_id, uint32_t len)
{
	const struct soft_msgq_consumer *consumer = find_consumer(msgq, consumer_id);
	if (consumer == NULL)
		return SOFT_MSGQ_NO_CONSUMER;
	if (len > consumer->base.imm_data_len)
		return SOFT_MSGQ_TOO_LONG;
	return can_receive(consumer) ? SOFT_MSGQ_DELIVERED : SOFT_MSGQ_NO_RECEIVE;
}

static void wake(struct soft_msgq_consumer *consumer)
{
	if (!consumer->woken)
		consumer->woken = eventfd_write(consumer->wakeup, 1) == 0;
}

static void deliver_to_task(struct soft_msgq_consumer *consumer, uint32_t producer_id, const uint8_t *imm, uint32_t len)
{
	struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(&consumer->base.posted);
	STAILQ_REMOVE_HEAD(&consumer->base.posted, queued);
	task->producer_id = producer_id;
	task->imm_len = len;
	if (len > 0)
		memcpy(task->imm, imm, len);
	STAILQ_INSERT_TAIL(&consumer->arrived, task, queued);
	wake(consumer);
}

enum soft_msgq_delivery soft_msgq_deliver(struct doca_comch_msgq *msgq, uint32_t consumer_id, uint32_t producer_id,
					  const uint8_t *imm, uint32_t len)
{
	enum soft_msgq_delivery delivery = soft_msgq_can_deliver(msgq, consumer_id, len);
	if (delivery != SOFT_MSGQ_DELIVERED)
		return delivery;
	struct soft_msgq_consumer *consumer = find_consumer(msgq, consumer_id);
	if (is_on_dpa(consumer)) {
		consumer->credits--;
		soft_consumer_completion_arrive(consumer->completion, producer_id, imm, len);
	} else {
		deliver_to_task(consumer, producer_id, imm, len);
	}
	return SOFT_MSGQ_DELIVERED;
}

/* ---- on the CPU ---- */

/* No default is documented; a message queue carries nothing but immediate data. */
static void choose_imm_data_len(struct soft_msgq_consumer *consumer, uint32_t by_default)
{
	if (consumer->base.imm_data_len == 0)
		consumer->base.imm_data_len = by_default;
}

static void set_running(struct soft_msgq_consumer *consumer, bool running)
{
	soft_dpa_lock();
	consumer->running = running;
	soft_dpa_unlock();
}

static doca_error_t open_wakeup(struct soft_msgq_consumer *consumer)
{
	consumer->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (consumer->wakeup < 0)
		return DOCA_ERROR_OPERATING_SYSTEM;
	doca_error_t result = soft_pe_watch(consumer->base.ctx.pe, consumer->wakeup, EPOLLIN);
	if (result != DOCA_SUCCESS)
		close(consumer->wakeup);
	return result;
}

static doca_error_t cpu_start(struct doca_ctx *ctx)
{
	struct soft_msgq_consumer *consumer = consumer_of(ctx);
	if (consumer->base.num_tasks == 0) {
		soft_detail("a consumer needs doca_comch_consumer_task_post_recv_set_conf before it starts");
		return DOCA_ERROR_INVALID_VALUE;
	}
	choose_imm_data_len(consumer, SOFT_MSGQ_IMM);
	doca_error_t result = soft_consumer_make_pool(&consumer->base);
	if (result != DOCA_SUCCESS)
		return result;
	result = open_wakeup(consumer);
	if (result != DOCA_SUCCESS) {
		soft_consumer_free_pool(&consumer->base);
		return result;
	}
	STAILQ_INIT(&consumer->arrived);
	consumer->woken = false;
	set_running(consumer, true);
	return DOCA_SUCCESS;
}

/* Messages that have arrived still complete their tasks; the others are flushed. */
static void cpu_stopping(struct doca_ctx *ctx)
{
	set_running(consumer_of(ctx), false);
}

static void cpu_idle(struct doca_ctx *ctx)
{
	struct soft_msgq_consumer *consumer = consumer_of(ctx);
	set_running(consumer, false);
	soft_pe_unwatch(ctx->pe, consumer->wakeup);
	close(consumer->wakeup);
	soft_consumer_free_pool(&consumer->base);
}

static void clear_wakeup(struct soft_msgq_consumer *consumer)
{
	eventfd_t ignored;
	if (consumer->woken && eventfd_read(consumer->wakeup, &ignored) == 0)
		consumer->woken = false;
}

static struct doca_comch_consumer_task_post_recv *take(struct post_queue *queue)
{
	struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(queue);
	if (task != NULL)
		STAILQ_REMOVE_HEAD(queue, queued);
	return task;
}

static bool cpu_progress(struct doca_ctx *ctx)
{
	struct soft_msgq_consumer *consumer = consumer_of(ctx);
	doca_error_t status = DOCA_SUCCESS;
	soft_dpa_lock();
	clear_wakeup(consumer);
	struct doca_comch_consumer_task_post_recv *task = take(&consumer->arrived);
	if (task == NULL && ctx->state == DOCA_CTX_STATE_STOPPING) {
		task = take(&consumer->base.posted);
		status = DOCA_ERROR_SHUTDOWN;
	}
	soft_dpa_unlock();
	if (task == NULL)
		return false;
	soft_task_complete(&task->task, status);
	return true;
}

static uint64_t cpu_ready_at(const struct doca_ctx *ctx)
{
	const struct soft_msgq_consumer *consumer = consumer_of(ctx);
	soft_dpa_lock();
	bool work = !STAILQ_EMPTY(&consumer->arrived);
	if (ctx->state == DOCA_CTX_STATE_STOPPING)
		work = work || !STAILQ_EMPTY(&consumer->base.posted);
	soft_dpa_unlock();
	return work ? 0 : UINT64_MAX;
}

static doca_error_t cpu_validate(const struct doca_task *task)
{
	if (((const struct doca_comch_consumer_task_post_recv *)task)->buf == NULL)
		return DOCA_SUCCESS;
	soft_detail("post-receive task refused: a message queue has immediate data only, no buffers");
	return DOCA_ERROR_INVALID_VALUE;
}

/* The task is posted at once, because no peer has to be told. */
static doca_error_t cpu_submit(struct doca_task *task)
{
	struct doca_comch_consumer_task_post_recv *post = (struct doca_comch_consumer_task_post_recv *)task;
	doca_error_t result = cpu_validate(task);
	if (result != DOCA_SUCCESS)
		return result;
	post->producer_id = SOFT_NO_ID;
	post->imm_len = 0;
	soft_dpa_lock();
	STAILQ_INSERT_TAIL(&consumer_of(task->ctx)->base.posted, post, queued);
	soft_dpa_unlock();
	return DOCA_SUCCESS;
}

static const struct soft_ctx_class cpu_class = {
	.name = "comch message queue consumer",
	.is_comch = true,
	.start = cpu_start,
	.stopping = cpu_stopping,
	.quiet = soft_msgq_quiet,
	.idle = cpu_idle,
	.progress = cpu_progress,
	.ready_at = cpu_ready_at,
	.validate = cpu_validate,
	.submit = cpu_submit,
	.ended = soft_consumer_ended,
	.release = soft_consumer_release,
};

/* ---- on the DPA ---- */

static const char *dpa_start_error(const struct soft_msgq_consumer *consumer)
{
	if (consumer->dpa == NULL)
		return "doca_ctx_set_datapath_on_dpa";
	if (consumer->completion_handle == 0)
		return "doca_comch_consumer_set_completion";
	return consumer->dev_max_num_recv == 0 ? "doca_comch_consumer_set_dev_max_num_recv" : NULL;
}

static doca_error_t join_completion(struct soft_msgq_consumer *consumer)
{
	const struct doca_comch_consumer_completion *completion =
		soft_object_find(SOFT_OBJECT_CONSUMER_COMPLETION, consumer->completion_handle);
	if (completion != NULL)
		choose_imm_data_len(consumer, completion->imm_data_len);
	return soft_consumer_completion_join(consumer->completion_handle, consumer->dpa, consumer->dev_max_num_recv,
					     consumer->base.imm_data_len, &consumer->completion);
}

static doca_error_t dpa_start(struct doca_ctx *ctx)
{
	struct soft_msgq_consumer *consumer = consumer_of(ctx);
	const char *missing = dpa_start_error(consumer);
	if (missing != NULL) {
		soft_detail("a consumer on the DPA needs %s before it starts", missing);
		return DOCA_ERROR_INVALID_VALUE;
	}
	soft_dpa_lock();
	doca_error_t result = join_completion(consumer);
	if (result == DOCA_SUCCESS) {
		soft_object_add(&consumer->object, SOFT_OBJECT_CONSUMER, consumer);
		consumer->credits = 0;
		consumer->running = true;
	}
	soft_dpa_unlock();
	return result;
}

/* Messages that have arrived stay in the completion context. */
static void dpa_idle(struct doca_ctx *ctx)
{
	struct soft_msgq_consumer *consumer = consumer_of(ctx);
	soft_dpa_lock();
	consumer->running = false;
	soft_object_remove(&consumer->object);
	soft_consumer_completion_leave(consumer->completion, consumer->dev_max_num_recv);
	soft_dpa_unlock();
}

/* Without a pool there are no tasks. */
static const struct soft_ctx_class dpa_class = {
	.name = "comch message queue consumer on the DPA",
	.is_comch = true,
	.needs_no_engine = true,
	.start = dpa_start,
	.stopping = soft_msgq_nothing,
	.quiet = soft_msgq_quiet,
	.idle = dpa_idle,
	.progress = soft_msgq_no_progress,
	.ready_at = soft_msgq_never_ready,
};

struct soft_msgq_consumer *soft_msgq_dpa_consumer(const struct doca_ctx *ctx)
{
	return ctx->class == &dpa_class ? consumer_of(ctx) : NULL;
}

/* ---- functions of DOCA ---- */

static void leave_msgq(struct doca_comch_consumer *base)
{
	struct soft_msgq_consumer *consumer = consumer_of(&base->ctx);
	soft_dpa_lock();
	LIST_REMOVE(consumer, link);
	soft_dpa_unlock();
	consumer->msgq->num_consumers--;
}

doca_error_t soft_doca_comch_msgq_consumer_create(struct doca_comch_msgq *msgq, struct doca_comch_consumer **consumer)
{
	if (msgq == NULL || consumer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!msgq->started)
		return DOCA_ERROR_BAD_STATE;
	struct soft_msgq_consumer *created =
		msgq->num_consumers == msgq->max_consumers ? NULL : calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	created->msgq = msgq;
	created->base.leave = leave_msgq;
	created->base.member.id = ++msgq->last_consumer_id;
	msgq->num_consumers++;
	soft_ctx_init(&created->base.ctx, is_on_dpa(created) ? &dpa_class : &cpu_class, msgq->dev);
	soft_dpa_lock();
	LIST_INSERT_HEAD(&msgq->consumers, created, link);
	soft_dpa_unlock();
	*consumer = &created->base;
	return DOCA_SUCCESS;
}

/* Returns SUCCESS and sets *found if the consumer is on the DPA. */
static doca_error_t on_dpa(struct doca_comch_consumer *consumer, struct soft_msgq_consumer **found)
{
	*found = soft_msgq_dpa_consumer(&consumer->ctx);
	return *found == NULL ? DOCA_ERROR_NOT_SUPPORTED : soft_ctx_configurable(&consumer->ctx);
}

doca_error_t soft_doca_comch_consumer_set_dev_max_num_recv(struct doca_comch_consumer *consumer, uint32_t dev_num_recv)
{
	uint32_t size = soft_dpa_queue_size(dev_num_recv);
	struct soft_msgq_consumer *found;
	if (consumer == NULL || size == 0)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = on_dpa(consumer, &found);
	if (result == DOCA_SUCCESS)
		found->dev_max_num_recv = size;
	return result;
}

/* No function of the DPA returns user_data. */
doca_error_t soft_doca_comch_consumer_set_completion(struct doca_comch_consumer *consumer,
						     struct doca_comch_consumer_completion *consumer_comp,
						     uint32_t user_data)
{
	struct soft_msgq_consumer *found;
	(void)user_data;
	if (consumer == NULL || consumer_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = on_dpa(consumer, &found);
	if (result != DOCA_SUCCESS)
		return result;
	soft_dpa_lock();
	bool started = consumer_comp->started;
	if (started)
		found->completion_handle = consumer_comp->object.handle;
	soft_dpa_unlock();
	return started ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t soft_doca_comch_consumer_get_dpa_handle(struct doca_comch_consumer *consumer,
						     doca_dpa_dev_comch_consumer_t *dpa_consumer)
{
	if (consumer == NULL || dpa_consumer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	const struct soft_msgq_consumer *found = soft_msgq_dpa_consumer(&consumer->ctx);
	if (found == NULL || consumer->ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	*dpa_consumer = found->object.handle;
	return DOCA_SUCCESS;
}

/* ---- device functions ---- */

void soft_doca_dpa_dev_comch_consumer_ack(doca_dpa_dev_comch_consumer_t consumer, uint32_t num_msg)
{
	struct soft_kernel *kernel = soft_kernel_enter("doca_dpa_dev_comch_consumer_ack");
	if (kernel == NULL)
		return;
	struct soft_msgq_consumer *found = soft_object_find(SOFT_OBJECT_CONSUMER, consumer);
	if (found == NULL || found->dpa != kernel->dpa)
		soft_kernel_error(kernel, "doca_dpa_dev_comch_consumer_ack with the handle of no running consumer of "
					  "this DPA");
	else if (num_msg > found->dev_max_num_recv - found->credits)
		soft_kernel_error(kernel, "doca_dpa_dev_comch_consumer_ack beyond the %u receives of the consumer",
				  (unsigned)found->dev_max_num_recv);
	else
		found->credits += num_msg;
	soft_kernel_leave(kernel);
}
