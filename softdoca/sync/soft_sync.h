/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of doca_sync_functions.def exists as soft_<name>. */
#ifndef DMA_COPY_SOFT_SYNC_H
#define DMA_COPY_SOFT_SYNC_H

#include "soft.h"

#define DOCA_FUNC(lib, need, ret, name, params, args, former) ret soft_##name params;
#define DOCA_PROC(lib, need, name, params, args, former) void soft_##name params;
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) ret soft_##name(void);
#include "doca_sync_functions.def"

#endif
