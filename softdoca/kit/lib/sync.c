/* SPDX-License-Identifier: Apache-2.0 */
/* The exports of libdoca_common for sync events. They are in the same library as the device, so there is no table. */
#include "doca_sync_event.h"
#include "refusable.h"
#include "soft_sync.h"

#define DOCA_FUNC(lib, need, ret, name, params, args, former) ret name params REFUSABLE_CALL(ret, name, args)
#define DOCA_PROC(lib, need, name, params, args, former) \
	void name params                                 \
	{                                                \
		soft_##name args;                        \
	}
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) ret name(void) REFUSABLE_CALL(ret, name, ())
#include "doca_sync_functions.def"
