/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include "fault.h"

static const struct doca_ops soft_table = {
#define DOCA_FUNC(lib, need, ret, name, params, args, former) .name = soft_##name,
#define DOCA_PROC(lib, need, name, params, args, former) .name = soft_##name,
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) .name = soft_##name,
#include "doca_functions.def"
};

const struct doca_ops *soft_ops(void)
{
	return soft_fault_in_calls() ? soft_refusing_ops() : &soft_table;
}
