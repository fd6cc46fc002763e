/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_STREAM_RECEIVE_H
#define EXAMPLES_STREAM_RECEIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <doca_dev.h>

#include "channel.h"
#include "engines.h"

/* What came. */
struct tally {
	uint32_t blocks;
	uint64_t bytes;
	uint32_t wrong; /* blocks out of order or damaged */
	bool ended;
	uint32_t announced; /* by the end: how many blocks there were */
};

struct receiver {
	struct engines engines;
	struct doca_dev *dev;
	struct channel channel;
	struct tally tally;
};

/* The fast path: receives from the peer until its stream ends. NOT_CONNECTED: it hung up before. */
doca_error_t stream_consume(struct receiver *receiver);

#endif
