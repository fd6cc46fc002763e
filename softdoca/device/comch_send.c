/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "comch_send.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "comch_connection.h"
#include "comch_endpoint.h"
#include "comch_wire.h"
#include "ctx.h"
#include "dev.h"
#include "fault.h"
#include "quirk.h"
#include "soft.h"

static size_t frame_stride(const struct soft_endpoint *endpoint)
{
	size_t size = sizeof(struct soft_frame) + endpoint->max_msg_size;
	size_t alignment = _Alignof(struct soft_frame);
	return (size + alignment - 1) / alignment * alignment;
}

/* Frames are allocated apart from tasks, so that pages of frames that are never sent stay untouched. */
doca_error_t soft_send_pool_open(struct soft_endpoint *endpoint)
{
	size_t stride = frame_stride(endpoint);
	STAILQ_INIT(&endpoint->pool);
	endpoint->tasks = calloc(endpoint->num_send_tasks, sizeof(*endpoint->tasks));
	endpoint->frames = calloc(endpoint->num_send_tasks, stride);
	if (endpoint->tasks == NULL || endpoint->frames == NULL) {
		soft_send_pool_close(endpoint);
		return DOCA_ERROR_NO_MEMORY;
	}
	for (uint32_t i = 0; i < endpoint->num_send_tasks; i++) {
		struct doca_comch_task_send *task = &endpoint->tasks[i];
		task->frame = (struct soft_frame *)(endpoint->frames + i * stride);
		STAILQ_INSERT_TAIL(&endpoint->pool, task, queued);
	}
	return DOCA_SUCCESS;
}

void soft_send_pool_close(struct soft_endpoint *endpoint)
{
	free(endpoint->tasks);
	free(endpoint->frames);
	endpoint->tasks = NULL;
	endpoint->frames = NULL;
}

static void copy_message(struct doca_comch_task_send *send)
{
	if (send->late != NULL)
		memcpy(send->frame + 1, send->late, send->frame->value);
	send->late = NULL;
}

/*
 * The message is copied here, because programs reuse its memory after submission. The state is checked first: DOCA's
 * library crashes on a client that is not running.
 */
static doca_error_t alloc_send(struct soft_endpoint *endpoint, struct doca_comch_connection *connection,
			       const void *msg, uint32_t len, struct doca_comch_task_send **task)
{
	if (endpoint == NULL || connection == NULL || msg == NULL || len == 0 || task == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (endpoint->ctx.state != DOCA_CTX_STATE_RUNNING) {
		if (endpoint->ctx.dev->info->side == SOFT_HOST && soft_has_quirk(SOFT_IDLE_ALLOC_CRASH))
			soft_crash("a send task of a client that does not run");
		return DOCA_ERROR_BAD_STATE;
	}
	if (!soft_connection_is_of(connection, endpoint))
		return DOCA_ERROR_INVALID_VALUE;
	bool too_long = len > connection->max_msg_size;
	if (too_long && !soft_has_quirk(SOFT_LARGE_MESSAGES))
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_comch_task_send *taken = STAILQ_FIRST(&endpoint->pool);
	if (taken == NULL)
		return DOCA_ERROR_NO_MEMORY;
	doca_error_t result = soft_task_take(&taken->task, &endpoint->ctx);
	if (result != DOCA_SUCCESS)
		return result;
	STAILQ_REMOVE_HEAD(&endpoint->pool, queued);
	taken->connection = connection;
	soft_connection_hold(connection);
	*taken->frame = soft_frame_make(SOFT_FRAME_MESSAGE, len, 0);
	taken->oversized = too_long;
	taken->counted = false;
	taken->fault = DOCA_SUCCESS;
	taken->late = msg;
	if (!too_long && !soft_has_quirk(SOFT_LATE_COPY))
		copy_message(taken);
	*task = taken;
	return DOCA_SUCCESS;
}

doca_error_t soft_send_validate(const struct doca_task *task)
{
	const struct doca_comch_task_send *send = (const struct doca_comch_task_send *)task;
	return send->connection->state == SOFT_CONNECTION_OPEN ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

/*
 * The message is sent at once if it fits into the socket. The queue is as long as the pool, so it is never full. After
 * the end of its connection the program keeps the task.
 */
doca_error_t soft_send_submit(struct doca_task *task)
{
	struct doca_comch_task_send *send = (struct doca_comch_task_send *)task;
	struct doca_comch_connection *connection = send->connection;
	if (connection->state != SOFT_CONNECTION_OPEN)
		return connection->fault;
	pthread_mutex_lock(&connection->lock);
	STAILQ_INSERT_TAIL(&connection->sends, send, queued);
	if (connection->unsent == NULL)
		connection->unsent = send;
	pthread_mutex_unlock(&connection->lock);
	if (!soft_has_quirk(SOFT_LATE_COPY))
		soft_connection_flush(connection);
	return DOCA_SUCCESS;
}

void soft_send_release(struct doca_task *task)
{
	struct doca_comch_task_send *send = (struct doca_comch_task_send *)task;
	struct soft_endpoint *endpoint = (struct soft_endpoint *)task->ctx;
	STAILQ_INSERT_HEAD(&endpoint->pool, send, queued);
	soft_connection_unhold(send->connection);
}

void soft_send_ended(struct doca_task *task)
{
	struct doca_comch_task_send *send = (struct doca_comch_task_send *)task;
	struct soft_endpoint *endpoint = (struct soft_endpoint *)task->ctx;
	if (task->status == DOCA_SUCCESS) {
		endpoint->sent(send, task->user_data, endpoint->ctx.user_data);
		return;
	}
	endpoint->failing = true;
	endpoint->not_sent(send, task->user_data, endpoint->ctx.user_data);
	endpoint->failing = false;
}

/* ETOOMANYREFS: too many descriptors of this user are in flight. */
void soft_send_refused(struct doca_comch_connection *connection)
{
	connection->full =
		errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == EINTR || errno == ETOOMANYREFS;
	connection->send_failed = !connection->full;
}

/* Returns SUCCESS, or the code of a message that is never sent. */
static doca_error_t prepare(struct doca_comch_task_send *send)
{
	if (send->oversized)
		return DOCA_ERROR_IO_FAILED;
	copy_message(send);
	if (!send->counted)
		send->fault = soft_fault_completion();
	if (!send->counted && soft_fault_message() == SOFT_MESSAGE_CUT)
		shutdown(send->connection->fd, SHUT_RDWR);
	send->counted = true; /* a message that does not fit is prepared again */
	return send->fault;
}

/* The peer's receive queue does not bound what is sent, but what completes: the rest waits in the socket. */
static bool send_message(struct doca_comch_connection *connection, struct doca_comch_task_send *task)
{
	struct soft_frame *frame = task->frame;
	size_t size = sizeof(*frame) + frame->value;
	if (soft_fault_muted())
		return false;
	frame->credits = connection->owed;
	if (send(connection->fd, frame, size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)size) {
		soft_send_refused(connection);
		return false;
	}
	soft_connection_take_owed(connection);
	task->number = ++connection->sent;
	connection->counters.sent_messages++;
	connection->counters.sent_bytes += frame->value;
	return true;
}

bool soft_send_next(struct doca_comch_connection *connection)
{
	struct doca_comch_task_send *next = connection->unsent;
	next->result = prepare(next);
	if (next->result == DOCA_SUCCESS && !send_message(connection, next))
		return false;
	connection->unsent = STAILQ_NEXT(next, queued);
	return true;
}

bool soft_send_is_complete(const struct doca_comch_connection *connection)
{
	const struct doca_comch_task_send *oldest = STAILQ_FIRST(&connection->sends);
	if (oldest == NULL || oldest == connection->unsent)
		return false;
	return oldest->result != DOCA_SUCCESS || oldest->number <= connection->allowed;
}

bool soft_send_complete_oldest(struct doca_comch_connection *connection)
{
	pthread_mutex_lock(&connection->lock);
	struct doca_comch_task_send *oldest = STAILQ_FIRST(&connection->sends);
	bool complete = soft_send_is_complete(connection);
	bool ends = complete || (oldest != NULL && connection->state == SOFT_CONNECTION_CLOSED);
	if (ends) {
		if (!complete)
			oldest->result = connection->fault;
		if (connection->unsent == oldest)
			connection->unsent = STAILQ_NEXT(oldest, queued);
		STAILQ_REMOVE_HEAD(&connection->sends, queued);
	}
	pthread_mutex_unlock(&connection->lock);
	if (ends)
		soft_task_complete(&oldest->task, oldest->result);
	return ends;
}

doca_error_t soft_doca_comch_server_task_send_alloc_init(struct doca_comch_server *comch_server,
							 struct doca_comch_connection *peer, const void *msg,
							 uint32_t len, struct doca_comch_task_send **task)
{
	return alloc_send((struct soft_endpoint *)comch_server, peer, msg, len, task);
}

doca_error_t soft_doca_comch_client_task_send_alloc_init(struct doca_comch_client *comch_client,
							 struct doca_comch_connection *peer, const void *msg,
							 uint32_t len, struct doca_comch_task_send **task)
{
	return alloc_send((struct soft_endpoint *)comch_client, peer, msg, len, task);
}

struct doca_task *soft_doca_comch_task_send_as_task(struct doca_comch_task_send *task)
{
	return (struct doca_task *)task;
}
