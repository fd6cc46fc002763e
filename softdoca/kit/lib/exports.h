/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the three libraries come to one device: libdoca_common contains it, and hands its table of functions to the other
 * two. All must be of one build, as DOCA's own must.
 *
 * A library includes this last and once, with EXPORT_COMMON, EXPORT_DMA and EXPORT_COMCH defined: as their argument, a
 * function's definition, for the library's own, as nothing for the other two.
 */
#include <stdbool.h>

#include "ops.h"

__attribute__((visibility("default"))) const struct doca_ops *priv_doca_ops(void);

/* As soft_describe_model. For dma-copy, which reports the time model of the device behind these libraries. */
__attribute__((visibility("default"))) bool priv_doca_describe_model(char *text, size_t size);

#define DEFINE_FUNC(ret, name, params, args)       \
	ret name params                            \
	{                                          \
		return priv_doca_ops()->name args; \
	}
#define DEFINE_PROC(name, params, args)     \
	void name params                    \
	{                                   \
		priv_doca_ops()->name args; \
	}

#define DOCA_FUNC(lib, need, ret, name, params, args, former) EXPORT_##lib(DEFINE_FUNC(ret, name, params, args))
#define DOCA_PROC(lib, need, name, params, args, former) EXPORT_##lib(DEFINE_PROC(name, params, args))
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) EXPORT_##lib(DEFINE_FUNC(ret, name, (void), ()))
#include "doca_functions.def"
