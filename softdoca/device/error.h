/* SPDX-License-Identifier: Apache-2.0 */
/* Why the last call failed, and the log. soft.h has the functions by which callers read the detail. */
#ifndef DMA_COPY_SOFT_ERROR_H
#define DMA_COPY_SOFT_ERROR_H

#include "doca_abi.h"

/* Sets what soft_last_detail returns, and logs it at DOCA_LOG_LEVEL_DEBUG. Any thread may call. */
void soft_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define SOFT_DETAIL_SIZE 512

/* Sets it to a copy of an earlier one, and logs nothing. */
void soft_restore_detail(const char *text);

/* Writes one line to the log, at DOCA_LOG_LEVEL_DEBUG or DOCA_LOG_LEVEL_WARNING. Any thread may call. */
void soft_log(uint32_t level, const char *message);

#endif
