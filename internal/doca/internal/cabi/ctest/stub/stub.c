/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries in the place of DOCA's, for the loader to find. STUB_COMMON, STUB_DMA or STUB_COMCH says which one this is;
 * STUB_LACKS_REQUIRED and STUB_LACKS_OPTIONAL leave a function out, and STUB_FORMER exports the names of DOCA 2.7.
 */
#include <string.h>

#include "../../doca_abi.h"

#ifdef STUB_COMMON
#define IN_COMMON(code) code
#else
#define IN_COMMON(code)
#endif
#ifdef STUB_DMA
#define IN_DMA(code) code
#else
#define IN_DMA(code)
#endif
#ifdef STUB_COMCH
#define IN_COMCH(code) code
#else
#define IN_COMCH(code)
#endif

#define doca_version_runtime stub_version
#ifdef STUB_LACKS_REQUIRED
#define doca_dma_destroy stub_dma_destroy
#endif
#ifdef STUB_LACKS_OPTIONAL
#define doca_pe_set_event_mode stub_set_event_mode
#endif
#ifdef STUB_FORMER
#define doca_comch_server_get_device_rep doca_comch_server_get_device_repr
#define doca_comch_server_event_connection_status_changed_register doca_comch_server_event_connection_register
#endif

#define DOCA_FUNC(lib, need, ret, name, params, args, former) \
	IN_##lib(ret name params {                            \
		ret nothing;                                  \
		memset(&nothing, 0, sizeof(nothing));         \
		return nothing;                               \
	})
#define DOCA_PROC(lib, need, name, params, args, former) IN_##lib(void name params{})
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) IN_##lib(ret name(void) { return ""; })
#include "../../doca_functions.def"

#undef doca_version_runtime
#ifdef STUB_COMMON
const char *doca_version_runtime(void)
{
	return "2.10.0087";
}
#endif
