/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a function that calls soft_<name>, unless a fault refuses the call; only one with a result can be. */
#ifndef DMA_COPY_SOFT_REFUSABLE_H
#define DMA_COPY_SOFT_REFUSABLE_H

#include <string.h>

#include "fault.h"

#define REFUSABLE(ret) __builtin_types_compatible_p(ret, doca_error_t)

#define REFUSABLE_CALL(ret, name, args)                                                                        \
	{                                                                                                      \
		doca_error_t code = REFUSABLE(ret) ? soft_fault_call(#name) : DOCA_SUCCESS;                    \
		if (code != DOCA_SUCCESS) {                                                                    \
			ret answer;                                                                            \
			memset(&answer, 0, sizeof(answer));                                                    \
			memcpy(&answer, &code, sizeof(answer) < sizeof(code) ? sizeof(answer) : sizeof(code)); \
			return answer;                                                                         \
		}                                                                                              \
		return soft_##name args;                                                                       \
	}

#endif
