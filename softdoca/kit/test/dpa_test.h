/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DMA_COPY_SDK_DPA_TEST_H
#define DMA_COPY_SDK_DPA_TEST_H

#include <stdint.h>

/* Larger than what a call passes in registers. */
struct parts {
	uint64_t a, b, c;
};

#endif
