/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_STREAM_RECEIVE_H
#define EXAMPLES_STREAM_RECEIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <doca_comch.h>
#include <doca_dev.h>

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
	struct doca_comch_server *server;
	struct doca_comch_connection *peer; /* NULL: not connected */
	bool had_peer;
	struct tally tally;
};

/* The control channel: waits for one sender, receives its stream, and waits until it has hung up. */
doca_error_t stream_serve(struct receiver *receiver, struct doca_dev_rep *rep);

/* The fast path: receives from the peer until its stream ends. NOT_CONNECTED: it hung up before. */
doca_error_t stream_consume(struct receiver *receiver);

#endif
