/* SPDX-License-Identifier: Apache-2.0 */
#include "soft_dpa.h"

static const struct doca_dpa_ops dpa_table = {
#define DOCA_FUNC(lib, need, ret, name, params, args, former) .name = soft_##name,
#define DOCA_PROC(lib, need, name, params, args, former) .name = soft_##name,
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) .name = soft_##name,
#include "doca_dpa_functions.def"
	.doca_dpa_rpc = soft_doca_dpa_rpc,
	.doca_dpa_dev_log = soft_doca_dpa_dev_log,
};

const struct doca_dpa_ops *soft_dpa_ops(void)
{
	return &dpa_table;
}
