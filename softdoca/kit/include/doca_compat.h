/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks of declarations. Experimental functions may change in DOCA: their use warns, unless the program is compiled
 * with -DDOCA_ALLOW_EXPERIMENTAL_API; likewise -DDOCA_ALLOW_DEPRECATED_API.
 */
#ifndef DOCA_COMPAT_H_
#define DOCA_COMPAT_H_

#include "doca_config.h"

#define DOCA_STABLE __attribute__((visibility("default"), used))

#ifdef DOCA_ALLOW_EXPERIMENTAL_API
#define DOCA_EXPERIMENTAL __attribute__((visibility("default"), used, section(".text.experimental")))
#else
#define DOCA_EXPERIMENTAL                                                          \
	__attribute__((visibility("default"), used, section(".text.experimental"), \
		       deprecated("experimental in DOCA: compile with -DDOCA_ALLOW_EXPERIMENTAL_API")))
#endif

#ifdef DOCA_ALLOW_DEPRECATED_API
#define DOCA_DEPRECATED __attribute__((visibility("default"), used))
#else
#define DOCA_DEPRECATED                             \
	__attribute__((visibility("default"), used, \
		       deprecated("deprecated in DOCA: compile with -DDOCA_ALLOW_DEPRECATED_API")))
#endif

#endif
