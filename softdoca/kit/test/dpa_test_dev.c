/* SPDX-License-Identifier: Apache-2.0 */
/* The code of dpa_test.c for the DPA, compiled as strict C11 and without experimental functions. */
#include <doca_dpa_dev.h>
#include <dpaintrin.h>

#include "dpa_test.h"

__dpa_rpc__ uint64_t log_all(uint64_t number);
__dpa_rpc__ uint64_t add_parts(struct parts parts, uint8_t more);
__dpa_rpc__ uint64_t nothing(void);
__dpa_global__ void kernel(uint64_t arg);

#ifndef __DPA__
#include <dpa_kit.h>
DPA_KIT_APP(dpa_test_app)
DPA_KIT_RPC(log_all, uint64_t)
DPA_KIT_RPC(add_parts, struct parts, uint8_t)
DPA_KIT_RPC(nothing)
DPA_KIT_KERNEL(kernel)
#endif

__dpa_rpc__ uint64_t log_all(uint64_t number)
{
	DOCA_DPA_DEV_LOG_ERR("error %u\n", (unsigned)number);
	DOCA_DPA_DEV_LOG_WARN("warning %u\n", (unsigned)number);
	DOCA_DPA_DEV_LOG_INFO("%s\n", "information");
	DOCA_DPA_DEV_LOG_DBG("detail\n");
	return 0;
}

__dpa_rpc__ uint64_t add_parts(struct parts parts, uint8_t more)
{
	return parts.a + parts.b + parts.c + more;
}

__dpa_rpc__ uint64_t nothing(void)
{
	uint64_t before = __dpa_thread_cycles();
	__dpa_thread_memory_fence(__DPA_W, __DPA_R);
	__dpa_compiler_barrier();
	return __dpa_thread_cycles() >= before && __dpa_thread_time() > 0;
}

__dpa_global__ void kernel(uint64_t arg)
{
	*(uint64_t *)arg = doca_dpa_dev_thread_get_local_storage();
	doca_dpa_dev_thread_finish();
}
