/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One Comch server or client on its own progress engine. Its callbacks are queued as events that Go reads after each
 * poll. C never calls Go, and calls inside a DOCA callback only what DOCA allows there.
 *
 * Threads: one at a time.
 */
#ifndef DMA_COPY_CHANNEL_H
#define DMA_COPY_CHANNEL_H

#include "progress.h"

enum channel_event_kind {
	CHANNEL_CONNECTED = 1,    /* the connection can be used, unless status says that DOCA does not supply it */
	CHANNEL_DISCONNECTED = 2, /* the connection has ended; its pointer must not be used again */
	CHANNEL_MESSAGE = 3,      /* len bytes at offset in the arena */
	CHANNEL_SENT = 4,         /* the send with this tag has completed, see status */
	CHANNEL_STATE = 5,        /* the context is in state */
	CHANNEL_NEW_CONSUMER = 6, /* of the peer; its id is the tag */
	CHANNEL_EXPIRED_CONSUMER = 7,
};

struct channel_event {
	uint32_t kind;
	int32_t status; /* a doca_error_t */
	struct doca_comch_connection *connection;
	uint64_t tag;
	uint32_t offset; /* of the message in the channel's arena */
	uint32_t len;
	uint32_t state; /* a doca_ctx_states */
	uint32_t reserved;
};

struct channel_config {
	struct doca_dev *dev;
	struct doca_dev_rep *rep; /* NULL: a client */
	const char *name;
	uint32_t max_message; /* bytes; both sides must agree */
	uint32_t receive_queue;
	uint32_t sends; /* in flight */
};

struct channel {
	struct progress progress;
	struct doca_comch_server *server; /* one of the two */
	struct doca_comch_client *client;
	struct channel_event *events;
	uint32_t event_count, event_capacity;
	uint32_t event_returned; /* of event_count, those that the last poll returned */
	uint8_t *arena;
	uint32_t arena_used, arena_capacity;
	uint8_t out_of_memory; /* an event was lost for lack of memory: the channel must be closed */
};

/* Opens and configures a channel that is not started. On failure *channel is unchanged. */
struct outcome channel_open(const struct doca_ops *ops, const struct channel_config *config, struct channel **channel);

/* Starts the channel: a server listens at once, a client begins to connect. A failed client may be started again. */
struct outcome channel_start(struct channel *channel);

/* Sends a copy of len bytes. AGAIN: poll first. Completion is an event with this tag. */
struct outcome channel_send(struct channel *channel, struct doca_comch_connection *connection, const void *message,
			    uint32_t len, uint64_t tag);

/* Drops the last poll's events, then progresses until about max new ones have arrived or nothing moves. */
uint32_t channel_poll(struct channel *channel, uint32_t max);

/* Server only: ends one connection. AGAIN: poll and call again. */
struct outcome channel_disconnect(struct channel *channel, struct doca_comch_connection *connection);

/* progress_stop, which may raise events of the channel. */
struct outcome channel_stop(struct channel *channel);

/* Frees an idle channel. On failure it frees nothing and can be called again. */
struct outcome channel_close(struct channel *channel);

#endif
