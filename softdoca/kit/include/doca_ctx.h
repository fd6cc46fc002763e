/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: what DMA engines, Comch servers, clients, consumers and producers have in common.
 *
 *   IDLE -> start -> RUNNING, or STARTING first, which progress turns into RUNNING, or back into IDLE where it failed
 *   RUNNING -> stop, or a failure -> STOPPING -> IDLE, by progress, once all tasks are freed
 *
 * Configure while IDLE; allocate and submit while RUNNING.
 */
#ifndef DOCA_CTX_H_
#define DOCA_CTX_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_compat.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* SUCCESS: RUNNING now. IN_PROGRESS: STARTING. NOT_CONNECTED: no progress engine. */
DOCA_STABLE
doca_error_t doca_ctx_start(struct doca_ctx *ctx);

/*
 * SUCCESS: IDLE now, or already. IN_PROGRESS: STOPPING, and submitted tasks will come back through their error
 * callback.
 */
DOCA_STABLE
doca_error_t doca_ctx_stop(struct doca_ctx *ctx);

/* Submitted and not yet completed. */
DOCA_STABLE
doca_error_t doca_ctx_get_num_inflight_tasks(const struct doca_ctx *ctx, size_t *num_inflight_tasks);

/* The last argument of every task callback and the first of the state callback. */
DOCA_STABLE
doca_error_t doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data);

DOCA_STABLE
doca_error_t doca_ctx_get_user_data(const struct doca_ctx *ctx, union doca_data *user_data);

/* The context is already in its next state when it is called. */
DOCA_STABLE
doca_error_t doca_ctx_set_state_changed_cb(struct doca_ctx *ctx, doca_ctx_state_changed_callback_t cb);

DOCA_STABLE
doca_error_t doca_ctx_get_state(const struct doca_ctx *ctx, enum doca_ctx_states *state);

/* Pushes what was submitted without DOCA_TASK_SUBMIT_FLAG_FLUSH. */
DOCA_EXPERIMENTAL
void doca_ctx_flush_tasks(struct doca_ctx *ctx);

DOCA_EXPERIMENTAL
doca_error_t doca_ctx_set_completion_vector(struct doca_ctx *ctx, uint32_t comp_vector);

DOCA_EXPERIMENTAL
doca_error_t doca_ctx_cap_get_num_completion_vectors(const struct doca_devinfo *devinfo, uint32_t *num_comp_vectors);

/* NOT_SUPPORTED here: there is no GPU. */
DOCA_EXPERIMENTAL
doca_error_t doca_ctx_set_datapath_on_gpu(struct doca_ctx *ctx, struct doca_gpu *gpu_dev);

/*
 * For the consumers or producers of a message queue (doca_comch_msgq.h) that are on its DPA. Such a context needs no
 * progress engine. NOT_SUPPORTED for other contexts.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_ctx_set_datapath_on_dpa(struct doca_ctx *ctx, struct doca_dpa *dpa_dev);

#ifdef __cplusplus
}
#endif

#endif
