/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "quirk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "error.h"
#include "shown.h"

static const char *const names[SOFT_QUIRKS] = {
	[SOFT_DISCONNECT_EVENT] = "disconnect_event",
	[SOFT_DISCONNECT_AGAIN] = "disconnect_again",
	[SOFT_SELECTIVE_SWALLOW] = "selective_swallow",
	[SOFT_DEAD_PEER_UNNOTICED] = "dead_peer_unnoticed",
	[SOFT_DEAD_CLIENTS_COUNT] = "dead_clients_count",
	[SOFT_LARGE_MESSAGES] = "large_messages",
	[SOFT_LATE_COPY] = "late_copy",
	[SOFT_OPTIMIZED_REPORTS_STALL] = "optimized_reports_stall",
	[SOFT_IDLE_ALLOC_CRASH] = "idle_alloc_crash",
	[SOFT_STOP_IN_SEND_ERROR_CRASH] = "stop_in_send_error_crash",
	[SOFT_COMCH_NO_NOTIFICATION] = "comch_no_notification",
	[SOFT_START_ABORTS] = "start_aborts",
	[SOFT_UNTOLD_CLIENTS] = "untold_clients",
	[SOFT_LATE_DISCONNECT_CRASH] = "late_disconnect_crash",
	[SOFT_NO_HOST_EXPORT] = "no_host_export",
	[SOFT_NO_DPU_EXPORT] = "no_dpu_export",
};

static bool is(const char *name, const char *item, size_t len)
{
	return strlen(name) == len && memcmp(name, item, len) == 0;
}

static uint32_t find(const char *item, size_t len)
{
	if (is("all", item, len))
		return (1U << SOFT_NO_HOST_EXPORT) - 1;
	for (unsigned i = 0; i < SOFT_QUIRKS; i++) {
		if (is(names[i], item, len))
			return 1U << i;
	}
	return 0;
}

bool soft_has_quirk(enum soft_quirk quirk)
{
	const struct soft_config *now = soft_config();
	return now != NULL && (now->quirks & 1U << quirk) != 0;
}

doca_error_t soft_parse_quirks(const char *text, uint32_t *quirks)
{
	*quirks = 0;
	if (text == NULL || *text == '\0')
		return DOCA_SUCCESS;
	for (const char *item = text;; item++) {
		const char *end = strchrnul(item, ',');
		uint32_t found = find(item, (size_t)(end - item));
		if (found == 0) {
			soft_detail("quirk \"%s\" of the software device is not known",
				    shown(item, (size_t)(end - item)).text);
			return DOCA_ERROR_INVALID_VALUE;
		}
		*quirks |= found;
		if (*end == '\0')
			return DOCA_SUCCESS;
		item = end;
	}
}

void soft_crash(const char *reason)
{
	fprintf(stderr, "software device: %s; DOCA's library crashes here\n", reason);
	abort();
}
