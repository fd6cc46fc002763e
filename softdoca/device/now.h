/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DMA_COPY_SOFT_NOW_H
#define DMA_COPY_SOFT_NOW_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds. Any thread may call. */
static inline uint64_t soft_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

#endif
