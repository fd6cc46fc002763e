/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of command lines and JSON files: a table in which each line is a start of the program in
 * argp_program.h.
 */
#ifndef DMA_COPY_SDK_ARGP_LINES_H
#define DMA_COPY_SDK_ARGP_LINES_H

#include <stddef.h>

#include <doca_error.h>

struct line {
	const char *args; /* separated by spaces; "JSON" stands for the file */
	const char *json; /* NULL: no such file */
	doca_error_t result;
	const char *record; /* "": no callback was called */
	const char *err;    /* contained in stderr; NULL: nothing there */
};

/* Reports which lines failed, and how. Returns the exit code for main. */
int check_lines(const char *what, const struct line *lines, size_t count);

#endif
