/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "comch_connection.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comch_endpoint.h"
#include "comch_send.h"
#include "comch_wire.h"
#include "dev.h"
#include "fast.h"
#include "fault.h"
#include "pe.h"
#include "quirk.h"
#include "remote_wire.h"
#include "socket.h"
#include "soft.h"

/* DOCA's events are opaque and have no content. */
struct doca_comch_event_msg_recv {
	char nothing;
};

static struct doca_comch_event_msg_recv recv_event;

struct doca_comch_event_consumer {
	char nothing;
};

static struct doca_comch_event_consumer consumer_event;

static enum soft_job_result send_more(struct soft_job *job);

static bool watch(struct doca_comch_connection *connection, int operation, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = connection};
	return epoll_ctl(connection->endpoint->epoll, operation, connection->fd, &event) == 0;
}

struct doca_comch_connection *soft_connection_open(struct soft_endpoint *endpoint, int fd)
{
	struct doca_comch_connection *connection = calloc(1, sizeof(*connection));
	if (connection == NULL)
		goto close_fd;
	connection->endpoint = endpoint;
	connection->state = SOFT_CONNECTION_GREETING;
	connection->fd = fd;
	connection->fault = DOCA_ERROR_CONNECTION_ABORTED;
	STAILQ_INIT(&connection->sends);
	pthread_mutex_init(&connection->lock, NULL);
	connection->job.run = send_more;
	connection->fast = soft_fast_open(endpoint->ctx.dev, endpoint->wakeup, endpoint->new_consumer != NULL);
	if (connection->fast == NULL)
		goto free_connection;
	if (!watch(connection, EPOLL_CTL_ADD, EPOLLIN))
		goto close_fast;
	TAILQ_INSERT_TAIL(&endpoint->connections, connection, link);
	return connection;

close_fast:
	soft_fast_close(connection->fast);
	soft_fast_unref(connection->fast);
free_connection:
	pthread_mutex_destroy(&connection->lock);
	free(connection);
close_fd:
	close(fd);
	return NULL;
}

/* shutdown comes first: a forked child may hold the socket, and close alone would then not end the connection. */
static void close_socket(struct doca_comch_connection *connection)
{
	if (connection->fd < 0)
		return;
	watch(connection, EPOLL_CTL_DEL, 0);
	shutdown(connection->fd, SHUT_RDWR);
	close(connection->fd);
	connection->fd = -1;
}

void soft_connection_release(struct doca_comch_connection *connection)
{
	soft_job_stop(&connection->job);
	close_socket(connection);
	soft_fast_close(connection->fast);
	TAILQ_REMOVE(&connection->endpoint->connections, connection, link);
	if (connection->state == SOFT_CONNECTION_GREETING)
		soft_connection_free(connection);
	else
		connection->endpoint->role->released(connection);
}

void soft_connection_free(struct doca_comch_connection *connection)
{
	soft_fast_unref(connection->fast);
	pthread_mutex_destroy(&connection->lock);
	free(connection);
}

void soft_connection_hold(struct doca_comch_connection *connection)
{
	connection->holds++;
}

void soft_connection_unhold(struct doca_comch_connection *connection)
{
	if (--connection->holds == 0 && connection->state == SOFT_CONNECTION_GONE)
		soft_connection_release(connection);
}

struct soft_frame soft_connection_greeting(const struct soft_endpoint *endpoint, enum soft_frame_type type)
{
	struct soft_frame frame = soft_frame_make(type, endpoint->max_msg_size, endpoint->max_msg_size_chosen);
	frame.credits = endpoint->recv_queue_size;
	return frame;
}

bool soft_connection_sizes_agree(const struct soft_endpoint *endpoint, const struct soft_frame *peer)
{
	bool both_chose = endpoint->max_msg_size_chosen && peer->chosen != 0;
	return peer->value != 0 && peer->credits != 0 && (!both_chose || peer->value == endpoint->max_msg_size);
}

void soft_connection_established(struct doca_comch_connection *connection, const struct soft_frame *peer)
{
	uint32_t own = connection->endpoint->max_msg_size;
	connection->max_msg_size = peer->value < own ? peer->value : own;
	connection->allowed = connection->peer_queue_size = peer->credits;
	connection->granted = connection->endpoint->recv_queue_size;
	connection->state = SOFT_CONNECTION_OPEN;
	soft_fast_up(connection->fast);
}

void soft_connection_close(struct doca_comch_connection *connection)
{
	if (connection->state != SOFT_CONNECTION_OPEN)
		return;
	soft_job_stop(&connection->job);
	connection->state = SOFT_CONNECTION_CLOSING;
	soft_fast_down(connection->fast, connection->fault);
	soft_pe_notify(connection->endpoint->ctx.pe);
}

bool soft_connection_is_of(const struct doca_comch_connection *connection, const struct soft_endpoint *endpoint)
{
	const struct doca_comch_connection *known;
	for (known = TAILQ_FIRST(&endpoint->connections); known != NULL; known = TAILQ_NEXT(known, link)) {
		if (known == connection)
			return known->state != SOFT_CONNECTION_GREETING && known->state != SOFT_CONNECTION_GONE;
	}
	return false;
}

/* ---- what a connection sends; with its lock ---- */

/* The frame of a new consumer carries the descriptor of its lane. */
static bool send_notice(struct doca_comch_connection *connection, const struct soft_notice *notice)
{
	struct {
		struct soft_frame frame;
		struct soft_consumer_info info;
	} packet = {.info = notice->info};
	size_t len = notice->expired ? sizeof(packet.frame) : sizeof(packet);
	packet.frame = soft_frame_make(notice->expired ? SOFT_FRAME_EXPIRED : SOFT_FRAME_CONSUMER, notice->id, 0);
	if (!remote_send(connection->fd, &packet, len, &notice->lane, notice->expired ? 0 : 1)) {
		soft_send_refused(connection);
		return false;
	}
	soft_fast_notice_sent(connection->fast);
	return true;
}

uint32_t soft_connection_take_owed(struct doca_comch_connection *connection)
{
	uint32_t owed = connection->owed;
	connection->granted += owed;
	connection->owed = 0;
	return owed;
}

/* Messages carry credits too, so this frame is for a side that sends few messages. */
static bool owes_credit(const struct doca_comch_connection *connection)
{
	return connection->owed > 0 && connection->owed >= connection->endpoint->recv_queue_size / 2;
}

static bool send_credit(struct doca_comch_connection *connection)
{
	struct soft_frame frame = soft_frame_make(SOFT_FRAME_CREDIT, 0, 0);
	frame.credits = connection->owed;
	if (!soft_frame_send(connection->fd, &frame)) {
		soft_send_refused(connection);
		return false;
	}
	soft_connection_take_owed(connection);
	return true;
}

/* Credits come first, because a peer may wait for them. Notices come before messages, which may refer to them. */
static bool send_one(struct doca_comch_connection *connection)
{
	if (connection->send_failed || soft_fault_muted())
		return false;
	if (owes_credit(connection))
		return send_credit(connection);
	const struct soft_notice *notice = soft_fast_oldest_notice(connection->fast);
	if (notice != NULL)
		return send_notice(connection, notice);
	return connection->unsent != NULL && soft_send_next(connection);
}

/* Returns whether anything was sent; sets full if not all was. */
static bool send_what_fits(struct doca_comch_connection *connection)
{
	bool moved = false;
	connection->full = false;
	while (send_one(connection))
		moved = true;
	return moved;
}

/* ---- when it sends ---- */

bool soft_connection_flush(struct doca_comch_connection *connection)
{
	pthread_mutex_lock(&connection->lock);
	bool moved = send_what_fits(connection), full = connection->full;
	pthread_mutex_unlock(&connection->lock);
	connection->blocked = full;
	if (full) {
		watch(connection, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
		soft_job_start(&connection->job);
	}
	return moved;
}

/* The job of an OPEN connection. The program's engine is woken, because tasks may have completed. */
static enum soft_job_result send_more(struct soft_job *job)
{
	struct doca_comch_connection *connection =
		(struct doca_comch_connection *)((char *)job - offsetof(struct doca_comch_connection, job));
	pthread_mutex_lock(&connection->lock);
	bool moved = send_what_fits(connection), full = connection->full;
	pthread_mutex_unlock(&connection->lock);
	if (moved)
		eventfd_write(connection->endpoint->wakeup, 1);
	if (!full)
		return SOFT_JOB_DONE;
	return moved ? SOFT_JOB_MOVED : SOFT_JOB_WAITS;
}

/* ---- what a connection does by itself ---- */

/*
 * Tasks whose messages fit into the socket still succeed, the others fail: a peer that does not receive cannot delay
 * the stop. BYE comes last; if it does not fit, the peer sees the end of the connection instead.
 */
static void close_step(struct doca_comch_connection *connection)
{
	pthread_mutex_lock(&connection->lock);
	while (connection->unsent != NULL && soft_send_next(connection))
		;
	bool all_sent = connection->unsent == NULL;
	pthread_mutex_unlock(&connection->lock);
	if (all_sent) {
		struct soft_frame bye = soft_frame_make(SOFT_FRAME_BYE, 0, 0);
		soft_frame_send(connection->fd, &bye);
	}
	close_socket(connection);
	connection->state = SOFT_CONNECTION_CLOSED;
}

/* Expires the consumer id, or any if id is SOFT_NO_ID. False if there is no such consumer. */
static bool expire_one(struct doca_comch_connection *connection, uint32_t id)
{
	const struct soft_endpoint *endpoint = connection->endpoint;
	id = soft_fast_drop_lane(connection->fast, id);
	if (id != SOFT_NO_ID && endpoint->expired_consumer != NULL)
		endpoint->expired_consumer(&consumer_event, connection, id);
	return id != SOFT_NO_ID;
}

static void closed_step(struct doca_comch_connection *connection)
{
	if (soft_send_complete_oldest(connection))
		return;
	soft_connection_hold(connection);
	if (!expire_one(connection, SOFT_NO_ID)) {
		connection->state = SOFT_CONNECTION_GONE;
		connection->endpoint->role->gone(connection);
	}
	soft_connection_unhold(connection);
}

/* A blocked connection has to wait for its socket, but tasks that were sent complete. */
static bool is_open_due(struct doca_comch_connection *connection)
{
	pthread_mutex_lock(&connection->lock);
	bool complete = soft_send_is_complete(connection);
	bool sends = connection->unsent != NULL || owes_credit(connection) || soft_fast_is_due(connection->fast);
	bool can_send = !connection->blocked && !connection->send_failed && !soft_fault_muted();
	pthread_mutex_unlock(&connection->lock);
	return complete || (sends && can_send);
}

bool soft_connection_is_due(struct doca_comch_connection *connection)
{
	switch (connection->state) {
	case SOFT_CONNECTION_OPEN:
		return is_open_due(connection);
	case SOFT_CONNECTION_CLOSING:
	case SOFT_CONNECTION_CLOSED:
		return true;
	default:
		return false;
	}
}

static bool do_open_due(struct doca_comch_connection *connection)
{
	return soft_send_complete_oldest(connection) || soft_fast_grant_registration(connection->fast) ||
	       soft_connection_flush(connection);
}

bool soft_connection_do_due(struct doca_comch_connection *connection)
{
	switch (connection->state) {
	case SOFT_CONNECTION_OPEN:
		return do_open_due(connection);
	case SOFT_CONNECTION_CLOSING:
		close_step(connection);
		return true;
	default:
		closed_step(connection);
		return true;
	}
}

void soft_connection_writable(struct doca_comch_connection *connection)
{
	connection->blocked = false;
	watch(connection, EPOLL_CTL_MOD, EPOLLIN);
}

/* ---- what comes from the peer ---- */

/* The connection and its endpoint may no longer exist when this returns. */
static void connection_lost(struct doca_comch_connection *connection, doca_error_t fault)
{
	if (connection->state == SOFT_CONNECTION_GREETING) {
		connection->endpoint->role->not_greeted(connection);
		return;
	}
	soft_job_stop(&connection->job);
	close_socket(connection);
	connection->state = SOFT_CONNECTION_CLOSED;
	connection->fault = fault;
	soft_fast_down(connection->fast, fault);
	connection->endpoint->role->lost(connection);
}

/* False if the peer grants more than its receive queue holds: a protocol violation. */
static bool take_credits(struct doca_comch_connection *connection, const struct soft_frame *frame)
{
	pthread_mutex_lock(&connection->lock);
	bool valid = frame->credits <= connection->sent + connection->peer_queue_size - connection->allowed;
	pthread_mutex_unlock(&connection->lock);
	if (valid)
		connection->allowed += frame->credits;
	return valid;
}

/*
 * A message for which the receive queue had no space waited in the socket. If its sender has ended meanwhile, its task
 * has failed there, and it is dropped.
 */
static bool has_space(struct doca_comch_connection *connection)
{
	pthread_mutex_lock(&connection->lock);
	bool space = connection->granted > 0;
	pthread_mutex_unlock(&connection->lock);
	return space || !soft_socket_hung_up(connection->fd);
}

static void deliver(struct doca_comch_connection *connection, uint32_t len)
{
	struct soft_endpoint *endpoint = connection->endpoint;
	if (!has_space(connection))
		return;
	connection->received++;
	pthread_mutex_lock(&connection->lock);
	connection->counters.recv_messages++;
	connection->counters.recv_bytes += len;
	connection->granted--;
	connection->owed++;
	pthread_mutex_unlock(&connection->lock);
	endpoint->received(&recv_event, endpoint->packet + sizeof(struct soft_frame), len, connection);
}

/* Takes ownership of lane. */
static void add_peer_consumer(struct doca_comch_connection *connection, uint32_t id, int lane)
{
	struct soft_endpoint *endpoint = connection->endpoint;
	struct soft_consumer_info info;
	memcpy(&info, endpoint->packet + sizeof(struct soft_frame), sizeof(info));
	if (!soft_fast_add_lane(connection->fast, id, &info, lane))
		connection_lost(connection, DOCA_ERROR_CONNECTION_RESET);
	else if (endpoint->new_consumer != NULL)
		endpoint->new_consumer(&consumer_event, connection, id);
}

static void drop_peer_consumer(struct doca_comch_connection *connection, uint32_t id)
{
	if (id == SOFT_NO_ID || !expire_one(connection, id))
		connection_lost(connection, DOCA_ERROR_CONNECTION_RESET);
}

static bool is_message(const struct doca_comch_connection *connection, const struct soft_frame *frame)
{
	return frame->type == SOFT_FRAME_MESSAGE && frame->value != 0 &&
	       frame->value <= connection->endpoint->max_msg_size;
}

/*
 * After the handshake only messages, credits, consumers and one BYE are valid. *lane is set to -1 if it is taken over.
 */
static void handle_frame(struct doca_comch_connection *connection, const struct soft_frame *frame, int *lane)
{
	if (connection->state == SOFT_CONNECTION_GREETING) {
		connection->endpoint->role->greeted(connection, frame);
	} else if (!take_credits(connection, frame)) {
		connection_lost(connection, DOCA_ERROR_CONNECTION_RESET);
	} else if (frame->type == SOFT_FRAME_CREDIT) {
		return; /* it carries nothing else */
	} else if (is_message(connection, frame)) {
		deliver(connection, frame->value);
	} else if (frame->type == SOFT_FRAME_CONSUMER && *lane >= 0) {
		int taken = *lane;
		*lane = -1;
		add_peer_consumer(connection, frame->value, taken);
	} else if (frame->type == SOFT_FRAME_EXPIRED) {
		drop_peer_consumer(connection, frame->value);
	} else {
		connection_lost(connection, frame->type == SOFT_FRAME_BYE ? DOCA_ERROR_CONNECTION_ABORTED
									  : DOCA_ERROR_CONNECTION_RESET);
	}
}

/*
 * ECONNRESET means that the peer closed with our messages unread. It is reported once, before messages that the peer
 * had sent, so receive again. The full length of a packet is returned, so an oversized one is detected.
 */
static ssize_t receive_packet(const struct doca_comch_connection *connection, int *lane)
{
	const struct soft_endpoint *endpoint = connection->endpoint;
	ssize_t n = soft_frame_receive(connection->fd, endpoint->packet, endpoint->packet_size, lane);
	if (n < 0 && errno == ECONNRESET)
		n = soft_frame_receive(connection->fd, endpoint->packet, endpoint->packet_size, lane);
	return n;
}

/* The socket has ended without BYE: stop watching it, and leave tasks in flight. */
static bool ignores_dead_peer(struct doca_comch_connection *connection)
{
	if (connection->state != SOFT_CONNECTION_OPEN || connection->endpoint->ctx.dev->info->side != SOFT_HOST ||
	    !soft_has_quirk(SOFT_DEAD_PEER_UNNOTICED))
		return false;
	watch(connection, EPOLL_CTL_DEL, 0);
	pthread_mutex_lock(&connection->lock);
	connection->send_failed = true;
	pthread_mutex_unlock(&connection->lock);
	return true;
}

/* One progress delivers a receive queue at most, because new messages could only follow when it is empty. */
static bool had_its_share(struct doca_comch_connection *connection)
{
	uint64_t round = soft_pe_rounds(connection->endpoint->ctx.pe);
	if (connection->round != round)
		connection->received = 0;
	connection->round = round;
	return connection->received >= connection->endpoint->recv_queue_size;
}

bool soft_connection_receive(struct doca_comch_connection *connection)
{
	if (had_its_share(connection))
		return false;
	const struct soft_endpoint *endpoint = connection->endpoint;
	struct soft_frame frame;
	int lane = -1;
	ssize_t n = receive_packet(connection, &lane);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0 && ignores_dead_peer(connection))
		return false;
	if (n > 0 && (size_t)n <= endpoint->packet_size && soft_frame_parse(endpoint->packet, (size_t)n, &frame))
		handle_frame(connection, &frame, &lane);
	else
		connection_lost(connection, DOCA_ERROR_CONNECTION_RESET);
	if (lane >= 0)
		close(lane);
	return true;
}

/* ---- functions of DOCA ---- */

doca_error_t soft_doca_comch_connection_set_user_data(struct doca_comch_connection *connection,
						      union doca_data user_data)
{
	if (connection == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	connection->user_data = user_data;
	return DOCA_SUCCESS;
}

union doca_data soft_doca_comch_connection_get_user_data(const struct doca_comch_connection *connection)
{
	return connection == NULL ? (union doca_data){.u64 = 0} : connection->user_data;
}

doca_error_t soft_doca_comch_connection_update_info(struct doca_comch_connection *comch_connection)
{
	if (comch_connection == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (comch_connection->state != SOFT_CONNECTION_OPEN)
		return DOCA_ERROR_CONNECTION_ABORTED;
	pthread_mutex_lock(&comch_connection->lock);
	comch_connection->snapshot = comch_connection->counters;
	pthread_mutex_unlock(&comch_connection->lock);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_connection_get_counter(const struct doca_comch_connection *comch_connection,
						    enum doca_comch_counter counter_type, uint64_t *counter_value)
{
	if (comch_connection == NULL || counter_value == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	switch (counter_type) {
	case DOCA_COMCH_COUNTER_SENT_MESSAGES:
		*counter_value = comch_connection->snapshot.sent_messages;
		return DOCA_SUCCESS;
	case DOCA_COMCH_COUNTER_SENT_BYTES:
		*counter_value = comch_connection->snapshot.sent_bytes;
		return DOCA_SUCCESS;
	case DOCA_COMCH_COUNTER_RECV_MESSAGES:
		*counter_value = comch_connection->snapshot.recv_messages;
		return DOCA_SUCCESS;
	case DOCA_COMCH_COUNTER_RECV_BYTES:
		*counter_value = comch_connection->snapshot.recv_bytes;
		return DOCA_SUCCESS;
	default:
		return DOCA_ERROR_INVALID_VALUE;
	}
}
