/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a Comch control channel: the server on the DPU, which takes one client and sends others away, or the
 * client on the host.
 */
#ifndef EXAMPLES_CHANNEL_H
#define EXAMPLES_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <doca_comch.h>
#include <doca_dev.h>

#include "engines.h"

/* Callbacks, called by engines_progress. NULL: not needed. */
struct listener {
	void *user; /* the first argument of each */
	void (*message)(void *user, const uint8_t *message, uint32_t len);
	void (*consumer)(void *user, uint32_t id, bool there); /* the peer's, for the fast path; it came, or went */
};

struct channel {
	const struct engines *engines;
	struct listener listener;
	struct doca_dev_rep *rep;
	struct doca_comch_server *server; /* one of the two */
	struct doca_comch_client *client;
	struct doca_comch_connection *peer; /* NULL: not connected */
	bool had_peer;
	doca_error_t result; /* of the first message that could not be sent */
};

/*
 * Returns when the ends are connected; engines and listener must be set. dev determines which end this is: a device of
 * the DPU is a server and waits for its client; one of the host is a client and fails with NOT_CONNECTED without a
 * server. rep_pci is the address of the host's function, for the server.
 */
doca_error_t channel_open(struct channel *channel, struct doca_dev *dev, const char *rep_pci, const char *service);

/* "DPU" or "host". */
const char *channel_side(const struct channel *channel);

/* Hangs up. No consumer or producer may be left on the connection. */
void channel_close(struct channel *channel);

/* Reports whether the connection is up. */
bool channel_is_connected(const struct channel *channel);

/* Copies the message, and sends it. */
doca_error_t channel_send(struct channel *channel, const void *message, size_t len);

/* Whether all that was sent has left. */
bool channel_has_sent(const struct channel *channel);

#endif
