/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fast.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "config.h"
#include "dev.h"
#include "error.h"
#include "lane.h"
#include "pe.h"

/* ---- life cycle ---- */

/* One side has odd ids, the other even ones, so that an id is unique on the connection. */
static uint32_t first_id(const struct doca_dev *dev)
{
	return dev->info->side == SOFT_HOST ? 1 : 2;
}

struct soft_fast *soft_fast_open(struct doca_dev *dev, int wakeup, bool has_consumer_events)
{
	struct soft_fast *fast = calloc(1, sizeof(*fast));
	if (fast == NULL)
		return NULL;
	pthread_mutex_init(&fast->lock, NULL);
	fast->dev = dev;
	fast->has_consumer_events = has_consumer_events;
	fast->refs = 1;
	fast->wakeup = wakeup;
	fast->fault = DOCA_ERROR_CONNECTION_ABORTED;
	for (int kind = 0; kind < SOFT_MEMBER_KINDS; kind++)
		fast->next_id[kind] = first_id(dev);
	TAILQ_INIT(&fast->members);
	STAILQ_INIT(&fast->notices);
	TAILQ_INIT(&fast->lanes);
	return fast;
}

/* Called with the lock, which it releases. */
static void unref(struct soft_fast *fast)
{
	bool last = --fast->refs == 0;
	pthread_mutex_unlock(&fast->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&fast->lock);
	free(fast);
}

void soft_notice_free(struct soft_notice *notice)
{
	if (notice == NULL)
		return;
	if (notice->lane >= 0)
		close(notice->lane);
	free(notice);
}

static void drop_notice(struct soft_fast *fast)
{
	struct soft_notice *notice = STAILQ_FIRST(&fast->notices);
	STAILQ_REMOVE_HEAD(&fast->notices, link);
	atomic_fetch_sub(&fast->due, 1);
	soft_notice_free(notice);
}

void soft_fast_close(struct soft_fast *fast)
{
	soft_fast_down(fast, DOCA_ERROR_CONNECTION_ABORTED);
	while (soft_fast_drop_lane(fast, SOFT_NO_ID) != SOFT_NO_ID)
		;
	pthread_mutex_lock(&fast->lock);
	fast->wakeup = -1;
	while (!STAILQ_EMPTY(&fast->notices))
		drop_notice(fast);
	pthread_mutex_unlock(&fast->lock);
}

void soft_fast_unref(struct soft_fast *fast)
{
	pthread_mutex_lock(&fast->lock);
	unref(fast);
}

/* ---- the state of the connection ---- */

static void wake_member(struct soft_member *member)
{
	if (member->active && !atomic_exchange(&member->woken, true))
		eventfd_write(member->wakeup, 1);
}

static void wake_endpoint(struct soft_fast *fast)
{
	if (fast->wakeup >= 0)
		eventfd_write(fast->wakeup, 1);
}

void soft_fast_up(struct soft_fast *fast)
{
	atomic_store(&fast->up, true);
}

void soft_fast_down(struct soft_fast *fast, doca_error_t fault)
{
	struct soft_member *member;
	struct soft_lane *lane;
	pthread_mutex_lock(&fast->lock);
	if (atomic_load(&fast->up))
		fast->fault = fault;
	atomic_store(&fast->up, false);
	TAILQ_FOREACH(lane, &fast->lanes, link)
	soft_lane_end(lane);
	TAILQ_FOREACH(member, &fast->members, link)
	wake_member(member);
	pthread_mutex_unlock(&fast->lock);
}

bool soft_fast_has_active(struct soft_fast *fast)
{
	pthread_mutex_lock(&fast->lock);
	bool any = fast->active > 0;
	pthread_mutex_unlock(&fast->lock);
	return any;
}

/* ---- what the control channel does for members ---- */

bool soft_fast_is_due(const struct soft_fast *fast)
{
	return atomic_load(&fast->due) > 0;
}

bool soft_fast_grant_registration(struct soft_fast *fast)
{
	struct soft_member *member;
	pthread_mutex_lock(&fast->lock);
	TAILQ_FOREACH(member, &fast->members, link)
	{
		if (member->registration == SOFT_REGISTRATION_REQUESTED)
			break;
	}
	if (member != NULL) {
		member->registration = SOFT_REGISTRATION_GRANTED;
		atomic_fetch_sub(&fast->due, 1);
		wake_member(member);
	}
	pthread_mutex_unlock(&fast->lock);
	return member != NULL;
}

const struct soft_notice *soft_fast_oldest_notice(struct soft_fast *fast)
{
	pthread_mutex_lock(&fast->lock);
	const struct soft_notice *notice = STAILQ_FIRST(&fast->notices);
	pthread_mutex_unlock(&fast->lock);
	return notice;
}

void soft_fast_notice_sent(struct soft_fast *fast)
{
	pthread_mutex_lock(&fast->lock);
	drop_notice(fast);
	pthread_mutex_unlock(&fast->lock);
}

/* ---- the peer's consumers ---- */

static struct soft_lane *find_lane(struct soft_fast *fast, uint32_t id)
{
	struct soft_lane *lane;
	TAILQ_FOREACH(lane, &fast->lanes, link)
	{
		if (lane->consumer_id == id || id == SOFT_NO_ID)
			break;
	}
	return lane;
}

static unsigned count_lanes(const struct soft_fast *fast)
{
	const struct soft_lane *lane;
	unsigned n = 0;
	TAILQ_FOREACH(lane, &fast->lanes, link)
	n++;
	return n;
}

/* See first_id. */
static bool is_peers(const struct soft_fast *fast, uint32_t id)
{
	return id != SOFT_NO_ID && id < SOFT_GONE_ID && id % 2 != first_id(fast->dev) % 2;
}

bool soft_fast_add_lane(struct soft_fast *fast, uint32_t id, const struct soft_consumer_info *info, int fd)
{
	struct soft_lane *lane = is_peers(fast, id) ? soft_lane_open(id, info, fd) : NULL;
	if (lane == NULL) {
		close(fd);
		return false;
	}
	pthread_mutex_lock(&fast->lock);
	bool welcome = find_lane(fast, id) == NULL && count_lanes(fast) < soft_limits()->max_consumers;
	if (welcome)
		TAILQ_INSERT_TAIL(&fast->lanes, lane, link);
	pthread_mutex_unlock(&fast->lock);
	if (!welcome)
		soft_lane_unref(lane);
	return welcome;
}

uint32_t soft_fast_drop_lane(struct soft_fast *fast, uint32_t id)
{
	pthread_mutex_lock(&fast->lock);
	struct soft_lane *lane = find_lane(fast, id);
	if (lane != NULL)
		TAILQ_REMOVE(&fast->lanes, lane, link);
	pthread_mutex_unlock(&fast->lock);
	if (lane == NULL)
		return SOFT_NO_ID;
	id = lane->consumer_id;
	soft_lane_end(lane);
	soft_lane_unref(lane);
	return id;
}

struct soft_lane *soft_lane_find(struct soft_fast *fast, uint32_t consumer_id)
{
	if (consumer_id == SOFT_NO_ID)
		return NULL;
	pthread_mutex_lock(&fast->lock);
	struct soft_lane *lane = find_lane(fast, consumer_id);
	if (lane != NULL)
		atomic_fetch_add(&lane->refs, 1);
	pthread_mutex_unlock(&fast->lock);
	return lane;
}

/* ---- members ---- */

static bool id_taken(const struct soft_fast *fast, enum soft_member_kind kind, uint32_t id)
{
	const struct soft_member *member;
	TAILQ_FOREACH(member, &fast->members, link)
	{
		if (member->kind == kind && member->id == id)
			return true;
	}
	return false;
}

/* There are far fewer members than ids, so the search ends. */
static uint32_t choose_id(struct soft_fast *fast, enum soft_member_kind kind)
{
	uint32_t id = fast->next_id[kind];
	while (id_taken(fast, kind, id) || id >= SOFT_GONE_ID)
		id = id >= SOFT_GONE_ID ? 2 - id % 2 : id + 2;
	fast->next_id[kind] = id + 2;
	return id;
}

static uint64_t max_members(enum soft_member_kind kind)
{
	return kind == SOFT_CONSUMER ? soft_limits()->max_consumers : soft_limits()->max_producers;
}

doca_error_t soft_member_join(struct soft_member *member, struct soft_fast *fast, enum soft_member_kind kind)
{
	doca_error_t result = DOCA_SUCCESS;
	pthread_mutex_lock(&fast->lock);
	if (!atomic_load(&fast->up))
		result = DOCA_ERROR_BAD_STATE;
	else if (fast->count[kind] >= max_members(kind))
		result = DOCA_ERROR_NO_MEMORY;
	if (result == DOCA_SUCCESS) {
		*member = (struct soft_member){.fast = fast, .kind = kind, .wakeup = -1};
		member->id = choose_id(fast, kind);
		fast->count[kind]++;
		fast->refs++;
		TAILQ_INSERT_TAIL(&fast->members, member, link);
	}
	pthread_mutex_unlock(&fast->lock);
	return result;
}

void soft_member_leave(struct soft_member *member)
{
	struct soft_fast *fast = member->fast;
	pthread_mutex_lock(&fast->lock);
	TAILQ_REMOVE(&fast->members, member, link);
	fast->count[member->kind]--;
	unref(fast);
}

static doca_error_t open_wakeup(struct soft_member *member, struct doca_pe *pe)
{
	member->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (member->wakeup < 0)
		return DOCA_ERROR_OPERATING_SYSTEM;
	doca_error_t result = soft_pe_watch(pe, member->wakeup, EPOLLIN);
	if (result != DOCA_SUCCESS)
		close(member->wakeup);
	return result;
}

/* The guide lists the registration as mandatory. Programs on hardware leave it out for clients. */
static doca_error_t check_consumer_events(const struct soft_fast *fast)
{
	if (fast->has_consumer_events)
		return DOCA_SUCCESS;
	if (fast->dev->info->side == SOFT_HOST) {
		soft_log(DOCA_LOG_LEVEL_WARNING,
			 "a consumer or producer starts, but doca_comch_client_event_consumer_register was not called: "
			 "the program will not be told of the server's consumers");
		return DOCA_SUCCESS;
	}
	soft_detail("a consumer or producer of a server needs doca_comch_server_event_consumer_register");
	return DOCA_ERROR_INVALID_VALUE;
}

/*
 * Checks the connection under the same lock that soft_fast_down takes, which therefore wakes this member, or is seen
 * here.
 */
doca_error_t soft_member_activate(struct soft_member *member, struct doca_pe *pe)
{
	struct soft_fast *fast = member->fast;
	doca_error_t result = check_consumer_events(fast);
	if (result != DOCA_SUCCESS)
		return result;
	result = open_wakeup(member, pe);
	if (result != DOCA_SUCCESS)
		return result;
	pthread_mutex_lock(&fast->lock);
	bool up = atomic_load(&fast->up);
	member->active = true;
	member->registration = SOFT_UNREGISTERED;
	atomic_store(&member->woken, false);
	fast->active++;
	pthread_mutex_unlock(&fast->lock);
	if (up)
		return DOCA_SUCCESS;
	soft_detail("the connection has ended");
	soft_member_deactivate(member, pe);
	return DOCA_ERROR_NOT_CONNECTED;
}

void soft_member_deactivate(struct soft_member *member, struct doca_pe *pe)
{
	struct soft_fast *fast = member->fast;
	pthread_mutex_lock(&fast->lock);
	member->active = false;
	fast->active--;
	if (member->registration == SOFT_REGISTRATION_REQUESTED)
		atomic_fetch_sub(&fast->due, 1);
	member->registration = SOFT_UNREGISTERED;
	pthread_mutex_unlock(&fast->lock);
	soft_pe_unwatch(pe, member->wakeup);
	close(member->wakeup);
	member->wakeup = -1;
}

/*
 * The flag is cleared after the wakeup is read: a wakeup in between is seen by the progress that is beginning. The flag
 * is also set before the wakeup is written; a wakeup that is still to be written is then read by the next call.
 */
void soft_member_clear_wakeup(struct soft_member *member)
{
	eventfd_t ignored;
	if (atomic_load(&member->woken) && eventfd_read(member->wakeup, &ignored) == 0)
		atomic_store(&member->woken, false);
}

void soft_member_wake(struct soft_member *member)
{
	pthread_mutex_lock(&member->fast->lock);
	wake_member(member);
	pthread_mutex_unlock(&member->fast->lock);
}

bool soft_member_is_up(const struct soft_member *member)
{
	return atomic_load(&member->fast->up);
}

doca_error_t soft_member_fault(const struct soft_member *member)
{
	pthread_mutex_lock(&member->fast->lock);
	doca_error_t fault = member->fast->fault;
	pthread_mutex_unlock(&member->fast->lock);
	return fault;
}

void soft_member_request_registration(struct soft_member *member)
{
	pthread_mutex_lock(&member->fast->lock);
	member->registration = SOFT_REGISTRATION_REQUESTED;
	atomic_fetch_add(&member->fast->due, 1);
	wake_endpoint(member->fast);
	pthread_mutex_unlock(&member->fast->lock);
}

bool soft_member_is_registered(const struct soft_member *member)
{
	pthread_mutex_lock(&member->fast->lock);
	bool granted = member->registration == SOFT_REGISTRATION_GRANTED;
	pthread_mutex_unlock(&member->fast->lock);
	return granted;
}

void soft_member_queue_notice(struct soft_member *member, struct soft_notice *notice)
{
	struct soft_fast *fast = member->fast;
	pthread_mutex_lock(&fast->lock);
	bool open = fast->wakeup >= 0;
	if (open) {
		STAILQ_INSERT_TAIL(&fast->notices, notice, link);
		atomic_fetch_add(&fast->due, 1);
		wake_endpoint(fast);
	}
	pthread_mutex_unlock(&fast->lock);
	if (!open)
		soft_notice_free(notice);
}
