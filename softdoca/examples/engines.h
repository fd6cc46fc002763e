/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress engines of one end of a connection. A program with several threads would use the data engine on its own
 * thread; in a single thread, both are progressed in turn.
 */
#ifndef EXAMPLES_ENGINES_H
#define EXAMPLES_ENGINES_H

#include <doca_ctx.h>
#include <doca_pe.h>

struct engines {
	struct doca_pe *control; /* the server's or client's */
	struct doca_pe *data;    /* for consumers, producers and events; NULL: there is none */
};

doca_error_t engines_create(struct engines *engines);
void engines_destroy(struct engines *engines);

/* Both, because consumers are announced through the control channel. */
void engines_progress(const struct engines *engines);

enum doca_ctx_states engines_state_of(const struct doca_ctx *ctx);

/* Starts the context and waits until it is RUNNING, however it starts. NOT_CONNECTED: it fell back to IDLE. */
doca_error_t engines_start(const struct engines *engines, struct doca_ctx *ctx);

/* Stops the context and waits until it is IDLE. Its tasks must be free by then, or be freed by their callbacks. */
void engines_stop(const struct engines *engines, struct doca_ctx *ctx);

#endif
