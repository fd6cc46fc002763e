/* SPDX-License-Identifier: Apache-2.0 */
/* What contexts, progress engines and tasks tell each other behind core.h. */
#ifndef DMA_COPY_SOFT_CTX_H
#define DMA_COPY_SOFT_CTX_H

#include "core.h"

/* Moves the context by at most one event. When it returns true a callback may have destroyed the context. */
bool soft_ctx_progress(struct doca_ctx *ctx);

/* As ready_at of the class, but also knows of a stop that only waits for its last progress. */
uint64_t soft_ctx_ready_at(const struct doca_ctx *ctx);

/* Takes the context off its engine, if it has one. */
void soft_pe_disconnect(struct doca_ctx *ctx);

/* True inside doca_pe_progress, that is, inside every callback but those of a synchronous start or stop. */
bool soft_pe_progressing(const struct doca_pe *pe);

#endif
