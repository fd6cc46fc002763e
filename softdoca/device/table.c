/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the device as one table. If a fault refuses calls, it is a table whose functions call
 * soft_fault_call first; only functions with a result can be refused.
 */
#include "refusable.h"
#include "soft.h"

#define DOCA_FUNC(lib, need, ret, name, params, args, former) \
	static ret checked_##name params REFUSABLE_CALL(ret, name, args)
#define DOCA_PROC(lib, need, name, params, args, former)
#define DOCA_FUNC_NOARG(lib, need, ret, name, former)
#include "doca_functions.def"

static const struct doca_ops checked_table = {
#define DOCA_FUNC(lib, need, ret, name, params, args, former) .name = checked_##name,
#define DOCA_PROC(lib, need, name, params, args, former) .name = soft_##name,
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) .name = soft_##name,
#include "doca_functions.def"
};

static const struct doca_ops soft_table = {
#define DOCA_FUNC(lib, need, ret, name, params, args, former) .name = soft_##name,
#define DOCA_PROC(lib, need, name, params, args, former) .name = soft_##name,
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) .name = soft_##name,
#include "doca_functions.def"
};

const struct doca_ops *soft_ops(void)
{
	return soft_fault_in_calls() ? &checked_table : &soft_table;
}
