/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Presets of the time model. docs/SOFTDEVICE.md says which published numbers each rests on, and what is assumed.
 */
#ifndef DMA_COPY_SOFT_MODEL_H
#define DMA_COPY_SOFT_MODEL_H

#include "config.h"
#include "doca_abi.h"

/* Sets the limits that the model names[0..len) consists of. INVALID_VALUE, with the detail, if there is none. */
doca_error_t soft_model_choose(struct soft_limits *limits, const char *name, size_t len);

/* Tasks take the time that schedule.h gives them. */
bool soft_model_on(const struct soft_limits *limits);

/* The model in one line; empty without one. */
void soft_model_describe(const struct soft_limits *limits, char *text, size_t size);

#endif
