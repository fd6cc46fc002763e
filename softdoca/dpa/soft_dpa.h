/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of doca_dpa_functions.def exists as soft_<name>, and so do the two with a variable argument list. */
#ifndef DMA_COPY_SOFT_DPA_FUNCTIONS_H
#define DMA_COPY_SOFT_DPA_FUNCTIONS_H

#include "dpa_ops.h"
#include "soft.h"

/* Returns them as a table. Any thread may call. */
const struct doca_dpa_ops *soft_dpa_ops(void);

#define DOCA_FUNC(lib, need, ret, name, params, args, former) ret soft_##name params;
#define DOCA_PROC(lib, need, name, params, args, former) void soft_##name params;
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) ret soft_##name(void);
#include "doca_dpa_functions.def"

doca_error_t soft_doca_dpa_rpc(struct doca_dpa *dpa, doca_dpa_func_t *func, uint64_t *retval,
			       struct dpa_kit_args *args);
void soft_doca_dpa_dev_log(doca_dpa_dev_log_level_t log_level, const char *format, struct dpa_kit_args *args)
	__attribute__((format(printf, 2, 0)));

#endif
