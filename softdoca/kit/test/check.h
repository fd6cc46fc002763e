/* SPDX-License-Identifier: Apache-2.0 */
/* A failed check prints its place and the value, and ends the program: for a case of capture.h, the child. */
#ifndef DMA_COPY_SDK_CHECK_H
#define DMA_COPY_SDK_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <doca_error.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define CHECK(condition)                                                                          \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

#define EXPECT(expected, call)                                                                                      \
	do {                                                                                                        \
		doca_error_t got_ = (call);                                                                         \
		if (got_ != (expected)) {                                                                           \
			fprintf(stderr, "%s:%d: %s is %s\n", __FILE__, __LINE__, #call, doca_error_get_name(got_)); \
			exit(1);                                                                                    \
		}                                                                                                   \
	} while (0)

#endif
