/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program whose command line the tests of the parser write: parameters of every kind, and two nested commands. Each
 * of its callbacks appends to a record.
 */
#ifndef DMA_COPY_SDK_ARGP_PROGRAM_H
#define DMA_COPY_SDK_ARGP_PROGRAM_H

#include <doca_argp.h>

extern char record[1024];

void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

typedef void (*mark_fn)(struct doca_argp_param *param);

struct parameter {
	const char *short_name, *long_name;
	enum doca_argp_type type;
	doca_argp_param_cb_t callback;
	mark_fn marks[2];
};

struct doca_argp_param *make_param(const struct parameter *parameter);
struct doca_argp_cmd *make_cmd(const char *name, doca_argp_cmd_cb_t callback);

/* The program's validation callback: 13 is no good number. */
doca_error_t on_validation(void *config);

/* From doca_argp_init on, up to the start. name NULL: from the command line. */
doca_error_t set_up(const char *name);

#endif
