/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal kind of context whose behaviour the test controls. */
#ifndef DMA_COPY_CTEST_FAKE_CTX_H
#define DMA_COPY_CTEST_FAKE_CTX_H

#include "../device/ctx.h"
#include "fixture.h"

struct fake_ctx {
	struct doca_ctx ctx; /* first */
	doca_error_t start_result, submit_result;
	bool busy;      /* not quiet */
	bool has_event; /* progress delivers one, with on_event */
	void (*on_event)(struct fake_ctx *fake);
	uint64_t ready_at;
	unsigned stoppings, idles, events, releases, endings;
	void (*on_ended)(struct fake_ctx *fake, struct doca_task *task);
	unsigned changes;
	enum doca_ctx_states prev, next;
	void (*on_change)(struct fake_ctx *fake);
	struct doca_task tasks[2];
};

/* Its device and engine. */
extern struct fixture fake_ctx_fixture;

/* IDLE, and connected to pe unless that is NULL. */
struct fake_ctx *fake_ctx_create(struct doca_pe *pe);
void fake_ctx_destroy(struct fake_ctx *fake);

/* Its state change callback. */
void fake_ctx_changed(const union doca_data user_data, struct doca_ctx *ctx, enum doca_ctx_states prev,
		      enum doca_ctx_states next);

struct doca_pe *pe_create(void);

/* Checks that the last change was from prev to next, and that the context is still there. */
void expect_change(const struct fake_ctx *fake, enum doca_ctx_states prev, enum doca_ctx_states next);

/* Brings a context to the given state, by the shortest way. */
struct fake_ctx *fake_ctx_in(struct doca_pe *pe, enum doca_ctx_states state);

void bring_to_idle(struct doca_pe *pe, struct fake_ctx *fake);

#endif
