/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quirks: behaviour of hardware and DOCA's libraries that differs from DOCA's documentation, as users report it. The
 * device follows the documentation unless a quirk is configured.
 */
#ifndef DMA_COPY_SOFT_QUIRK_H
#define DMA_COPY_SOFT_QUIRK_H

#include <stdbool.h>
#include <stdint.h>

#include "doca_abi.h"

/* The comments are the effects in docs/reference/settings.md. */
enum soft_quirk {
	SOFT_DISCONNECT_EVENT,    /* doca_comch_server_disconnect raises a disconnection event on its own side, too */
	SOFT_DISCONNECT_AGAIN,    /* the first doca_comch_server_disconnect of a connection returns AGAIN */
	SOFT_SELECTIVE_SWALLOW,   /* in PROGRESS_SELECTIVE, the default, nothing is delivered from request to clear */
	SOFT_DEAD_PEER_UNNOTICED, /* a client does not notice that its server died: sends stay in flight */
	SOFT_DEAD_CLIENTS_COUNT,  /* clients that died stay counted against max_clients */
	SOFT_LARGE_MESSAGES,      /* messages above the limit are accepted and then fail with IO_FAILED */
	SOFT_LATE_COPY,           /* progress reads and sends a message, not the allocation of its task */
	SOFT_OPTIMIZED_REPORTS_STALL,  /* completions with OPTIMIZE_REPORTS wait for a later task without it */
	SOFT_IDLE_ALLOC_CRASH,         /* allocating a send task on a client that is not running kills the process */
	SOFT_STOP_IN_SEND_ERROR_CRASH, /* doca_ctx_stop in the error callback of a send kills the process */
	SOFT_COMCH_NO_NOTIFICATION,    /* an engine with Comch contexts cannot be armed: NOT_SUPPORTED */
	SOFT_START_ABORTS,             /* doca_ctx_start of a client without a server returns CONNECTION_ABORTED */
	SOFT_UNTOLD_CLIENTS,           /* a server must disconnect clients that have left, or it refuses the next */
	SOFT_LATE_DISCONNECT_CRASH,    /* disconnecting a client after its disconnection event kills the process */

	/* Not in "all", because they take functions away. */
	SOFT_NO_HOST_EXPORT, /* memory of the host can be neither exported nor imported, as capabilities say */
	SOFT_NO_DPU_EXPORT,  /* memory of the DPU can be neither exported nor imported, as capabilities say */
	SOFT_QUIRKS,
};

/* Reports whether the quirk is configured. Any thread may call. */
bool soft_has_quirk(enum soft_quirk quirk);

/* Parses "name,name", "all", or nothing. INVALID_VALUE, with a detail. */
doca_error_t soft_parse_quirks(const char *text, uint32_t *quirks);

/* Imitates a crash of DOCA's library: prints the reason and aborts the process. */
_Noreturn void soft_crash(const char *reason);

#endif
