/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the limits, and the bounds within which each can be set. */
#ifndef DMA_COPY_SOFT_LIMIT_H
#define DMA_COPY_SOFT_LIMIT_H

#include "config.h"
#include "doca_abi.h"

/* "name=value,name=value", beside the defaults, or nothing. INVALID_VALUE, with a detail. */
doca_error_t soft_parse_limits(const char *text, struct soft_limits *limits);

/* Decimal digits up to end, and nothing else. */
bool soft_parse_number(const char *text, const char *end, uint64_t *number);

#endif
