/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every function of the lists is declared in a header of the kit, with exactly the type that its list gives it, in the
 * newest release. This is checked while it compiles.
 */
#define DMA_COPY_KIT_VERSION 305
#include "doca_argp.h"
#include "doca_buf.h"
#include "doca_buf_array.h"
#include "doca_buf_inventory.h"
#include "doca_comch.h"
#include "doca_comch_consumer.h"
#include "doca_comch_msgq.h"
#include "doca_comch_producer.h"
#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_dma.h"
#include "doca_dpa.h"
#include "doca_dpa_dev.h"
#include "doca_dpa_dev_buf.h"
#include "doca_dpa_dev_comch_msgq.h"
#include "doca_error.h"
#include "doca_log.h"
#include "doca_mmap.h"
#include "doca_pe.h"
#include "doca_sync_event.h"
#include "doca_version.h"

#define AGREES(name, type) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), type), #name " is declared as in the list");

#define DOCA_FUNC(lib, need, ret, name, params, args, former) AGREES(name, __typeof__(ret(*) params))
#define DOCA_PROC(lib, need, name, params, args, former) AGREES(name, __typeof__(void(*) params))
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) AGREES(name, __typeof__(ret(*)(void)))
#include "doca_functions.def"

#define DOCA_FUNC(lib, need, ret, name, params, args, former) AGREES(name, __typeof__(ret(*) params))
#define DOCA_PROC(lib, need, name, params, args, former) AGREES(name, __typeof__(void(*) params))
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) AGREES(name, __typeof__(ret(*)(void)))
#include "doca_dpa_functions.def"

#define DOCA_FUNC(lib, need, ret, name, params, args, former) AGREES(name, __typeof__(ret(*) params))
#define DOCA_PROC(lib, need, name, params, args, former) AGREES(name, __typeof__(void(*) params))
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) AGREES(name, __typeof__(ret(*)(void)))
#include "doca_sync_functions.def"

/* The arguments of these two vary, so they are in no list. */
AGREES(doca_dpa_rpc, __typeof__(doca_error_t(*)(struct doca_dpa *, doca_dpa_func_t *, uint64_t *, ...)))
AGREES(doca_dpa_dev_log, __typeof__(void (*)(doca_dpa_dev_log_level_t, const char *, ...)))
