/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress engine with one context and its notification handle, used in the order that DOCA requires: request,
 * progress once more, wait on the descriptor, clear, progress.
 *
 * Threads: one at a time, for the engine and everything that is connected to it.
 */
#ifndef DMA_COPY_PROGRESS_H
#define DMA_COPY_PROGRESS_H

#include "ops.h"

struct progress {
	const struct doca_ops *ops;
	struct doca_pe *pe;
	struct doca_ctx *ctx; /* the context that is connected to it; NULL once destroyed */
	int fd;
};

/* The status of a DOCA function and, on failure, its name in op, for the error that the user sees. */
struct outcome {
	doca_error_t status;
	const char *op;
};

#define OUTCOME_SUCCESS ((struct outcome){DOCA_SUCCESS, NULL})

/* Calls ops->function and returns from the calling function, which must return struct outcome, unless it succeeds. */
#define TRY(ops, function, ...)                                         \
	do {                                                            \
		doca_error_t try_status = (ops)->function(__VA_ARGS__); \
		if (try_status != DOCA_SUCCESS)                         \
			return (struct outcome){try_status, #function}; \
	} while (0)

struct outcome progress_open(struct progress *p, const struct doca_ops *ops);
struct outcome progress_arm(const struct progress *p);
struct outcome progress_clear(const struct progress *p);

/* Connects a configured context, whose callbacks receive user_data. */
struct outcome progress_connect(const struct progress *p, void *user_data);

/* Returns a doca_ctx_states; PROGRESS_STATE_UNKNOWN if DOCA does not tell. A destroyed context is IDLE. */
#define PROGRESS_STATE_UNKNOWN 4U
uint32_t progress_state(const struct progress *p);

/* Requests the context to stop. SUCCESS: idle. IN_PROGRESS: poll until progress_state returns IDLE. */
struct outcome progress_stop(const struct progress *p);

/* Releases a buffer, or the list that it is the first of; NULL is none. */
static inline void drop_buffer(const struct doca_ops *ops, const struct doca_buf *buf)
{
	if (buf != NULL)
		ops->doca_buf_dec_refcount((struct doca_buf *)buf, NULL);
}

/* Everything that was connected to the engine must be destroyed before. */
struct outcome progress_close(struct progress *p);

#endif
