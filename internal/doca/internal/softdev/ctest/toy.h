/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal kind of context whose behaviour the test controls. */
#ifndef DMA_COPY_TOY_H
#define DMA_COPY_TOY_H

#include "../ctx.h"
#include "fixture.h"

struct toy {
	struct doca_ctx ctx; /* first */
	doca_error_t start_result, submit_result;
	bool busy;      /* not quiet */
	bool has_event; /* progress delivers one, with on_event */
	void (*on_event)(struct toy *toy);
	uint64_t ready_at;
	unsigned stoppings, idles, events, releases, endings;
	void (*on_ended)(struct toy *toy, struct doca_task *task);
	unsigned changes;
	enum doca_ctx_states prev, next;
	void (*on_change)(struct toy *toy);
	struct doca_task tasks[2];
};

/* Its device and engine. */
extern struct fixture toy_fixture;

/* IDLE, and connected to pe unless that is NULL. */
struct toy *toy_create(struct doca_pe *pe);
void toy_destroy(struct toy *toy);

/* Its state change callback. */
void toy_changed(const union doca_data user_data, struct doca_ctx *ctx, enum doca_ctx_states prev,
		 enum doca_ctx_states next);

struct doca_pe *pe_create(void);

/* Checks that the last change was from prev to next, and that the context is still there. */
void expect_change(const struct toy *toy, enum doca_ctx_states prev, enum doca_ctx_states next);

/* Brings a context to the given state, by the shortest way. */
struct toy *toy_in(struct doca_pe *pe, enum doca_ctx_states state);

void bring_to_idle(struct doca_pe *pe, struct toy *toy);

#endif
