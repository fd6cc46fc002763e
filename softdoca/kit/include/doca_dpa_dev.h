/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions for code of a DPA: about its thread and its completions. Kernels of threads and remote procedure calls may
 * call these functions, the CPU's code must not.
 *
 * A function that cannot return an error reports one to doca_dpa_peek_at_last_error, on the CPU, and in the SDK's log.
 *
 * The mark of all functions of the DPA is DOCA_STABLE because code of a DPA is not compiled with
 * -DDOCA_ALLOW_EXPERIMENTAL_API. DOCA calls all of them experimental.
 */
#ifndef DOCA_DPA_DEV_H_
#define DOCA_DPA_DEV_H_

#include <stdint.h>

#include "doca_compat.h"
#include "doca_dpa_abi.h"
#include "doca_types.h"

/* Marks for NVIDIA's compiler: kernels, and remote procedure calls. */
#ifndef __DPA__
#define __dpa_global__
#define __dpa_rpc__
#endif

#define DOCA_DPA_DEVICE

#ifdef __cplusplus
extern "C" {
#endif

/* ---- threads: not for remote procedure calls, except the last two ---- */

/* Leaves the kernel. The next activation runs it again, from its beginning. */
DOCA_STABLE
void doca_dpa_dev_thread_reschedule(void);

#if DMA_COPY_KIT_VERSION >= 305
/* Leaves the kernel, which runs again at once, from its beginning. */
DOCA_STABLE
void doca_dpa_dev_thread_retrigger(void);
#endif

/* Leaves the kernel for good, as returning from it does. */
DOCA_STABLE
void doca_dpa_dev_thread_finish(void);

DOCA_STABLE
doca_dpa_dev_uintptr_t doca_dpa_dev_thread_get_local_storage(void);

/* Activates the thread of the notification completion. */
DOCA_STABLE
void doca_dpa_dev_thread_notify(doca_dpa_dev_notification_completion_t comp_handle);

/* 0 or the handle of the DPA, which has no other device here. */
DOCA_STABLE
void doca_dpa_dev_device_set(doca_dpa_dev_t dpa_handle);

/* ---- completions ---- */

/* 1 if there is a next element, otherwise 0. */
DOCA_STABLE
int doca_dpa_dev_get_completion(doca_dpa_dev_completion_t dpa_comp_handle,
				doca_dpa_dev_completion_element_t *comp_element);

DOCA_STABLE
doca_dpa_dev_completion_type_t doca_dpa_dev_get_completion_type(doca_dpa_dev_completion_element_t comp_element);

/* The lower 24 bits of the user data of the producer's context. */
DOCA_STABLE
uint32_t doca_dpa_dev_get_completion_user_data(doca_dpa_dev_completion_element_t comp_element);

/* Frees the oldest elements, which must have been polled. */
DOCA_STABLE
void doca_dpa_dev_completion_ack(doca_dpa_dev_completion_t dpa_comp_handle, uint64_t num_comp);

/* The next element activates the context's thread; at once if there is one. */
DOCA_STABLE
void doca_dpa_dev_completion_request_notification(doca_dpa_dev_completion_t dpa_comp_handle);

/* ---- log: on standard output, up to the level of doca_dpa_set_log_level; callers write their own newline ---- */

DOCA_STABLE
void doca_dpa_dev_log(doca_dpa_dev_log_level_t log_level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define DOCA_DPA_DEV_LOG_ERR(...) doca_dpa_dev_log(DOCA_DPA_DEV_LOG_LEVEL_ERROR, __VA_ARGS__)
#define DOCA_DPA_DEV_LOG_WARN(...) doca_dpa_dev_log(DOCA_DPA_DEV_LOG_LEVEL_WARNING, __VA_ARGS__)
#define DOCA_DPA_DEV_LOG_INFO(...) doca_dpa_dev_log(DOCA_DPA_DEV_LOG_LEVEL_INFO, __VA_ARGS__)
#define DOCA_DPA_DEV_LOG_DBG(...) doca_dpa_dev_log(DOCA_DPA_DEV_LOG_LEVEL_DEBUG, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif
