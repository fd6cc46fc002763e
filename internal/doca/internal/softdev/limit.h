/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the limits, the bounds within which each can be set, and the presets of the time model. */
#ifndef DMA_COPY_SOFT_LIMIT_H
#define DMA_COPY_SOFT_LIMIT_H

#include "config.h"
#include "doca_abi.h"

/* "name=value,name=value", beside the defaults, or nothing. INVALID_VALUE, with a detail. */
doca_error_t soft_parse_limits(const char *text, struct soft_limits *limits);

/* Decimal digits up to end, and nothing else. */
bool soft_parse_number(const char *text, const char *end, uint64_t *number);

/* ---- presets of the time model: docs/SOFTDEVICE.md says which published numbers each rests on ---- */

/* Sets the limits that the model names[0..len) consists of. INVALID_VALUE, with the detail, if there is none. */
doca_error_t soft_model_choose(struct soft_limits *limits, const char *name, size_t len);

/* Tasks take the time that schedule.h gives them. */
bool soft_model_on(const struct soft_limits *limits);

/* The model in one line; empty without one. */
void soft_model_describe(const struct soft_limits *limits, char *text, size_t size);

#endif
