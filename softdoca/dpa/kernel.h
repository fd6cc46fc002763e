/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of the DPA while it runs, on a thread of the DPA or, for a remote procedure call, on its caller's thread. Each
 * device function begins with soft_kernel_enter and ends with soft_kernel_leave.
 */
#ifndef DMA_COPY_SOFT_DPA_KERNEL_H
#define DMA_COPY_SOFT_DPA_KERNEL_H

#include <setjmp.h>
#include <stdbool.h>

#include "dpa.h"

/* Why a kernel no longer runs. */
enum soft_kernel_end {
	SOFT_KERNEL_RETURNED,
	SOFT_KERNEL_RESCHEDULED,
	SOFT_KERNEL_RETRIGGERED,
	SOFT_KERNEL_FINISHED,
	SOFT_KERNEL_ABORTED, /* its thread is being stopped, it ran too long, or it is a call that left a thread */
};

struct soft_kernel {
	struct doca_dpa *dpa;
	bool of_thread; /* else a remote procedure call */
	uint64_t local_storage;
	const bool *stopping; /* of the thread, under the lock: the next device function does not return; may be NULL */
	uint64_t deadline;    /* by soft_now_ns; UINT64_MAX: none */
	unsigned idle_polls;  /* in a row that found nothing, up to SOFT_IDLE_POLLS */
	char error[160];      /* to be logged without the lock, at this level */
	uint32_t error_level;
	jmp_buf end;
};

/* Runs body(arg) as code of the DPA. */
enum soft_kernel_end soft_kernel_run(struct soft_kernel *kernel, void (*body)(void *arg), void *arg);

/* ---- for device functions ---- */

/*
 * Takes the lock and returns the kernel that runs on this thread. NULL, without the lock: the caller is not code of a
 * DPA. Does not return if the thread is being stopped, so that a kernel that polls can be stopped, nor after the
 * deadline.
 */
struct soft_kernel *soft_kernel_enter(const char *function);

/*
 * The kernel has made an error: the DPA has failed, which doca_dpa_peek_at_last_error reports. Only the first error of
 * a DPA is a warning in the log, because a kernel that polls may repeat it for ever. Under the lock.
 */
void soft_kernel_error(struct soft_kernel *kernel, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Releases the lock and logs the error, if there was one. */
void soft_kernel_leave(struct soft_kernel *kernel);

/* The same for a poll. Polling in vain yields the CPU. */
void soft_kernel_leave_poll(struct soft_kernel *kernel, bool found);

#endif
