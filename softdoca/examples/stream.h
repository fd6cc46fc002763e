/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream in each direction over the fast path of one connection: a producer sends blocks and a text to the peer's
 * consumer, and a consumer receives the peer's. Both are moved by engines_progress, so they run at the same time.
 */
#ifndef EXAMPLES_STREAM_H
#define EXAMPLES_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_dev.h>

#include "block.h"
#include "channel.h"
#include "engines.h"
#include "example.h"
#include "pool.h"

/* ---- the peer's stream ---- */

/* The blocks and the text that came. */
struct tally {
	uint32_t blocks;
	uint64_t bytes;
	uint32_t wrong; /* blocks out of order or damaged */
	bool ended;     /* by the text */
	uint32_t announced;
	char text[FLAG_SIZE];
};

/* A consumer with its buffers, each of which has a task: posted, or waiting to be. */
struct inlet {
	const struct engines *engines;
	struct doca_comch_consumer *consumer;
	struct pool pool;
	struct doca_comch_consumer_task_post_recv *unposted[BLOCKS_AT_ONCE];
	size_t num_unposted;
	bool stopping;
	struct tally tally;
	doca_error_t result;
};

doca_error_t inlet_open(struct inlet *inlet, struct doca_dev *dev, const struct channel *channel);
void inlet_close(struct inlet *inlet);

/* Posts the buffers that have been emptied. The peer's stream is complete when the tally has ended. */
doca_error_t inlet_receive(struct inlet *inlet);

/* ---- our stream ---- */

/* A producer with the buffers that are not on their way. */
struct outlet {
	const struct engines *engines;
	struct doca_comch_producer *producer;
	struct pool pool;
	struct doca_buf *idle[BLOCKS_AT_ONCE];
	size_t num_idle;
	struct doca_task *refused; /* AGAIN: the peer has posted too few buffers */
	uint32_t sent, count;      /* blocks */
	const char *text;
	bool text_sent;
	doca_error_t result;
};

/* The stream has count blocks; the text must live until outlet_close. */
doca_error_t outlet_open(struct outlet *outlet, struct doca_dev *dev, const struct channel *channel, uint32_t count,
			 const char *text);
void outlet_close(struct outlet *outlet);

/* Sends what can be sent now to the peer's consumer of that id. */
doca_error_t outlet_send(struct outlet *outlet, uint32_t consumer_id);

/* Reports whether all of the stream has arrived. */
bool outlet_is_done(const struct outlet *outlet);

#endif
