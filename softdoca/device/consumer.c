/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "consumer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comch_connection.h"
#include "config.h"
#include "ctx.h"
#include "error.h"
#include "fast.h"
#include "mmap.h"
#include "pe.h"
#include "remote.h"
#include "soft.h"

/* ---- memory ---- */

static bool suitable(const struct doca_mmap *mmap, const struct doca_dev *dev)
{
	return mmap->import == NULL && soft_mmap_has_dev(mmap, dev) &&
	       (mmap->permissions & DOCA_ACCESS_FLAG_PCI_READ_WRITE) != 0;
}

static doca_error_t share_memory(struct doca_comch_consumer *consumer)
{
	const struct doca_mmap *mmap = consumer->mmap;
	struct soft_range range = {mmap->addr, mmap->len, DOCA_ACCESS_FLAG_PCI_READ_WRITE, false};
	doca_error_t result = soft_export_open(&range, &consumer->export);
	if (result != DOCA_SUCCESS)
		return result;
	const void *descriptor;
	size_t len;
	soft_export_descriptor(consumer->export, &descriptor, &len);
	memcpy(consumer->announcement->info.descriptor, descriptor, sizeof(consumer->announcement->info.descriptor));
	return DOCA_SUCCESS;
}

static bool unshare_memory(struct doca_comch_consumer *consumer)
{
	if (consumer->export != NULL && soft_export_close(consumer->export) != DOCA_SUCCESS)
		return false;
	consumer->export = NULL;
	return true;
}

/*
 * A producer has not finished its copy and no task waits for it: the map stays shared, so that it cannot be destroyed.
 */
static void abandon_memory(struct doca_comch_consumer *consumer)
{
	if (consumer->export != NULL)
		atomic_fetch_add(&consumer->mmap->shared, 1);
	consumer->export = NULL;
}

/* ---- the pool of tasks ---- */

void soft_consumer_free_pool(struct doca_comch_consumer *consumer)
{
	pthread_mutex_destroy(&consumer->lock);
	free(consumer->tasks);
	free(consumer->imm);
	free(consumer->packet);
	consumer->tasks = NULL;
	consumer->imm = consumer->packet = NULL;
}

doca_error_t soft_consumer_make_pool(struct doca_comch_consumer *consumer)
{
	size_t imm_len = consumer->imm_data_len;
	STAILQ_INIT(&consumer->pool);
	STAILQ_INIT(&consumer->refused);
	STAILQ_INIT(&consumer->unposted);
	STAILQ_INIT(&consumer->posted);
	pthread_mutex_init(&consumer->lock, NULL);
	consumer->tasks = calloc(consumer->num_tasks, sizeof(*consumer->tasks));
	consumer->imm = calloc(consumer->num_tasks, imm_len + 1);
	consumer->packet = malloc(sizeof(struct soft_delivery) + imm_len);
	if (consumer->tasks == NULL || consumer->imm == NULL || consumer->packet == NULL) {
		soft_consumer_free_pool(consumer);
		return DOCA_ERROR_NO_MEMORY;
	}
	for (uint32_t i = 0; i < consumer->num_tasks; i++) {
		consumer->tasks[i].imm = consumer->imm + i * imm_len;
		STAILQ_INSERT_TAIL(&consumer->pool, &consumer->tasks[i], queued);
	}
	return DOCA_SUCCESS;
}

/* ---- notices and lane ---- */

static void free_notices(struct doca_comch_consumer *consumer)
{
	soft_notice_free(consumer->announcement);
	soft_notice_free(consumer->expiry);
	consumer->announcement = consumer->expiry = NULL;
}

/* Both are allocated at start, so that stopping cannot fail. */
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
		.info = {.imm_data_len = consumer->imm_data_len, .num_tasks = consumer->num_tasks},
	};
	return DOCA_SUCCESS;
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

/* ---- from start to idle ---- */

/* Producers write into the memory map, so it can be neither stopped nor destroyed until they no longer may. */
static doca_error_t acquire(struct doca_comch_consumer *consumer)
{
	doca_error_t result = soft_consumer_make_pool(consumer);
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
	(void)unshare_memory(consumer); /* no peer knows it yet */
free_notices:
	free_notices(consumer);
free_pool:
	soft_consumer_free_pool(consumer);
	return result;
}

static void release(struct doca_comch_consumer *consumer)
{
	atomic_fetch_sub(&consumer->mmap->shared, 1);
	close_lane(consumer);
	free_notices(consumer);
	soft_consumer_free_pool(consumer);
}

/* The control channel grants the registration, so RUNNING waits for its progress. */
static doca_error_t consumer_start(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *consumer = soft_consumer_of(ctx);
	if (consumer->num_tasks == 0 || !consumer->mmap->started || !suitable(consumer->mmap, ctx->dev)) {
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
	soft_member_request_registration(&consumer->member);
	return DOCA_ERROR_IN_PROGRESS;
}

/*
 * The lane ends first, so that a producer whose copy fails knows why. Then no producer can begin to write; the tasks
 * return to the program when none is still writing.
 */
static void consumer_stopping(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *consumer = soft_consumer_of(ctx);
	soft_job_stop(&consumer->job);
	shutdown(consumer->lane, SHUT_RDWR);
	(void)unshare_memory(consumer);
	if (consumer->announcement == NULL) {
		soft_member_queue_notice(&consumer->member, consumer->expiry);
		consumer->expiry = NULL;
	}
}

static bool consumer_quiet(const struct doca_ctx *ctx)
{
	return ctx->state != DOCA_CTX_STATE_STOPPING || ((const struct doca_comch_consumer *)ctx)->export == NULL;
}

static void consumer_idle(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *consumer = soft_consumer_of(ctx);
	if (consumer->export != NULL) /* from RUNNING or STARTING without STOPPING in between */
		consumer_stopping(ctx);
	abandon_memory(consumer);
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
	soft_member_queue_notice(&consumer->member, consumer->announcement);
	consumer->announcement = NULL;
	soft_ctx_running(&consumer->ctx);
	return true;
}

/*
 * Deliveries sent before the stop are still received, because their producers saw success; the other tasks are flushed.
 */
static bool flush(struct doca_comch_consumer *consumer)
{
	if (soft_consumer_receive(consumer))
		return true;
	if (consumer->export != NULL)
		return unshare_memory(consumer);
	struct post_queue *queue = STAILQ_EMPTY(&consumer->posted) ? &consumer->unposted : &consumer->posted;
	struct doca_comch_consumer_task_post_recv *task = soft_consumer_take(consumer, queue);
	if (task == NULL)
		return false;
	soft_task_complete(&task->task, soft_member_is_up(&consumer->member) ? DOCA_ERROR_SHUTDOWN
									     : soft_member_fault(&consumer->member));
	return true;
}

static bool fail_refused(struct doca_comch_consumer *consumer)
{
	struct doca_comch_consumer_task_post_recv *task = soft_consumer_take(consumer, &consumer->refused);
	if (task != NULL)
		soft_task_complete(&task->task, DOCA_ERROR_INVALID_VALUE);
	return task != NULL;
}

static bool consumer_progress(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *consumer = soft_consumer_of(ctx);
	soft_member_clear_wakeup(&consumer->member);
	if (ctx->state == DOCA_CTX_STATE_STARTING)
		return finish_start(consumer);
	if (fail_refused(consumer))
		return true;
	if (ctx->state == DOCA_CTX_STATE_STOPPING)
		return flush(consumer);
	if (soft_consumer_receive(consumer) || soft_consumer_post(consumer))
		return true;
	if (soft_member_is_up(&consumer->member))
		return false;
	soft_ctx_fail(ctx);
	return true;
}

static uint64_t consumer_ready_at(const struct doca_ctx *ctx)
{
	struct doca_comch_consumer *consumer = soft_consumer_of(ctx);
	pthread_mutex_lock(&consumer->lock);
	bool inflight = !STAILQ_EMPTY(&consumer->unposted) || !STAILQ_EMPTY(&consumer->posted);
	pthread_mutex_unlock(&consumer->lock);
	bool flushes = ctx->state == DOCA_CTX_STATE_STOPPING && (inflight || consumer->export != NULL);
	return flushes || !STAILQ_EMPTY(&consumer->refused) ? 0 : UINT64_MAX;
}

/* ---- functions of DOCA ---- */

static const struct soft_ctx_class consumer_class = {
	.name = "comch consumer",
	.is_comch = true,
	.start = consumer_start,
	.stopping = consumer_stopping,
	.quiet = consumer_quiet,
	.idle = consumer_idle,
	.progress = consumer_progress,
	.ready_at = consumer_ready_at,
	.validate = soft_consumer_validate,
	.submit = soft_consumer_submit,
	.ended = soft_consumer_ended,
	.release = soft_consumer_release,
};

static void leave_connection(struct doca_comch_consumer *consumer)
{
	soft_member_leave(&consumer->member);
	atomic_fetch_sub(&consumer->mmap->consumers, 1);
}

doca_error_t soft_doca_comch_consumer_create(struct doca_comch_connection *comch_connection, struct doca_mmap *buf_mmap,
					     struct doca_comch_consumer **consumer)
{
	if (comch_connection == NULL || buf_mmap == NULL || consumer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct soft_fast *fast = comch_connection->fast;
	if (!suitable(buf_mmap, fast->dev)) {
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
	created->job.run = soft_consumer_post_more;
	created->leave = leave_connection;
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
	consumer->leave(consumer);
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

/* The default is not documented, so without this call there is no immediate data. */
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
