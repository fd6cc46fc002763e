/* SPDX-License-Identifier: Apache-2.0 */
/* The functions for a DPA as one table, through which the development kit's libraries call them. */
#ifndef DMA_COPY_DPA_OPS_H
#define DMA_COPY_DPA_OPS_H

#include "doca_dpa_abi.h"

struct doca_dpa_ops {
#define DOCA_FUNC(lib, need, ret, name, params, args, former) ret(*name) params;
#define DOCA_PROC(lib, need, name, params, args, former) void(*name) params;
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) ret (*name)(void);
#include "doca_dpa_functions.def"

	doca_error_t (*doca_dpa_rpc)(struct doca_dpa *dpa, doca_dpa_func_t *func, uint64_t *retval,
				     struct dpa_kit_args *args);
	void (*doca_dpa_dev_log)(doca_dpa_dev_log_level_t log_level, const char *format, struct dpa_kit_args *args);
};

#endif
