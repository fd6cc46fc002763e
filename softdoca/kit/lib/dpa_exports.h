/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As exports.h, for the functions for a DPA: a library includes this after it, with EXPORT_DPA defined too.
 */
#include "dpa_ops.h"

__attribute__((visibility("default"))) const struct doca_dpa_ops *priv_doca_dpa_ops(void);

#define DEFINE_DPA_FUNC(ret, name, params, args)       \
	ret name params                                \
	{                                              \
		return priv_doca_dpa_ops()->name args; \
	}
#define DEFINE_DPA_PROC(name, params, args)     \
	void name params                        \
	{                                       \
		priv_doca_dpa_ops()->name args; \
	}

#define DOCA_FUNC(lib, need, ret, name, params, args, former) EXPORT_##lib(DEFINE_DPA_FUNC(ret, name, params, args))
#define DOCA_PROC(lib, need, name, params, args, former) EXPORT_##lib(DEFINE_DPA_PROC(name, params, args))
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) EXPORT_##lib(DEFINE_DPA_FUNC(ret, name, (void), ()))
#include "doca_dpa_functions.def"
