/* SPDX-License-Identifier: Apache-2.0 */
/* The parser and the logger belong to the process and cannot be undone: each case runs in a process of its own. */
#ifndef DMA_COPY_SDK_CAPTURE_H
#define DMA_COPY_SDK_CAPTURE_H

#include <stddef.h>

struct capture {
	int exit_code;
	char out[8192], err[8192]; /* what it wrote, as strings */
};

/* Runs what(argument) in a child, which exits with what it returns. */
void capture_run(int (*what)(const void *argument), const void *argument, struct capture *capture);

/* Reports how many cases failed. Returns the exit code for main. */
int report(const char *what, size_t count, size_t failed);

/* Cases that only have to return 0. */
struct capture_case {
	const char *name;
	int (*run)(const void *argument); /* of NULL */
};

/* Runs each, reports failures, and returns their number. */
size_t check_cases(const struct capture_case *cases, size_t count);

#endif
