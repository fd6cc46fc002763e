/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker of UCX: operations in flight, endpoints, and the slots that receive active messages. UCX's callbacks add
 * events to a ring that Go empties with each poll. C never calls Go.
 *
 * Threads: one at a time, except for ucp_worker_signal, and ucx_worker_post once the slots are set.
 */
#ifndef DMA_COPY_UCX_WORKER_H
#define DMA_COPY_UCX_WORKER_H

#include "context.h"

enum ucx_event_kind {
	UCX_EVENT_COMPLETED = 1, /* the operation with this tag has ended */
	UCX_EVENT_ARRIVED = 2,   /* length bytes are in the slot with the number tag, unless status is an error */
	UCX_EVENT_FAILED = 3,    /* the endpoint with this tag has failed; once */
	UCX_EVENT_REFUSED = 4,   /* a message was refused; status is an enum ucx_refusal, tag the value refused; once */
};

enum ucx_refusal {
	UCX_REFUSED_HEADER = -1, /* its length */
	UCX_REFUSED_TOKEN = -2,
	UCX_REFUSED_SLOT = -3,     /* there is none of this number */
	UCX_REFUSED_OCCUPIED = -4, /* the slot has a message */
	UCX_REFUSED_LENGTH = -5,   /* 0, or more than a slot has */
	UCX_REFUSED_REPLY = -6,    /* to be fetched, without the endpoint to fetch it from */
};

struct ucx_event {
	uint64_t tag;
	uint64_t length;
	int32_t status; /* a ucs_status_t */
	uint32_t kind;
};

/* The header of an active message, in the byte order of the sender, which UCX requires to be the receiver's. */
struct ucx_header {
	uint64_t token;
	uint32_t slot;
	uint32_t reserved;
};

/* The number of the active message, of those that a user of UCX may choose. */
enum { UCX_MESSAGE_ID = 1 };

struct ucx_worker;

/* Something that UCX works on. */
struct ucx_operation {
	struct ucx_worker *worker;
	struct ucx_memory *memory;
	struct ucx_operation *next; /* of the vacant ones */
	struct ucx_endpoint *flush; /* to be flushed before the operation ends, or NULL */
	uint64_t tag;
	struct ucx_header header; /* of a message; UCX reads it until the end of the operation */
};

/* Slots for messages: number first + i * step has size bytes at address + i * size. */
struct ucx_slots {
	struct ucx_memory *memory;
	uint8_t *address;
	uint64_t size;
	uint64_t token; /* that messages must have */
	uint32_t first;
	uint32_t step;
	uint32_t count;
	uint32_t reserved;
};

/* State of a slot, atomic. occupied: from the arrival of a message's beginning to ucx_worker_post. */
struct ucx_slot {
	struct ucx_worker *worker;
	uint32_t number;
	uint8_t occupied;
	uint8_t arrived; /* the event was added */
	/* For the worker's thread: */
	uint8_t stopping; /* source is closed, or being closed */
	ucp_ep_h source;  /* that UCX fetches the message from; NULL: it does not */
};

struct ucx_endpoint {
	struct ucx_worker *worker;
	ucp_ep_h handle; /* NULL once closed */
	struct ucx_endpoint *next;
	uint64_t tag;
	uint8_t forcible; /* its operations can be forced to end */
	uint8_t failed;
	uint8_t flushing, flushed; /* by ucx_endpoint_close */
	uint8_t closing, closed;
};

struct ucx_worker {
	const struct ucp_library *ucp;
	ucp_worker_h handle;
	int descriptor; /* readable when there may be events, if armed */
	uint32_t depth;
	uint32_t inflight; /* operations that were posted and whose completion was not taken */
	struct ucx_operation *operations, *vacant;
	struct ucx_endpoint *endpoints;
	struct ucx_slots slots;
	struct ucx_slot *slot; /* slots.count of them */
	uint8_t refused;       /* all further messages are dropped */
	uint8_t unfinished;    /* the last poll has ended before nothing moved */
	struct ucx_event *events;
	uint32_t capacity;   /* of the ring of events */
	uint64_t head, tail; /* numbers of events, which never wrap: a ring has any capacity */
};

/* Opens a struct ucx_worker for up to depth operations in flight. */
struct ucx_opened ucx_worker_open(const struct ucx_context *context, uint32_t depth);

/* Makes progress until there are max events or nothing moves, and returns how many were written to events. */
uint32_t ucx_worker_poll(struct ucx_worker *worker, struct ucx_event *events, uint32_t max);

/* Sets the slots, once. */
ucs_status_t ucx_worker_receive(struct ucx_worker *worker, struct ucx_slots slots);

/* Forces fetches of messages to end, with errors. UCS_ERR_BUSY: one has not ended. */
ucs_status_t ucx_worker_stop_fetches(struct ucx_worker *worker);

/* Makes a slot vacant whose event was taken. Another thread than the worker's may do so. */
ucs_status_t ucx_worker_post(struct ucx_worker *worker, uint32_t number);

/*
 * Destroys the worker, its endpoints and all operations that cannot be forced to end by themselves. UCS_ERR_BUSY: an
 * endpoint is not closed that can be forced, or a fetch has not ended, and nothing was destroyed.
 */
ucs_status_t ucx_worker_close(struct ucx_worker *worker);

/* ---- of the other files ---- */

/* Enlarges the ring of events. */
ucs_status_t ucx_worker_reserve(struct ucx_worker *worker, uint32_t more);

void ucx_worker_push(struct ucx_worker *worker, struct ucx_event event);

#endif
