/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_STREAM_SEND_H
#define EXAMPLES_STREAM_SEND_H

#include <stdbool.h>
#include <stdint.h>

#include <doca_dev.h>

#include "channel.h"
#include "engines.h"

struct sender {
	struct engines engines;
	struct doca_dev *dev;
	struct channel channel;
	bool has_consumer; /* the peer's, from its arrival until it expires */
	uint32_t consumer_id;
};

/* The fast path: sends count blocks and the end of the stream to the consumer, and waits until all have arrived. */
doca_error_t stream_produce(struct sender *sender, uint32_t count);

#endif
