/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trampoline for each DOCA function, because Go cannot call through a C function pointer: call_NAME(ops, ...) calls
 * ops->NAME(...). An absent optional function must not be called; has_NAME reports whether it is present.
 */
#ifndef DMA_COPY_CALLS_H
#define DMA_COPY_CALLS_H

#include <stdbool.h>

#include "ops.h"

#define UNWRAP(...) __VA_ARGS__
#define HAS(name)                                                 \
	static inline bool has_##name(const struct doca_ops *ops) \
	{                                                         \
		return ops->name != NULL;                         \
	}

#define DOCA_FUNC(lib, need, ret, name, params, args, former)                    \
	static inline ret call_##name(const struct doca_ops *ops, UNWRAP params) \
	{                                                                        \
		return ops->name args;                                           \
	}                                                                        \
	HAS(name)
#define DOCA_PROC(lib, need, name, params, args, former)                          \
	static inline void call_##name(const struct doca_ops *ops, UNWRAP params) \
	{                                                                         \
		ops->name args;                                                   \
	}                                                                         \
	HAS(name)
#define DOCA_FUNC_NOARG(lib, need, ret, name, former)             \
	static inline ret call_##name(const struct doca_ops *ops) \
	{                                                         \
		return ops->name();                               \
	}                                                         \
	HAS(name)
#include "doca_functions.def"
#undef HAS
#undef UNWRAP

#endif
