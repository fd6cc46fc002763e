/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "error.h"
#include "fault.h"
#include "kernel.h"
#include "mapping.h"
#include "msgq.h"
#include "soft_dpa.h"

static struct soft_msgq_producer *producer_of(const struct doca_ctx *ctx)
{
	return (struct soft_msgq_producer *)ctx;
}

static bool is_on_dpa(const struct soft_msgq_producer *producer)
{
	return producer->msgq->direction == SOFT_MSGQ_FROM_DPA;
}

/* ---- on the CPU ---- */

static doca_error_t cpu_start(struct doca_ctx *ctx)
{
	struct soft_msgq_producer *producer = producer_of(ctx);
	if (producer->base.num_tasks == 0) {
		soft_detail("a producer needs doca_comch_producer_task_send_set_conf before it starts");
		return DOCA_ERROR_INVALID_VALUE;
	}
	return soft_producer_make_pool(&producer->base, SOFT_MSGQ_IMM);
}

static void cpu_idle(struct doca_ctx *ctx)
{
	soft_producer_free_pool(&producer_of(ctx)->base);
}

/* A task that was submitted has delivered its message. */
static bool cpu_progress(struct doca_ctx *ctx)
{
	struct soft_msgq_producer *producer = producer_of(ctx);
	struct doca_comch_producer_task_send *task = STAILQ_FIRST(&producer->base.sends);
	if (task == NULL)
		return false;
	STAILQ_REMOVE_HEAD(&producer->base.sends, queued);
	soft_task_complete(&task->task, task->fault);
	return true;
}

static uint64_t cpu_ready_at(const struct doca_ctx *ctx)
{
	return STAILQ_EMPTY(&producer_of(ctx)->base.sends) ? UINT64_MAX : 0;
}

static doca_error_t cpu_validate(const struct doca_task *task)
{
	const struct doca_comch_producer_task_send *send = (const struct doca_comch_producer_task_send *)task;
	if (send->buf == NULL && send->imm_len > 0)
		return DOCA_SUCCESS;
	soft_detail("send task refused: a message queue carries immediate data, and nothing else");
	return DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t deliver(const struct doca_comch_producer_task_send *send)
{
	const struct soft_msgq_producer *producer = producer_of(send->task.ctx);
	soft_dpa_lock();
	enum soft_msgq_delivery delivery = soft_msgq_deliver(producer->msgq, send->consumer_id,
							     producer->base.member.id, send->imm, send->imm_len);
	soft_dpa_unlock();
	if (delivery == SOFT_MSGQ_NO_CONSUMER)
		soft_detail("the message queue has no running consumer %u", (unsigned)send->consumer_id);
	else if (delivery == SOFT_MSGQ_TOO_LONG)
		soft_detail("the immediate data is longer than the consumer's");
	if (delivery == SOFT_MSGQ_NO_RECEIVE)
		return DOCA_ERROR_AGAIN;
	return delivery == SOFT_MSGQ_DELIVERED ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

/* AGAIN until the consumer can receive. */
static doca_error_t cpu_submit(struct doca_task *task)
{
	struct doca_comch_producer_task_send *send = (struct doca_comch_producer_task_send *)task;
	doca_error_t result = cpu_validate(task);
	if (result != DOCA_SUCCESS)
		return result;
	send->fault = soft_fault_completion();
	if (send->fault == DOCA_SUCCESS)
		result = deliver(send);
	if (result == DOCA_SUCCESS)
		STAILQ_INSERT_TAIL(&producer_of(task->ctx)->base.sends, send, queued);
	return result;
}

static const struct soft_ctx_class cpu_class = {
	.name = "comch message queue producer",
	.is_comch = true,
	.start = cpu_start,
	.stopping = soft_msgq_nothing,
	.quiet = soft_msgq_quiet,
	.idle = cpu_idle,
	.progress = cpu_progress,
	.ready_at = cpu_ready_at,
	.validate = cpu_validate,
	.submit = cpu_submit,
	.ended = soft_producer_ended,
	.release = soft_producer_release,
};

/* ---- on the DPA ---- */

static const char *dpa_start_error(const struct soft_msgq_producer *producer)
{
	if (producer->dpa == NULL)
		return "doca_ctx_set_datapath_on_dpa";
	if (producer->completion_handle == 0)
		return "doca_comch_producer_dpa_completion_attach";
	return producer->dev_max_num_send == 0 ? "doca_comch_producer_set_dev_max_num_send" : NULL;
}

static doca_error_t attach(struct soft_msgq_producer *producer)
{
	struct doca_dpa_completion *completion = soft_object_find(SOFT_OBJECT_COMPLETION, producer->completion_handle);
	if (completion == NULL || !completion->started || completion->dpa != producer->dpa) {
		soft_detail("a producer on the DPA cannot start: its completion context is not started there");
		return DOCA_ERROR_INVALID_VALUE;
	}
	completion->users++;
	producer->completion = completion;
	return DOCA_SUCCESS;
}

static doca_error_t dpa_start(struct doca_ctx *ctx)
{
	struct soft_msgq_producer *producer = producer_of(ctx);
	const char *missing = dpa_start_error(producer);
	if (missing != NULL) {
		soft_detail("a producer on the DPA needs %s before it starts", missing);
		return DOCA_ERROR_INVALID_VALUE;
	}
	soft_dpa_lock();
	doca_error_t result = attach(producer);
	if (result == DOCA_SUCCESS) {
		soft_object_add(&producer->object, SOFT_OBJECT_PRODUCER, producer);
		producer->unreported = 0;
	}
	soft_dpa_unlock();
	return result;
}

static void dpa_idle(struct doca_ctx *ctx)
{
	struct soft_msgq_producer *producer = producer_of(ctx);
	soft_dpa_lock();
	soft_object_remove(&producer->object);
	producer->completion->users--;
	soft_dpa_unlock();
}

/* Without a pool there are no tasks. */
static const struct soft_ctx_class dpa_class = {
	.name = "comch message queue producer on the DPA",
	.is_comch = true,
	.needs_no_engine = true,
	.start = dpa_start,
	.stopping = soft_msgq_nothing,
	.quiet = soft_msgq_quiet,
	.idle = dpa_idle,
	.progress = soft_msgq_no_progress,
	.ready_at = soft_msgq_never_ready,
};

struct soft_msgq_producer *soft_msgq_dpa_producer(const struct doca_ctx *ctx)
{
	return ctx->class == &dpa_class ? producer_of(ctx) : NULL;
}

/* ---- functions of DOCA ---- */

static void leave_msgq(struct doca_comch_producer *base)
{
	producer_of(&base->ctx)->msgq->num_producers--;
}

doca_error_t soft_doca_comch_msgq_producer_create(struct doca_comch_msgq *msgq, struct doca_comch_producer **producer)
{
	if (msgq == NULL || producer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!msgq->started)
		return DOCA_ERROR_BAD_STATE;
	struct soft_msgq_producer *created =
		msgq->num_producers == msgq->max_producers ? NULL : calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	created->msgq = msgq;
	created->base.leave = leave_msgq;
	created->base.member.id = ++msgq->last_producer_id;
	msgq->num_producers++;
	soft_ctx_init(&created->base.ctx, is_on_dpa(created) ? &dpa_class : &cpu_class, msgq->dev);
	*producer = &created->base;
	return DOCA_SUCCESS;
}

/* Returns SUCCESS and sets *found if the producer is on the DPA. */
static doca_error_t on_dpa(struct doca_comch_producer *producer, struct soft_msgq_producer **found)
{
	*found = soft_msgq_dpa_producer(&producer->ctx);
	return *found == NULL ? DOCA_ERROR_NOT_SUPPORTED : soft_ctx_configurable(&producer->ctx);
}

doca_error_t soft_doca_comch_producer_set_dev_max_num_send(struct doca_comch_producer *producer, uint32_t dev_num_send)
{
	uint32_t size = soft_dpa_queue_size(dev_num_send);
	struct soft_msgq_producer *found;
	if (producer == NULL || size == 0)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = on_dpa(producer, &found);
	if (result == DOCA_SUCCESS)
		found->dev_max_num_send = size;
	return result;
}

doca_error_t soft_doca_comch_producer_dpa_completion_attach(struct doca_comch_producer *producer,
							    struct doca_dpa_completion *dpa_comp)
{
	struct soft_msgq_producer *found;
	if (producer == NULL || dpa_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = on_dpa(producer, &found);
	if (result != DOCA_SUCCESS)
		return result;
	soft_dpa_lock();
	bool started = dpa_comp->started;
	if (started)
		found->completion_handle = dpa_comp->object.handle;
	soft_dpa_unlock();
	return started ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t soft_doca_comch_producer_get_dpa_handle(struct doca_comch_producer *producer,
						     doca_dpa_dev_comch_producer_t *dpa_producer)
{
	if (producer == NULL || dpa_producer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	const struct soft_msgq_producer *found = soft_msgq_dpa_producer(&producer->ctx);
	if (found == NULL || producer->ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	*dpa_producer = found->object.handle;
	return DOCA_SUCCESS;
}

/* ---- device functions ---- */

static const uint32_t known_flags = DOCA_DPA_DEV_SUBMIT_FLAG_FLUSH | DOCA_DPA_DEV_SUBMIT_FLAG_OPTIMIZE_REPORTS;

/* An operation that code of the DPA posts: a message, and before it a copy if len is not 0. */
struct operation {
	const char *function;
	uint32_t consumer_id;
	const uint8_t *imm;
	uint32_t imm_len;
	uint32_t flags;
	bool has_copy;
	struct soft_place to, from;
	size_t len;
};

/* Returns NULL, and notes the error, for a handle of no running producer of the kernel's DPA. */
static struct soft_msgq_producer *find_producer(struct soft_kernel *kernel, uint64_t handle, const char *function)
{
	struct soft_msgq_producer *producer = soft_object_find(SOFT_OBJECT_PRODUCER, handle);
	if (producer != NULL && producer->dpa == kernel->dpa)
		return producer;
	soft_kernel_error(kernel, "%s with the handle of no running producer of this DPA", function);
	return NULL;
}

static const char *delivery_error(enum soft_msgq_delivery delivery)
{
	switch (delivery) {
	case SOFT_MSGQ_NO_CONSUMER:
		return "the message queue has no running consumer with that id";
	case SOFT_MSGQ_NO_RECEIVE:
		return "the consumer has posted no receive";
	case SOFT_MSGQ_TOO_LONG:
		return "the immediate data is longer than the consumer's";
	default:
		return NULL;
	}
}

/* Errors of the operation alone. A copy may come without a message's bytes. */
static const char *operation_error(const struct operation *operation)
{
	if ((operation->flags & ~known_flags) != 0)
		return "there is no such flag";
	if (operation->imm_len > SOFT_MSGQ_IMM)
		return "immediate data has at most 32 bytes";
	if (operation->imm == NULL && operation->imm_len > 0)
		return "there is no immediate data";
	return operation->imm_len == 0 && !operation->has_copy ? "there is no immediate data" : NULL;
}

/* The receive is there before the copy begins, so a message that cannot be delivered leaves no bytes. */
static const char *execute(struct soft_msgq_producer *producer, const struct operation *operation)
{
	const char *reason = operation_error(operation);
	if (reason == NULL)
		reason = delivery_error(
			soft_msgq_can_deliver(producer->msgq, operation->consumer_id, operation->imm_len));
	if (reason == NULL && operation->has_copy)
		reason = soft_mapping_copy(producer->dpa, operation->to, operation->from, operation->len);
	if (reason == NULL)
		soft_msgq_deliver(producer->msgq, operation->consumer_id, producer->base.member.id, operation->imm,
				  operation->imm_len);
	return reason;
}

/* A report brings the reports that were left out before it, which the send queue has to remember. */
static void report(struct soft_msgq_producer *producer, struct soft_kernel *kernel, bool failed, uint32_t flags)
{
	uint32_t user_data =
		(uint32_t)producer->base.ctx.user_data.u64 & ((1U << DOCA_DPA_COMPLETION_LOG_MAX_USER_DATA) - 1);
	if (!failed && (flags & DOCA_DPA_DEV_SUBMIT_FLAG_OPTIMIZE_REPORTS) != 0) {
		if (producer->unreported < producer->dev_max_num_send - 1)
			producer->unreported++;
		return;
	}
	for (; producer->unreported > 0; producer->unreported--)
		soft_completion_push(producer->completion, kernel, DOCA_DPA_DEV_COMP_SEND, user_data);
	soft_completion_push(producer->completion, kernel, failed ? DOCA_DPA_DEV_COMP_SEND_ERR : DOCA_DPA_DEV_COMP_SEND,
			     user_data);
}

/* Operations are executed at once and in order, so every one is flushed, and the send queue never fills. */
static void post(doca_dpa_dev_comch_producer_t handle, const struct operation *operation)
{
	struct soft_kernel *kernel = soft_kernel_enter(operation->function);
	if (kernel == NULL)
		return;
	struct soft_msgq_producer *producer = find_producer(kernel, handle, operation->function);
	if (producer != NULL) {
		const char *reason = execute(producer, operation);
		if (reason != NULL)
			soft_kernel_error(kernel, "%s: %s", operation->function, reason);
		report(producer, kernel, reason != NULL, operation->flags);
	}
	soft_kernel_leave(kernel);
}

void soft_doca_dpa_dev_comch_producer_post_send_imm_only(doca_dpa_dev_comch_producer_t producer, uint32_t consumer_id,
							 const uint8_t *imm, uint32_t imm_length, uint32_t flags)
{
	post(producer, &(struct operation){
			       .function = "doca_dpa_dev_comch_producer_post_send_imm_only",
			       .consumer_id = consumer_id,
			       .imm = imm,
			       .imm_len = imm_length,
			       .flags = flags,
		       });
}

void soft_doca_dpa_dev_comch_producer_dma_copy(doca_dpa_dev_comch_producer_t producer, uint32_t consumer_id,
					       doca_dpa_dev_mmap_t dst_mmap, uint64_t dst_addr,
					       doca_dpa_dev_mmap_t src_mmap, uint64_t src_addr, size_t length,
					       const uint8_t *imm, uint32_t imm_length, uint32_t flags)
{
	post(producer, &(struct operation){
			       .function = "doca_dpa_dev_comch_producer_dma_copy",
			       .consumer_id = consumer_id,
			       .imm = imm,
			       .imm_len = imm_length,
			       .flags = flags,
			       .has_copy = true,
			       .to = {dst_mmap, dst_addr},
			       .from = {src_mmap, src_addr},
			       .len = length,
		       });
}

int soft_doca_dpa_dev_comch_producer_is_consumer_empty(doca_dpa_dev_comch_producer_t producer, uint32_t consumer_id)
{
	static const char function[] = "doca_dpa_dev_comch_producer_is_consumer_empty";
	struct soft_kernel *kernel = soft_kernel_enter(function);
	if (kernel == NULL)
		return 1;
	const struct soft_msgq_producer *found = find_producer(kernel, producer, function);
	bool empty = true;
	if (found != NULL) {
		enum soft_msgq_delivery delivery = soft_msgq_can_deliver(found->msgq, consumer_id, 0);
		if (delivery == SOFT_MSGQ_NO_CONSUMER)
			soft_kernel_error(kernel, "%s: %s", function, delivery_error(delivery));
		empty = delivery != SOFT_MSGQ_DELIVERED;
	}
	soft_kernel_leave_poll(kernel, !empty);
	return empty;
}
