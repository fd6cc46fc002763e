/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumers. A task is posted by progress: its buffer becomes a slot of the peer's producers. The deliveries that come
 * back complete the posted tasks in order.
 */
#define _GNU_SOURCE
#include "soft_comch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct doca_comch_consumer_task_post_recv {
	struct doca_task task; /* first */
	STAILQ_ENTRY(doca_comch_consumer_task_post_recv) queued;
	struct doca_buf *buf; /* NULL: immediate data only */
	size_t room;          /* that was offered */
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

static struct doca_comch_consumer *consumer_of(const struct doca_ctx *ctx)
{
	return (struct doca_comch_consumer *)ctx;
}

/* ---- what may be posted ---- */

static const char *why_not_posted(const struct doca_comch_consumer_task_post_recv *task)
{
	const struct doca_comch_consumer *consumer = consumer_of(task->task.ctx);
	if (task->buf == NULL)
		return NULL;
	const char *reason = soft_buf_why_not(task->buf, consumer->ctx.dev);
	if (reason != NULL)
		return reason;
	if (task->buf->mmap != consumer->mmap)
		return "the buffer is not of the consumer's memory map";
	if (task->buf->next != NULL || task->buf->first != task->buf)
		return "the buffer is part of a list";
	if (task->buf->len > soft_limits()->max_fast_buf_size)
		return "the buffer has more bytes than max_fast_buf_size";
	return soft_buf_room(task->buf) == 0 ? "the buffer has no room behind its data" : NULL;
}

static doca_error_t consumer_validate(const struct doca_task *task)
{
	const char *reason = why_not_posted((const struct doca_comch_consumer_task_post_recv *)task);
	if (reason == NULL)
		return DOCA_SUCCESS;
	soft_detail("post-receive task refused: %s", reason);
	return DOCA_ERROR_INVALID_VALUE;
}

/* ---- start ---- */

/* Producers write into the memory from the other side of the PCIe bus, so it must be shared with them for that. */
static bool suits(const struct doca_mmap *mmap, const struct doca_dev *dev)
{
	return mmap->import == NULL && soft_mmap_has_dev(mmap, dev) &&
	       (mmap->permissions & DOCA_ACCESS_FLAG_PCI_READ_WRITE) != 0;
}

static void free_pool(struct doca_comch_consumer *consumer)
{
	free(consumer->tasks);
	free(consumer->imm);
	free(consumer->packet);
	consumer->tasks = NULL;
	consumer->imm = consumer->packet = NULL;
}

static doca_error_t make_pool(struct doca_comch_consumer *consumer)
{
	size_t imm_len = consumer->imm_data_len;
	STAILQ_INIT(&consumer->pool);
	STAILQ_INIT(&consumer->unposted);
	STAILQ_INIT(&consumer->posted);
	consumer->tasks = calloc(consumer->num_tasks, sizeof(*consumer->tasks));
	consumer->imm = calloc(consumer->num_tasks, imm_len + 1);
	consumer->packet = malloc(sizeof(struct soft_delivery) + imm_len);
	if (consumer->tasks == NULL || consumer->imm == NULL || consumer->packet == NULL) {
		free_pool(consumer);
		return DOCA_ERROR_NO_MEMORY;
	}
	for (uint32_t i = 0; i < consumer->num_tasks; i++) {
		consumer->tasks[i].imm = consumer->imm + i * imm_len;
		STAILQ_INSERT_TAIL(&consumer->pool, &consumer->tasks[i], queued);
	}
	return DOCA_SUCCESS;
}

static void free_notices(struct doca_comch_consumer *consumer)
{
	soft_notice_free(consumer->announcement);
	soft_notice_free(consumer->expiry);
	consumer->announcement = consumer->expiry = NULL;
}

/* Both exist from the beginning, so that nothing can go wrong at the end. */
static doca_error_t make_notices(struct doca_comch_consumer *consumer)
{
	consumer->announcement = calloc(1, sizeof(*consumer->announcement));
	consumer->expiry = calloc(1, sizeof(*consumer->expiry));
	if (consumer->announcement == NULL || consumer->expiry == NULL) {
		free(consumer->announcement);
		free(consumer->expiry);
		consumer->announcement = consumer->expiry = NULL;
		return DOCA_ERROR_NO_MEMORY;
	}
	*consumer->expiry = (struct soft_notice){.expired = true, .id = consumer->member.id, .lane = -1};
	*consumer->announcement = (struct soft_notice){
		.id = consumer->member.id,
		.lane = -1,
		.card = {.imm_data_len = consumer->imm_data_len, .num_tasks = consumer->num_tasks},
	};
	return DOCA_SUCCESS;
}

static doca_error_t share_memory(struct doca_comch_consumer *consumer)
{
	const struct doca_mmap *mmap = consumer->mmap;
	struct soft_range range = {mmap->addr, mmap->len, DOCA_ACCESS_FLAG_PCI_READ_WRITE};
	doca_error_t result = soft_export_open(&range, &consumer->export);
	if (result != DOCA_SUCCESS)
		return result;
	const void *descriptor;
	size_t len;
	soft_export_descriptor(consumer->export, &descriptor, &len);
	memcpy(consumer->announcement->card.descriptor, descriptor, sizeof(consumer->announcement->card.descriptor));
	return DOCA_SUCCESS;
}

/* False: a producer does not come out of its copy. */
static bool unshare_memory(struct doca_comch_consumer *consumer)
{
	if (consumer->export != NULL && soft_export_close(consumer->export) != DOCA_SUCCESS)
		return false;
	consumer->export = NULL;
	return true;
}

/* Without a task to wait for, a producer that stays in its copy keeps the memory: the map is shared for ever, and so
 * cannot be destroyed under it. */
static void abandon_memory(struct doca_comch_consumer *consumer)
{
	if (!unshare_memory(consumer))
		atomic_fetch_add(&consumer->mmap->shared, 1);
	consumer->export = NULL;
}

static doca_error_t open_lane(struct doca_comch_consumer *consumer)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
		return DOCA_ERROR_OPERATING_SYSTEM;
	consumer->lane = ends[0];
	consumer->announcement->lane = ends[1];
	consumer->blocked = consumer->lane_over = false;
	return soft_pe_watch(consumer->ctx.pe, consumer->lane, EPOLLIN);
}

static void close_lane(struct doca_comch_consumer *consumer)
{
	if (consumer->lane < 0)
		return;
	soft_pe_unwatch(consumer->ctx.pe, consumer->lane);
	close(consumer->lane);
	consumer->lane = -1;
}

/* Producers will write into the memory map: as long as they may it can be neither stopped nor destroyed. */
static doca_error_t acquire(struct doca_comch_consumer *consumer)
{
	doca_error_t result = make_pool(consumer);
	if (result != DOCA_SUCCESS)
		return result;
	result = make_notices(consumer);
	if (result != DOCA_SUCCESS)
		goto free_pool;
	result = share_memory(consumer);
	if (result != DOCA_SUCCESS)
		goto free_notices;
	result = open_lane(consumer);
	if (result != DOCA_SUCCESS)
		goto close_lane;
	atomic_fetch_add(&consumer->mmap->shared, 1);
	return DOCA_SUCCESS;

close_lane:
	close_lane(consumer);
	abandon_memory(consumer);
free_notices:
	free_notices(consumer);
free_pool:
	free_pool(consumer);
	return result;
}

static void release(struct doca_comch_consumer *consumer)
{
	atomic_fetch_sub(&consumer->mmap->shared, 1);
	close_lane(consumer);
	free_notices(consumer);
	free_pool(consumer);
}

/* The registration travels over the connection, so RUNNING has to wait until its engine progresses (S33, guide). */
static doca_error_t consumer_start(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *consumer = consumer_of(ctx);
	if (consumer->num_tasks == 0 || !consumer->mmap->started || !suits(consumer->mmap, ctx->dev)) {
		soft_detail(
			"a consumer needs doca_comch_consumer_task_post_recv_set_conf and a started memory map with "
			"PCI_READ_WRITE and the connection's device");
		return DOCA_ERROR_INVALID_VALUE;
	}
	doca_error_t result = soft_member_activate(&consumer->member, ctx->pe);
	if (result != DOCA_SUCCESS)
		return result;
	result = acquire(consumer);
	if (result != DOCA_SUCCESS) {
		soft_member_deactivate(&consumer->member, ctx->pe);
		return result;
	}
	soft_member_ask(&consumer->member);
	return DOCA_ERROR_IN_PROGRESS;
}

/* ---- stop ---- */

/* The lane ends first, so that a producer whose copy fails knows why; then nobody begins to write into the memory any
 * more. The tasks go back to the program when nobody is still writing. */
static void consumer_stopping(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *consumer = consumer_of(ctx);
	shutdown(consumer->lane, SHUT_RDWR);
	(void)unshare_memory(consumer);
	if (consumer->announcement == NULL) {
		soft_member_tell(&consumer->member, consumer->expiry);
		consumer->expiry = NULL;
	}
}

static bool consumer_quiet(const struct doca_ctx *ctx)
{
	return ctx->state != DOCA_CTX_STATE_STOPPING || ((const struct doca_comch_consumer *)ctx)->export == NULL;
}

static void consumer_idle(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *consumer = consumer_of(ctx);
	if (consumer->export != NULL) { /* from RUNNING or STARTING without a stay in between */
		consumer_stopping(ctx);
		abandon_memory(consumer);
	}
	release(consumer);
	soft_member_deactivate(&consumer->member, ctx->pe);
}

/* ---- progress ---- */

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

/* The callback comes last: it may free the task, submit it again, or stop the context. */
static void complete(struct doca_comch_consumer_task_post_recv *task, doca_error_t status)
{
	struct doca_comch_consumer *consumer = consumer_of(task->task.ctx);
	soft_task_complete(&task->task, status);
	(status == DOCA_SUCCESS ? consumer->received : consumer->failed)(task, task->task.user_data,
									 consumer->ctx.user_data);
}

static void watch_lane(struct doca_comch_consumer *consumer)
{
	soft_pe_watch(consumer->ctx.pe, consumer->lane, consumer->blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void set_blocked(struct doca_comch_consumer *consumer, bool blocked)
{
	if (consumer->blocked == blocked)
		return;
	consumer->blocked = blocked;
	watch_lane(consumer);
}

static bool can_post(struct doca_comch_consumer *consumer)
{
	if (STAILQ_EMPTY(&consumer->unposted) || consumer->lane_over)
		return false;
	set_blocked(consumer, !soft_lane_writable(consumer->lane));
	return !consumer->blocked;
}

static struct soft_slot slot_of(const struct doca_buf *buf)
{
	if (buf == NULL)
		return (struct soft_slot){0};
	return (struct soft_slot){.addr = (uintptr_t)buf->data + buf->data_len, .room = soft_buf_room(buf)};
}

/* Producers are not aware of a buffer that could not be posted, and the others are not affected. */
static bool post_oldest(struct doca_comch_consumer *consumer)
{
	if (!can_post(consumer))
		return false;
	struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(&consumer->unposted);
	STAILQ_REMOVE_HEAD(&consumer->unposted, queued);
	if (consumer_validate(&task->task) != DOCA_SUCCESS) {
		complete(task, DOCA_ERROR_INVALID_VALUE);
		return true;
	}
	struct soft_slot slot = slot_of(task->buf);
	task->room = slot.room;
	STAILQ_INSERT_TAIL(&consumer->posted, task, queued);
	if (send(consumer->lane, &slot, sizeof(slot), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(slot))
		soft_ctx_fail(&consumer->ctx);
	return true;
}

/* A producer of the peer's sends something, data or immediate data. */
static bool makes_sense(const struct soft_delivery *delivery)
{
	return delivery->producer_id != SOFT_NO_ID && delivery->producer_id < SOFT_GONE_ID && delivery->reserved == 0 &&
	       (delivery->len > 0 || delivery->imm_len > 0);
}

/* What a delivery says is a peer's word. */
static bool credible(const struct doca_comch_consumer *consumer, const struct soft_delivery *delivery, size_t len)
{
	const struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(&consumer->posted);
	return makes_sense(delivery) && len >= sizeof(*delivery) && task != NULL &&
	       delivery->imm_len <= consumer->imm_data_len && len - sizeof(*delivery) == delivery->imm_len &&
	       delivery->len <= task->room;
}

/* Data is appended at the tail of the buffer. */
static void take_delivery(struct doca_comch_consumer *consumer, const struct soft_delivery *delivery)
{
	struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(&consumer->posted);
	STAILQ_REMOVE_HEAD(&consumer->posted, queued);
	if (task->buf != NULL)
		task->buf->data_len += delivery->len;
	task->producer_id = delivery->producer_id;
	task->imm_len = delivery->imm_len;
	memcpy(task->imm, consumer->packet + sizeof(*delivery), delivery->imm_len);
	complete(task, DOCA_SUCCESS);
}

/* The end of the lane, or a peer that lies, is the end of the consumer; its descriptor has nothing more to announce. */
static bool lane_ended(struct doca_comch_consumer *consumer)
{
	consumer->lane_over = true;
	soft_pe_unwatch(consumer->ctx.pe, consumer->lane);
	if (consumer->ctx.state != DOCA_CTX_STATE_RUNNING)
		return false;
	soft_ctx_fail(&consumer->ctx);
	return true;
}

/* The kernel tells once, and ahead of the deliveries, that the peer left with slots unread; its producers count on what
 * they have delivered, so look again. */
static ssize_t receive_packet(const struct doca_comch_consumer *consumer, size_t size)
{
	ssize_t n = recv(consumer->lane, consumer->packet, size, MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && errno == ECONNRESET)
		n = recv(consumer->lane, consumer->packet, size, MSG_DONTWAIT | MSG_TRUNC);
	return n;
}

static bool receive(struct doca_comch_consumer *consumer)
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

/* What was delivered before the stop is still received, as its producers were told; the rest is flushed. */
static bool flush(struct doca_comch_consumer *consumer)
{
	if (receive(consumer))
		return true;
	if (consumer->export != NULL)
		return unshare_memory(consumer);
	struct post_queue *queue = STAILQ_EMPTY(&consumer->posted) ? &consumer->unposted : &consumer->posted;
	struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(queue);
	if (task == NULL)
		return false;
	STAILQ_REMOVE_HEAD(queue, queued);
	complete(task,
		 soft_member_is_up(&consumer->member) ? DOCA_ERROR_SHUTDOWN : soft_member_fault(&consumer->member));
	return true;
}

static bool consumer_progress(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *consumer = consumer_of(ctx);
	soft_member_heard(&consumer->member);
	if (ctx->state == DOCA_CTX_STATE_STARTING)
		return finish_start(consumer);
	if (ctx->state == DOCA_CTX_STATE_STOPPING)
		return flush(consumer);
	if (receive(consumer) || post_oldest(consumer))
		return true;
	if (soft_member_is_up(&consumer->member))
		return false;
	soft_ctx_fail(ctx);
	return true;
}

static uint64_t consumer_ready_at(const struct doca_ctx *ctx)
{
	const struct doca_comch_consumer *consumer = consumer_of(ctx);
	bool unposted = !STAILQ_EMPTY(&consumer->unposted);
	bool work = unposted && !consumer->blocked;
	if (ctx->state == DOCA_CTX_STATE_STOPPING)
		work = unposted || !STAILQ_EMPTY(&consumer->posted) || consumer->export != NULL;
	return work ? 0 : UINT64_MAX;
}

/* ---- tasks ---- */

/* The queue is as deep as the pool, so it cannot be full. */
static doca_error_t consumer_submit(struct doca_task *task)
{
	struct doca_comch_consumer_task_post_recv *post = (struct doca_comch_consumer_task_post_recv *)task;
	post->producer_id = SOFT_NO_ID;
	post->imm_len = 0;
	STAILQ_INSERT_TAIL(&consumer_of(task->ctx)->unposted, post, queued);
	return DOCA_SUCCESS;
}

static void consumer_release(struct doca_task *task)
{
	STAILQ_INSERT_HEAD(&consumer_of(task->ctx)->pool, (struct doca_comch_consumer_task_post_recv *)task, queued);
}

static const struct soft_ctx_class consumer_class = {
	.name = "comch consumer",
	.is_comch = true,
	.start = consumer_start,
	.stopping = consumer_stopping,
	.quiet = consumer_quiet,
	.idle = consumer_idle,
	.progress = consumer_progress,
	.ready_at = consumer_ready_at,
	.validate = consumer_validate,
	.submit = consumer_submit,
	.release = consumer_release,
};

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

/* ---- what programs ask of a consumer ---- */

doca_error_t soft_doca_comch_consumer_create(struct doca_comch_connection *comch_connection, struct doca_mmap *buf_mmap,
					     struct doca_comch_consumer **consumer)
{
	if (comch_connection == NULL || buf_mmap == NULL || consumer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct soft_fast *fast = comch_connection->fast;
	if (!suits(buf_mmap, fast->dev)) {
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
