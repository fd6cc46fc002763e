/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits' names and ranges, and the presets of the time model. softdoca/docs/SOFTDEVICE.md says which published
 * numbers each preset rests on, and what is assumed.
 */
#ifndef DMA_COPY_SOFT_LIMIT_H
#define DMA_COPY_SOFT_LIMIT_H

#include "config.h"
#include "doca_abi.h"

/* Sets *limits to the defaults with the values of "name=value,name=value". INVALID_VALUE, with a detail. */
doca_error_t soft_parse_limits(const char *text, struct soft_limits *limits);

/* Parses the decimal digits in [text, end). False for anything else. */
bool soft_parse_number(const char *text, const char *end, uint64_t *number);

/* Reports whether tasks take the time that schedule.h computes. */
bool soft_model_on(const struct soft_limits *limits);

/* Writes the time model in one line; empty without one. */
void soft_model_describe(const struct soft_limits *limits, char *text, size_t size);

#endif
