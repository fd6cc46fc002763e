/* SPDX-License-Identifier: Apache-2.0 */
/* A failed check prints its place and the value, and ends the program. */
#ifndef DMA_COPY_CHECK_H
#define DMA_COPY_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "../device/soft.h"

#define CHECK(condition)                                                                          \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

#define CHECK_RESULT(expected, call) check_result(__FILE__, __LINE__, #call, (call), (expected))
#define CHECK_OK(call) CHECK_RESULT(DOCA_SUCCESS, call)

static inline void check_result(const char *file, int line, const char *call, doca_error_t got, doca_error_t expected)
{
	if (got == expected)
		return;
	fprintf(stderr, "%s:%d: %s is %s, not %s (%s)\n", file, line, call, soft_doca_error_get_name(got),
		soft_doca_error_get_name(expected), soft_last_detail());
	exit(1);
}

#define RUN(test)                         \
	do {                              \
		test();                   \
		printf("ok %s\n", #test); \
		fflush(stdout);           \
	} while (0)

#endif
