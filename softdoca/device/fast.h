/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of a connection: what is shared by its control channel, its members (consumers and producers) and the
 * peer's consumers (lanes), each on its own progress engine and thread.
 *
 *   consumer's engine            control channels' engines             producer's engine
 *   start: STARTING ─ request ─► grant
 *   RUNNING ◄───────────────────┘
 *   announcement ──────────────► CONSUMER frame, lane ──► new_consumer event, lane
 *   post ─────────────────────── lane ─────────────────────────────► slot
 *   delivery ◄────────────────── lane ─────────────────────────────── bytes written into the slot
 *   stop: expiry ──────────────► EXPIRED frame ──────────► expired_consumer event
 *
 * Locks: soft_fast.lock before soft_lane.lock. No callback is called with either held.
 */
#ifndef DMA_COPY_SOFT_FAST_H
#define DMA_COPY_SOFT_FAST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "doca_abi.h"
#include "lane.h"

/* Never ids: samples use them for "none" and "gone". */
#define SOFT_NO_ID 0
#define SOFT_GONE_ID 0xffff

enum soft_member_kind { SOFT_CONSUMER, SOFT_PRODUCER, SOFT_MEMBER_KINDS };
enum soft_registration { SOFT_UNREGISTERED, SOFT_REGISTRATION_REQUESTED, SOFT_REGISTRATION_GRANTED };

/* A consumer or producer of this side, from creation to destruction. */
struct soft_member {
	struct soft_fast *fast;
	TAILQ_ENTRY(soft_member) link; /* under the lock, as are active and registration */
	enum soft_member_kind kind;
	uint32_t id;
	bool active; /* not IDLE */
	enum soft_registration registration;
	int wakeup; /* eventfd in the member's engine, while active */
	atomic_bool woken;
};

/* A new or expired consumer that the control channel has still to announce. */
struct soft_notice {
	STAILQ_ENTRY(soft_notice) link;
	bool expired; /* else new */
	uint32_t id;
	int lane; /* the peer's end; -1 if expired */
	struct soft_consumer_info info;
};

struct soft_fast {
	struct doca_dev *dev;
	bool has_consumer_events;
	pthread_mutex_t lock;
	unsigned refs;
	atomic_bool up;     /* the connection is OPEN */
	doca_error_t fault; /* why it is no longer */
	int wakeup;         /* eventfd of the endpoint; -1 once the connection is released */
	atomic_uint due;    /* requested registrations and notices */
	unsigned active;    /* members that are not IDLE */
	uint32_t next_id[SOFT_MEMBER_KINDS];
	unsigned count[SOFT_MEMBER_KINDS];
	TAILQ_HEAD(, soft_member) members;
	STAILQ_HEAD(, soft_notice) notices;
	TAILQ_HEAD(, soft_lane) lanes; /* the peer's consumers */
};

/* ---- for the control channel ---- */

/*
 * wakeup stays the caller's. has_consumer_events: consumer events are registered on this side. Returns NULL without
 * memory.
 */
struct soft_fast *soft_fast_open(struct doca_dev *dev, int wakeup, bool has_consumer_events);

/* The connection is released: drops lanes and notices, and wakes its endpoint no more. */
void soft_fast_close(struct soft_fast *fast);

/* The connection is freed. The memory stays while there are members. */
void soft_fast_unref(struct soft_fast *fast);

void soft_fast_up(struct soft_fast *fast);

/* The connection has ended; members see it in their next progress. */
void soft_fast_down(struct soft_fast *fast, doca_error_t fault);

/* Reports whether a member is not IDLE. */
bool soft_fast_has_active(struct soft_fast *fast);

/* Reports whether registrations or notices are pending. */
bool soft_fast_is_due(const struct soft_fast *fast);

/* Grants one registration. False if none is requested. */
bool soft_fast_grant_registration(struct soft_fast *fast);

/* Returns the oldest notice, which stays in the queue until soft_fast_notice_sent; NULL if there is none. */
const struct soft_notice *soft_fast_oldest_notice(struct soft_fast *fast);
void soft_fast_notice_sent(struct soft_fast *fast);

/* The peer has a new consumer. Takes ownership of lane. False: the peer's data is not valid, or no memory. */
bool soft_fast_add_lane(struct soft_fast *fast, uint32_t id, const struct soft_consumer_info *info, int lane);

/*
 * Drops the lane of the peer's consumer id, or any lane if id is SOFT_NO_ID. Returns the consumer's id; SOFT_NO_ID if
 * there was none.
 */
uint32_t soft_fast_drop_lane(struct soft_fast *fast, uint32_t id);

/* ---- for members ---- */

/* BAD_STATE: the connection is not up. NO_MEMORY: there are max_consumers or max_producers already. */
doca_error_t soft_member_join(struct soft_member *member, struct soft_fast *fast, enum soft_member_kind kind);
void soft_member_leave(struct soft_member *member);

/*
 * From start to idle. INVALID_VALUE: the server has not registered consumer events. NOT_CONNECTED: the connection has
 * ended.
 */
doca_error_t soft_member_activate(struct soft_member *member, struct doca_pe *pe);
void soft_member_deactivate(struct soft_member *member, struct doca_pe *pe);

/* There is work for its progress. Any thread may call. */
void soft_member_wake(struct soft_member *member);

/* Called first in every progress: clears the wakeup before the member checks what has changed. */
void soft_member_clear_wakeup(struct soft_member *member);

bool soft_member_is_up(const struct soft_member *member);
doca_error_t soft_member_fault(const struct soft_member *member);

void soft_member_request_registration(struct soft_member *member);
bool soft_member_is_registered(const struct soft_member *member);

/* Takes ownership of the notice. */
void soft_member_queue_notice(struct soft_member *member, struct soft_notice *notice);
void soft_notice_free(struct soft_notice *notice);

/* Returns a reference to the lane of the peer's consumer; NULL: no such consumer. */
struct soft_lane *soft_lane_find(struct soft_fast *fast, uint32_t consumer_id);

#endif
