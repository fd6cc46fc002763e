/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress engine and its notification handle, in the order in which DOCA wants them used:
 * request, progress once more, wait on the descriptor, clear, progress.
 *
 * Threads: one at a time, for the engine and everything that is connected to it.
 */
#ifndef DMA_COPY_PROGRESS_H
#define DMA_COPY_PROGRESS_H

#include "ops.h"

struct progress {
	const struct doca_ops *ops;
	struct doca_pe *pe;
	int fd;
};

/*
 * Names the DOCA function that answered status, for the error that the user sees: `op` is only set on failure.
 */
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

/*
 * A doca_ctx_states, or PROGRESS_STATE_UNKNOWN where DOCA does not tell: neither idle nor running nor anything else. No
 * context, NULL, is IDLE: it is destroyed, and what is left only has to be freed.
 */
#define PROGRESS_STATE_UNKNOWN 4U
uint32_t progress_state(const struct progress *p, const struct doca_ctx *ctx);

/* Everything connected to the engine must have been destroyed. */
struct outcome progress_close(struct progress *p);

#endif
