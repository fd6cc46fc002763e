/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of the headers that need no library. */
#include <doca_types.h>
_Static_assert(doca_event_invalid_handle == -1 && sizeof(doca_event_handle_t) == sizeof(doca_notification_handle_t),
	       "doca_types.h alone has both handles and what is none");

#include <string.h>

#include <doca_buf_inventory.h>
#include <doca_error.h>
#include <doca_pe.h>
#include <doca_version.h>

#include "check.h"

#if defined(WANT_DPU) != defined(DOCA_ARCH_DPU) || defined(WANT_DPU) == defined(DOCA_ARCH_HOST)
#error "-DDOCA_ARCH_DPU makes a program of the DPU, anything else one of the host"
#endif

_Static_assert(DOCA_VERSION_CALC(2, 9, 1) == (2 << 24) + (9 << 16) + 1000, "an official release");
_Static_assert(DOCA_VERSION_CALC_EXACT(2, 9, 1008) == (2 << 24) + (9 << 16) + 1008, "a build");
_Static_assert(DOCA_VERSION_EQ_CURRENT(3, 3, 0), "the kit stands for 3.3.0");
_Static_assert(DOCA_VERSION_LTE_CURRENT(2, 7, 0) && DOCA_VERSION_LTE_CURRENT(3, 3, 0), "and is later than 2.7");
_Static_assert(!DOCA_VERSION_LTE_CURRENT(3, 4, 0), "but earlier than 3.4");
_Static_assert(sizeof(union doca_data) == 8 && sizeof(doca_error_t) == 4, "as in DOCA's binary interface");
_Static_assert(DOCA_TASK_BATCH_MAX_TASKS_NUMBER_128 == 3, "an index, not a number of tasks");
_Static_assert(sizeof(doca_be16_t) == 2 && sizeof(doca_be32_t) == 4 && sizeof(doca_be64_t) == 8, "likewise");

int main(void)
{
	doca_error_t result = DOCA_SUCCESS;
	CHECK(!DOCA_IS_ERROR(result));
	DOCA_ERROR_PROPAGATE(result, DOCA_ERROR_AGAIN);
	DOCA_ERROR_PROPAGATE(result, DOCA_ERROR_FULL);
	CHECK(DOCA_IS_ERROR(result) && result == DOCA_ERROR_AGAIN);
	CHECK(strcmp(doca_error_get_name(result), "DOCA_ERROR_AGAIN") == 0);
	CHECK(strcmp(doca_version(), DOCA_VERSION_STRING) == 0);
	CHECK(strcmp(doca_version_runtime(), DOCA_VERSION_STRING) == 0);
	CHECK(doca_buf_inventory_buf_get_by_addr(NULL, NULL, NULL, 0, NULL) == DOCA_ERROR_INVALID_VALUE);
	CHECK(doca_buf_inventory_buf_get_by_data(NULL, NULL, NULL, 0, NULL) == DOCA_ERROR_INVALID_VALUE);
	return 0;
}
