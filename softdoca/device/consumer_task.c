/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "consumer.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "buf.h"
#include "config.h"
#include "ctx.h"
#include "error.h"
#include "fast.h"
#include "lane.h"
#include "pe.h"
#include "soft.h"

/* ---- what may be posted ---- */

static const char *post_error(const struct doca_comch_consumer_task_post_recv *task)
{
	const struct doca_comch_consumer *consumer = soft_consumer_of(task->task.ctx);
	if (task->buf == NULL)
		return NULL;
	const char *reason = soft_buf_usage_error(task->buf, consumer->ctx.dev);
	if (reason != NULL)
		return reason;
	if (task->buf->mmap != consumer->mmap)
		return "the buffer is not of the consumer's memory map";
	if (task->buf->next != NULL || task->buf->first != task->buf)
		return "the buffer is part of a list";
	if (task->buf->len > soft_limits()->max_fast_buf_size)
		return "the buffer has more bytes than max_fast_buf_size";
	return soft_buf_tailroom(task->buf) == 0 ? "the buffer has no space behind its data" : NULL;
}

doca_error_t soft_consumer_validate(const struct doca_task *task)
{
	const char *reason = post_error((const struct doca_comch_consumer_task_post_recv *)task);
	if (reason == NULL)
		return DOCA_SUCCESS;
	soft_detail("post-receive task refused: %s", reason);
	return DOCA_ERROR_INVALID_VALUE;
}

/* ---- tasks ---- */

void soft_consumer_release(struct doca_task *task)
{
	STAILQ_INSERT_HEAD(&soft_consumer_of(task->ctx)->pool, (struct doca_comch_consumer_task_post_recv *)task,
			   queued);
}

/* The callback may free the task, submit it again, or stop the context. */
void soft_consumer_ended(struct doca_task *task)
{
	struct doca_comch_consumer *consumer = soft_consumer_of(task->ctx);
	(task->status == DOCA_SUCCESS ? consumer->received : consumer->failed)(
		(struct doca_comch_consumer_task_post_recv *)task, task->user_data, consumer->ctx.user_data);
}

doca_error_t soft_doca_comch_consumer_task_post_recv_alloc_init(struct doca_comch_consumer *consumer,
								struct doca_buf *buf,
								struct doca_comch_consumer_task_post_recv **task)
{
	if (consumer == NULL || task == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (consumer->ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	struct doca_comch_consumer_task_post_recv *taken = STAILQ_FIRST(&consumer->pool);
	if (taken == NULL)
		return DOCA_ERROR_NO_MEMORY;
	doca_error_t result = soft_task_take(&taken->task, &consumer->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	STAILQ_REMOVE_HEAD(&consumer->pool, queued);
	taken->buf = buf;
	taken->producer_id = SOFT_NO_ID;
	taken->imm_len = 0;
	*task = taken;
	return DOCA_SUCCESS;
}

struct doca_buf *soft_doca_comch_consumer_task_post_recv_get_buf(const struct doca_comch_consumer_task_post_recv *task)
{
	return task == NULL ? NULL : task->buf;
}

void soft_doca_comch_consumer_task_post_recv_set_buf(struct doca_comch_consumer_task_post_recv *task,
						     struct doca_buf *buf)
{
	if (task != NULL)
		task->buf = buf;
}

uint32_t soft_doca_comch_consumer_task_post_recv_get_producer_id(const struct doca_comch_consumer_task_post_recv *task)
{
	return task == NULL ? SOFT_NO_ID : task->producer_id;
}

const uint8_t *
soft_doca_comch_consumer_task_post_recv_get_imm_data(const struct doca_comch_consumer_task_post_recv *task)
{
	return task == NULL || task->imm_len == 0 ? NULL : task->imm;
}

uint32_t soft_doca_comch_consumer_task_post_recv_get_imm_data_len(const struct doca_comch_consumer_task_post_recv *task)
{
	return task == NULL ? 0 : task->imm_len;
}

struct doca_task *soft_doca_comch_consumer_task_post_recv_as_task(struct doca_comch_consumer_task_post_recv *task)
{
	return (struct doca_task *)task;
}

/* ---- slots ---- */

static struct soft_slot slot_of(const struct doca_buf *buf)
{
	if (buf == NULL)
		return (struct soft_slot){0};
	return (struct soft_slot){.addr = (uintptr_t)buf->data + buf->data_len, .capacity = soft_buf_tailroom(buf)};
}

/* With the lock. If the lane has ended, receiving from it says so. */
static void post_oldest(struct doca_comch_consumer *consumer)
{
	struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(&consumer->unposted);
	struct soft_slot slot = slot_of(task->buf);
	STAILQ_REMOVE_HEAD(&consumer->unposted, queued);
	task->capacity = slot.capacity;
	STAILQ_INSERT_TAIL(&consumer->posted, task, queued);
	(void)send(consumer->lane, &slot, sizeof(slot), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Returns how many tasks were posted; sets *full if not all were. */
static unsigned post_what_fits(struct doca_comch_consumer *consumer, bool *full)
{
	unsigned posted = 0;
	pthread_mutex_lock(&consumer->lock);
	for (; !STAILQ_EMPTY(&consumer->unposted) && soft_lane_writable(consumer->lane); posted++)
		post_oldest(consumer);
	*full = !STAILQ_EMPTY(&consumer->unposted);
	pthread_mutex_unlock(&consumer->lock);
	return posted;
}

bool soft_consumer_post(struct doca_comch_consumer *consumer)
{
	bool full;
	if (consumer->lane_over)
		return false;
	unsigned posted = post_what_fits(consumer, &full);
	if (full != consumer->blocked)
		soft_pe_watch(consumer->ctx.pe, consumer->lane, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
	consumer->blocked = full;
	if (full)
		soft_job_start(&consumer->job);
	return posted > 0;
}

enum soft_job_result soft_consumer_post_more(struct soft_job *job)
{
	bool full;
	unsigned posted = post_what_fits(
		(struct doca_comch_consumer *)((char *)job - offsetof(struct doca_comch_consumer, job)), &full);
	if (!full)
		return SOFT_JOB_DONE;
	return posted > 0 ? SOFT_JOB_MOVED : SOFT_JOB_WAITS;
}

/* A buffer that cannot be posted fails alone: producers do not see it. The queues are as deep as the pool. */
doca_error_t soft_consumer_submit(struct doca_task *task)
{
	struct doca_comch_consumer *consumer = soft_consumer_of(task->ctx);
	struct doca_comch_consumer_task_post_recv *post = (struct doca_comch_consumer_task_post_recv *)task;
	post->producer_id = SOFT_NO_ID;
	post->imm_len = 0;
	if (soft_consumer_validate(task) != DOCA_SUCCESS) {
		STAILQ_INSERT_TAIL(&consumer->refused, post, queued);
		return DOCA_SUCCESS;
	}
	pthread_mutex_lock(&consumer->lock);
	STAILQ_INSERT_TAIL(&consumer->unposted, post, queued);
	pthread_mutex_unlock(&consumer->lock);
	soft_consumer_post(consumer);
	return DOCA_SUCCESS;
}

struct doca_comch_consumer_task_post_recv *soft_consumer_take(struct doca_comch_consumer *consumer,
							      struct post_queue *queue)
{
	pthread_mutex_lock(&consumer->lock);
	struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(queue);
	if (task != NULL)
		STAILQ_REMOVE_HEAD(queue, queued);
	pthread_mutex_unlock(&consumer->lock);
	return task;
}

/* ---- deliveries ---- */

/* A delivery has a producer and bytes or immediate data. */
static bool makes_sense(const struct soft_delivery *delivery)
{
	return delivery->producer_id != SOFT_NO_ID && delivery->producer_id < SOFT_GONE_ID && delivery->reserved == 0 &&
	       (delivery->len > 0 || delivery->imm_len > 0);
}

/* Checks the peer's delivery against the oldest posted task. */
static bool credible(struct doca_comch_consumer *consumer, const struct soft_delivery *delivery, size_t len)
{
	pthread_mutex_lock(&consumer->lock);
	const struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(&consumer->posted);
	pthread_mutex_unlock(&consumer->lock);
	return makes_sense(delivery) && len >= sizeof(*delivery) && task != NULL &&
	       delivery->imm_len <= consumer->imm_data_len && len - sizeof(*delivery) == delivery->imm_len &&
	       delivery->len <= task->capacity;
}

/* Appends the data to the buffer's. */
static void take_delivery(struct doca_comch_consumer *consumer, const struct soft_delivery *delivery)
{
	struct doca_comch_consumer_task_post_recv *task = soft_consumer_take(consumer, &consumer->posted);
	if (task->buf != NULL)
		task->buf->data_len += delivery->len;
	task->producer_id = delivery->producer_id;
	task->imm_len = delivery->imm_len;
	memcpy(task->imm, consumer->packet + sizeof(*delivery), delivery->imm_len);
	soft_task_complete(&task->task, DOCA_SUCCESS);
}

/* The end of the lane, or an invalid delivery, ends the consumer; its descriptor has no more events. */
static bool lane_ended(struct doca_comch_consumer *consumer)
{
	consumer->lane_over = true;
	soft_job_stop(&consumer->job);
	soft_pe_unwatch(consumer->ctx.pe, consumer->lane);
	if (consumer->ctx.state != DOCA_CTX_STATE_RUNNING)
		return false;
	soft_ctx_fail(&consumer->ctx);
	return true;
}

/*
 * ECONNRESET, that the peer closed with slots unread, is reported once and before the deliveries, which its producers
 * count as done. So receive again.
 */
static ssize_t receive_packet(const struct doca_comch_consumer *consumer, size_t size)
{
	ssize_t n = recv(consumer->lane, consumer->packet, size, MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && errno == ECONNRESET)
		n = recv(consumer->lane, consumer->packet, size, MSG_DONTWAIT | MSG_TRUNC);
	return n;
}

bool soft_consumer_receive(struct doca_comch_consumer *consumer)
{
	if (consumer->lane_over)
		return false;
	size_t size = sizeof(struct soft_delivery) + consumer->imm_data_len;
	ssize_t n = receive_packet(consumer, size);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	struct soft_delivery delivery;
	memcpy(&delivery, consumer->packet, n < (ssize_t)sizeof(delivery) ? 0 : sizeof(delivery));
	if (n < (ssize_t)sizeof(delivery) || (size_t)n > size || !credible(consumer, &delivery, (size_t)n))
		return lane_ended(consumer);
	take_delivery(consumer, &delivery);
	return true;
}
