/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "lane.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "error.h"
#include "remote.h"
#include "sizes.h"
#include "socket.h"

/* ---- life cycle ---- */

static int socket_option(int fd, int option)
{
	int value;
	socklen_t len = sizeof(value);
	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

static bool is_lane(int fd)
{
	return socket_option(fd, SO_DOMAIN) == AF_UNIX && socket_option(fd, SO_TYPE) == SOCK_SEQPACKET;
}

struct soft_lane *soft_lane_open(uint32_t consumer_id, const struct soft_consumer_info *info, int fd)
{
	if (info->num_tasks == 0 || info->num_tasks > SOFT_MAX_FAST_TASKS || info->imm_data_len > SOFT_MAX_IMM_DATA ||
	    !is_lane(fd))
		return NULL;
	struct soft_lane *lane = calloc(1, sizeof(*lane));
	if (lane == NULL)
		return NULL;
	lane->slots = calloc(info->num_tasks, sizeof(*lane->slots));
	if (lane->slots == NULL) {
		free(lane);
		return NULL;
	}
	atomic_init(&lane->refs, 1);
	lane->consumer_id = consumer_id;
	lane->imm_data_len = info->imm_data_len;
	lane->num_slots = info->num_tasks;
	lane->fd = fd;
	memcpy(lane->descriptor, info->descriptor, sizeof(lane->descriptor));
	pthread_mutex_init(&lane->lock, NULL);
	return lane;
}

void soft_lane_unref(struct soft_lane *lane)
{
	if (atomic_fetch_sub(&lane->refs, 1) > 1)
		return;
	if (lane->import != NULL)
		soft_import_close(lane->import);
	explicit_bzero(lane->descriptor, sizeof(lane->descriptor));
	pthread_mutex_destroy(&lane->lock);
	close(lane->fd);
	free(lane->slots);
	free(lane);
}

void soft_lane_end(struct soft_lane *lane)
{
	atomic_store(&lane->ended, true);
	shutdown(lane->fd, SHUT_RDWR);
}

bool soft_lane_writable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	return poll(&p, 1, 0) > 0 && (p.revents & POLLOUT) != 0;
}

/* ---- slots ---- */

static bool within(const struct soft_range *range, const struct soft_slot *slot)
{
	uint64_t start = (uintptr_t)range->addr;
	return slot->addr >= start && slot->addr - start <= range->len &&
	       slot->capacity <= range->len - (slot->addr - start);
}

/* False if the consumer posts more slots than it has tasks: a protocol violation. */
static bool add_slot(struct soft_lane *lane, const struct soft_slot *slot)
{
	if (lane->posted == lane->num_slots)
		return false;
	lane->slots[(lane->first + lane->posted++) % lane->num_slots] = *slot;
	return true;
}

/* Receives posted slots. This is not progress: a producer sees them without calling it. */
static void look(struct soft_lane *lane)
{
	struct soft_slot slot;
	while (!atomic_load(&lane->ended)) {
		ssize_t n = recv(lane->fd, &slot, sizeof(slot), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n != sizeof(slot) || !add_slot(lane, &slot))
			soft_lane_end(lane);
	}
}

static struct soft_slot *slot_at(struct soft_lane *lane, uint32_t index)
{
	return &lane->slots[(lane->first + index) % lane->num_slots];
}

static doca_error_t does_not_fit(const struct soft_lane *lane, size_t len, const struct soft_slot *slot)
{
	soft_detail("a message of %zu bytes does not fit into the %llu that consumer %u has posted", len,
		    (unsigned long long)slot->capacity, (unsigned)lane->consumer_id);
	return DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t reserve(struct soft_lane *lane, size_t len, uint32_t imm_len)
{
	look(lane);
	if (atomic_load(&lane->ended) || imm_len > lane->imm_data_len) {
		soft_detail("consumer %u has expired, or takes less immediate data", (unsigned)lane->consumer_id);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (lane->reserved >= lane->posted)
		return DOCA_ERROR_AGAIN;
	const struct soft_slot *slot = slot_at(lane, lane->reserved);
	if (len > slot->capacity)
		return does_not_fit(lane, len, slot);
	lane->reserved++;
	return DOCA_SUCCESS;
}

doca_error_t soft_lane_reserve(struct soft_lane *lane, size_t len, uint32_t imm_len)
{
	pthread_mutex_lock(&lane->lock);
	doca_error_t result = reserve(lane, len, imm_len);
	pthread_mutex_unlock(&lane->lock);
	return result;
}

void soft_lane_cancel(struct soft_lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	lane->reserved--;
	pthread_mutex_unlock(&lane->lock);
}

/* ---- deliveries ---- */

/* A consumer that stops ends the lane before it revokes its memory. */
static doca_error_t copy_failure(const struct soft_lane *lane)
{
	return atomic_load(&lane->ended) || soft_socket_hung_up(lane->fd) ? DOCA_ERROR_CONNECTION_RESET
									  : DOCA_ERROR_IO_FAILED;
}

/* TIME_OUT: the consumer's process is stopped. That is looked at first, because other messages wait meanwhile. */
static doca_error_t open_import(struct soft_lane *lane)
{
	pid_t consumer;
	if (lane->import != NULL)
		return DOCA_SUCCESS;
	if (soft_socket_peer(lane->fd, &consumer) && remote_is_stopped(consumer))
		return DOCA_ERROR_TIME_OUT;
	return soft_import_open(lane->descriptor, sizeof(lane->descriptor), &lane->import, &lane->range);
}

/*
 * Memory whose owner is stopped can only be opened when it is continued. A card would not notice, so the message waits,
 * as it does for a consumer that does not progress.
 */
static doca_error_t write_bytes(struct soft_lane *lane, const struct soft_slot *slot, const void *bytes, size_t len)
{
	if (len == 0)
		return DOCA_SUCCESS;
	doca_error_t result = open_import(lane);
	if (result == DOCA_ERROR_TIME_OUT && !soft_socket_hung_up(lane->fd))
		return DOCA_ERROR_AGAIN;
	if (result == DOCA_SUCCESS && !within(&lane->range, slot)) {
		soft_detail("consumer %u has posted memory outside its export", (unsigned)lane->consumer_id);
		soft_lane_end(lane);
		result = DOCA_ERROR_IO_FAILED;
	}
	if (result == DOCA_SUCCESS)
		result = soft_import_write(lane->import, (void *)(uintptr_t)slot->addr, bytes, len);
	return result == DOCA_SUCCESS ? result : copy_failure(lane);
}

static bool send_delivery(struct soft_lane *lane, uint32_t producer_id, size_t len, const void *imm, uint32_t imm_len)
{
	struct soft_delivery delivery = {.producer_id = producer_id, .len = (uint32_t)len, .imm_len = imm_len};
	struct iovec parts[] = {{&delivery, sizeof(delivery)}, {(void *)imm, imm_len}};
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2};
	return sendmsg(lane->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)(sizeof(delivery) + imm_len);
}

/* Copies only after checking that the delivery can be sent. */
static doca_error_t deliver(struct soft_lane *lane, uint32_t producer_id, const void *bytes, size_t len,
			    const void *imm, uint32_t imm_len)
{
	const struct soft_slot *slot = slot_at(lane, 0);
	if (atomic_load(&lane->ended) || soft_socket_hung_up(lane->fd))
		return DOCA_ERROR_CONNECTION_RESET;
	if (!soft_lane_writable(lane->fd))
		return DOCA_ERROR_AGAIN;
	if (len > slot->capacity)
		return does_not_fit(lane, len, slot);
	doca_error_t result = write_bytes(lane, slot, bytes, len);
	if (result != DOCA_SUCCESS)
		return result;
	if (!send_delivery(lane, producer_id, len, imm, imm_len))
		return DOCA_ERROR_CONNECTION_RESET;
	lane->first = (lane->first + 1) % lane->num_slots;
	lane->posted--;
	return DOCA_SUCCESS;
}

doca_error_t soft_lane_deliver(struct soft_lane *lane, uint32_t producer_id, const void *bytes, size_t len,
			       const void *imm, uint32_t imm_len)
{
	pthread_mutex_lock(&lane->lock);
	doca_error_t result = deliver(lane, producer_id, bytes, len, imm, imm_len);
	if (result != DOCA_ERROR_AGAIN)
		lane->reserved--;
	pthread_mutex_unlock(&lane->lock);
	return result;
}
