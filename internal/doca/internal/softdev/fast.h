/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of a connection: what its control channel, its consumers, its producers and the peer's consumers share,
 * each on a progress engine and a thread of its own.
 *
 *   consumer's engine            control channels' engines            producer's engine
 *   start: STARTING  ─ asked ──► grants
 *   RUNNING ◄───────────────────┘
 *   announcement ──────────────► CONSUMER frame, lane ──► new_consumer event, lane
 *   post ─────────────────────── lane ─────────────────────────────► slot
 *   delivery ◄────────────────── lane ─────────────────────────────── bytes written into the slot
 *   stop: expiry ──────────────► EXPIRED frame ──────────► expired_consumer event
 *
 * A lane is a pair of SOCK_SEQPACKET sockets, one end with the consumer, the other with all producers of the peer. The
 * bytes go straight into the consumer's memory, by an import of it.
 *
 * Locks: soft_fast.lock, then soft_lane.lock. No callback is made with either held.
 */
#ifndef DMA_COPY_SOFT_FAST_H
#define DMA_COPY_SOFT_FAST_H

#include <sys/queue.h>

#include "remote_wire.h"

/* What samples take for "none" and "gone" is never an id. */
#define SOFT_NO_ID 0
#define SOFT_GONE_ID 0xffff

/* ---- what travels ---- */

/* Follows a CONSUMER frame, whose value is the id; the lane's end comes with it. */
struct soft_consumer_info {
	uint32_t imm_data_len;
	uint32_t num_tasks;
	uint8_t descriptor[sizeof(struct remote_descriptor)];
};
_Static_assert(sizeof(struct soft_consumer_info) == 128, "cards have a fixed layout");

/* On a lane, from the consumer: one posted buffer. room is 0 for a task that takes immediate data only. */
struct soft_slot {
	uint64_t addr;
	uint64_t capacity;
};

/* On a lane, to the consumer: what became of its oldest slot. imm_len bytes follow. */
struct soft_delivery {
	uint32_t producer_id;
	uint32_t len;
	uint32_t imm_len;
	uint32_t reserved;
};
_Static_assert(sizeof(struct soft_slot) == 16 && sizeof(struct soft_delivery) == 16, "fixed layout");

/* ---- members ---- */

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

/* News of a consumer that the control channel has still to send. */
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
	doca_error_t fault; /* why it is not any more */
	int wakeup;         /* eventfd of the endpoint; -1 once the connection is released */
	atomic_uint due;    /* registrations asked for, and notices */
	unsigned active;    /* members that are not IDLE */
	uint32_t next_id[SOFT_MEMBER_KINDS];
	unsigned count[SOFT_MEMBER_KINDS];
	TAILQ_HEAD(, soft_member) members;
	STAILQ_HEAD(, soft_notice) notices;
	TAILQ_HEAD(, soft_lane) lanes; /* the peer's consumers */
};

/* ---- fast: for the control channel ---- */

/* wakeup stays the caller's. has_consumer_events: consumer events are registered on this side. NULL: no memory. */
struct soft_fast *soft_fast_open(struct doca_dev *dev, int wakeup, bool has_consumer_events);

/* The connection is over: nothing rings any more. Lanes and notices go. */
void soft_fast_close(struct soft_fast *fast);

/* The connection is freed. Its memory stays while there are members. */
void soft_fast_unref(struct soft_fast *fast);

void soft_fast_up(struct soft_fast *fast);

/* The connection has ended; members learn it from their next progress. */
void soft_fast_down(struct soft_fast *fast, doca_error_t fault);

bool soft_fast_has_active(struct soft_fast *fast);
bool soft_fast_is_due(const struct soft_fast *fast);

/* Grants one registration. False if none is asked for. */
bool soft_fast_grant_registration(struct soft_fast *fast);

/* The oldest notice, which stays in the queue until soft_fast_notice_sent; NULL if there is none. */
const struct soft_notice *soft_fast_oldest_notice(struct soft_fast *fast);
void soft_fast_notice_sent(struct soft_fast *fast);

/* The peer has a new consumer. Takes lane over. False if the peer is not to be trusted any more, or no memory is left. */
bool soft_fast_add_lane(struct soft_fast *fast, uint32_t id, const struct soft_consumer_info *info, int lane);

/* The peer's consumer has expired, or any has if id is SOFT_NO_ID. The id that went; SOFT_NO_ID if there was none. */
uint32_t soft_fast_drop_lane(struct soft_fast *fast, uint32_t id);

/* ---- fast: for members ---- */

/* BAD_STATE: the connection is not up. NO_MEMORY: as many as max_consumers or max_producers exist. */
doca_error_t soft_member_join(struct soft_member *member, struct soft_fast *fast, enum soft_member_kind kind);
void soft_member_leave(struct soft_member *member);

/* From start to idle. INVALID_VALUE: consumer events are not registered. NOT_CONNECTED: the connection has ended. */
doca_error_t soft_member_activate(struct soft_member *member, struct doca_pe *pe);
void soft_member_deactivate(struct soft_member *member, struct doca_pe *pe);

/* The beginning of every progress: silences the wakeup, before the member looks what has changed. */
void soft_member_clear_wakeup(struct soft_member *member);

bool soft_member_is_up(const struct soft_member *member);
doca_error_t soft_member_fault(const struct soft_member *member);

void soft_member_request_registration(struct soft_member *member);
bool soft_member_is_registered(const struct soft_member *member);

/* Takes the notice over. */
void soft_member_queue_notice(struct soft_member *member, struct soft_notice *notice);
void soft_notice_free(struct soft_notice *notice);

/* ---- lane: the peer's consumer, as this side's producers see it ---- */

struct soft_lane {
	TAILQ_ENTRY(soft_lane) link; /* under soft_fast.lock */
	atomic_uint refs;
	uint32_t consumer_id;
	uint32_t imm_data_len;
	int fd;
	atomic_bool ended; /* the consumer, or the connection */
	uint8_t descriptor[sizeof(struct remote_descriptor)];

	pthread_mutex_t lock;       /* guards what follows */
	struct soft_import *import; /* from the first bytes on */
	struct soft_range range;
	struct soft_slot *slots; /* a ring */
	uint32_t num_slots, first, posted;
	uint32_t reserved; /* slots that submitted tasks count on */
};

/* Takes fd over, unless it answers NULL: no memory, or the info or the socket cannot be right. */
struct soft_lane *soft_lane_open(uint32_t consumer_id, const struct soft_consumer_info *info, int fd);
void soft_lane_unref(struct soft_lane *lane);

/* Wakes whoever waits for it. */
void soft_lane_end(struct soft_lane *lane);

/* A reference, or NULL: no such consumer. */
struct soft_lane *soft_lane_find(struct soft_fast *fast, uint32_t consumer_id);

/* A slot for a message of so many bytes. AGAIN: none is posted. INVALID_VALUE: it does not fit, or the consumer is gone. */
doca_error_t soft_lane_reserve(struct soft_lane *lane, size_t len, uint32_t imm_len);
void soft_lane_cancel(struct soft_lane *lane);

/*
 * Fills the oldest slot and gives the reservation up. AGAIN: the consumer has not looked at what it got before, the
 * reservation stays. INVALID_VALUE: it does not fit. CONNECTION_RESET: the consumer is gone. IO_FAILED.
 */
doca_error_t soft_lane_deliver(struct soft_lane *lane, uint32_t producer_id, const void *bytes, size_t len,
			       const void *imm, uint32_t imm_len);

/* A small packet fits into the socket. */
bool soft_lane_writable(int fd);

#endif
