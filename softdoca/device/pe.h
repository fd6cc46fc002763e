/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a progress engine for contexts and tasks. */
#ifndef DMA_COPY_SOFT_PE_H
#define DMA_COPY_SOFT_PE_H

#include <stdbool.h>

#include "doca_abi.h"

/* Adds fd to what wakes the engine, or removes it. OPERATING_SYSTEM. */
doca_error_t soft_pe_watch(struct doca_pe *pe, int fd, uint32_t epoll_events);
void soft_pe_unwatch(struct doca_pe *pe, int fd);

/* There is work that no descriptor announces, for example a submitted task: wakes an armed engine. */
void soft_pe_notify(struct doca_pe *pe);

/*
 * Called after a progress, and after a submission that returned AGAIN (moved is false). Polling in vain yields the CPU.
 */
void soft_pe_polled(struct doca_pe *pe, bool moved);

/* Removes the context from its engine, if it has one. */
void soft_pe_disconnect(struct doca_ctx *ctx);

/* A context has become RUNNING: progress returns, so that the program sees it before its first events. */
void soft_pe_started(struct doca_pe *pe);

/* Returns the number of calls of doca_pe_progress, up to and with the one that runs. */
uint64_t soft_pe_rounds(const struct doca_pe *pe);

/*
 * Reports whether doca_pe_progress runs, that is, inside every callback except callbacks of a synchronous start or
 * stop.
 */
bool soft_pe_progressing(const struct doca_pe *pe);

#endif
