/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

#include "config.h"
#include "error.h"
#include "now.h"
#include "sizes.h"
#include "soft_dpa.h"

static _Thread_local struct soft_kernel *current;

enum soft_kernel_end soft_kernel_run(struct soft_kernel *kernel, void (*body)(void *arg), void *arg)
{
	struct soft_kernel *const outer = current;
	uint64_t limit_ms = soft_limits()->dpa_kernel_ms;
	kernel->deadline = limit_ms == 0 ? UINT64_MAX : soft_now_ns() + limit_ms * 1000000;
	current = kernel;
	int end = setjmp(kernel->end);
	if (end == SOFT_KERNEL_RETURNED)
		body(arg);
	current = outer;
	return (enum soft_kernel_end)end;
}

/* ---- device functions in general ---- */

struct soft_kernel *soft_kernel_enter(const char *function)
{
	struct soft_kernel *kernel = current;
	if (kernel == NULL) {
		char text[160];
		snprintf(text, sizeof(text), "%s was called by the CPU; only code of a DPA may call it", function);
		soft_log(DOCA_LOG_LEVEL_WARNING, text);
		return NULL;
	}
	soft_dpa_lock();
	if (kernel->stopping != NULL && *kernel->stopping) {
		soft_dpa_unlock();
		longjmp(kernel->end, SOFT_KERNEL_ABORTED);
	}
	if (kernel->deadline != UINT64_MAX && soft_now_ns() > kernel->deadline) {
		soft_kernel_error(kernel, "a kernel ran longer than %llu ms (limit dpa_kernel_ms)",
				  (unsigned long long)soft_limits()->dpa_kernel_ms);
		soft_kernel_leave(kernel);
		longjmp(kernel->end, SOFT_KERNEL_ABORTED);
	}
	return kernel;
}

void soft_kernel_error(struct soft_kernel *kernel, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(kernel->error, sizeof(kernel->error), format, args);
	va_end(args);
	kernel->error_level = kernel->dpa->failed ? DOCA_LOG_LEVEL_DEBUG : DOCA_LOG_LEVEL_WARNING;
	kernel->dpa->failed = true;
}

void soft_kernel_leave(struct soft_kernel *kernel)
{
	soft_dpa_unlock();
	if (kernel->error[0] == '\0')
		return;
	char text[sizeof(kernel->error) + 32];
	snprintf(text, sizeof(text), "error on the DPA: %s", kernel->error);
	kernel->error[0] = '\0';
	soft_log(kernel->error_level, text);
}

void soft_kernel_leave_poll(struct soft_kernel *kernel, bool found)
{
	kernel->idle_polls = found ? 0 : kernel->idle_polls + (kernel->idle_polls < SOFT_IDLE_POLLS);
	bool yield = kernel->idle_polls == SOFT_IDLE_POLLS;
	soft_kernel_leave(kernel);
	if (yield)
		sched_yield();
}

/* ---- device functions about the kernel itself ---- */

/* A remote procedure call has no thread to leave, so the call ends. */
static void end_kernel(const char *function, enum soft_kernel_end end)
{
	struct soft_kernel *kernel = soft_kernel_enter(function);
	if (kernel == NULL)
		return;
	if (!kernel->of_thread)
		soft_kernel_error(kernel, "%s was called by a remote procedure call", function);
	soft_kernel_leave(kernel);
	longjmp(kernel->end, kernel->of_thread ? end : SOFT_KERNEL_ABORTED);
}

void soft_doca_dpa_dev_thread_reschedule(void)
{
	end_kernel("doca_dpa_dev_thread_reschedule", SOFT_KERNEL_RESCHEDULED);
}

/* As the thread's next activation, at once. */
void soft_doca_dpa_dev_thread_retrigger(void)
{
	end_kernel("doca_dpa_dev_thread_retrigger", SOFT_KERNEL_RETRIGGERED);
}

void soft_doca_dpa_dev_thread_finish(void)
{
	end_kernel("doca_dpa_dev_thread_finish", SOFT_KERNEL_FINISHED);
}

doca_dpa_dev_uintptr_t soft_doca_dpa_dev_thread_get_local_storage(void)
{
	struct soft_kernel *kernel = soft_kernel_enter("doca_dpa_dev_thread_get_local_storage");
	if (kernel == NULL)
		return 0;
	if (!kernel->of_thread)
		soft_kernel_error(kernel, "a remote procedure call has no local storage");
	doca_dpa_dev_uintptr_t storage = kernel->local_storage;
	soft_kernel_leave(kernel);
	return storage;
}

/* 0 is the DPA itself. There are no others, because a DPA cannot be extended to another device. */
void soft_doca_dpa_dev_device_set(doca_dpa_dev_t dpa_handle)
{
	struct soft_kernel *kernel = soft_kernel_enter("doca_dpa_dev_device_set");
	if (kernel == NULL)
		return;
	if (dpa_handle != 0 && dpa_handle != kernel->dpa->object.handle)
		soft_kernel_error(kernel, "doca_dpa_dev_device_set with the handle of no DPA of this kernel");
	soft_kernel_leave(kernel);
}

/* Callers write their own newline. */
void soft_doca_dpa_dev_log(doca_dpa_dev_log_level_t log_level, const char *format, struct dpa_kit_args *args)
{
	struct soft_kernel *kernel = soft_kernel_enter("doca_dpa_dev_log");
	if (kernel == NULL)
		return;
	bool shown = format != NULL && log_level <= kernel->dpa->log_level;
	soft_kernel_leave(kernel);
	if (!shown)
		return;
	vfprintf(stdout, format, args->list);
	fflush(stdout);
}

/* ---- remote procedure calls ---- */

struct call {
	const struct dpa_kit_function *function;
	struct dpa_kit_args *args;
	uint64_t result;
};

static void make_call(void *arg)
{
	struct call *call = arg;
	call->result = call->function->rpc(call->args);
}

/* It runs on the caller's thread, which waits for it anyway. */
doca_error_t soft_doca_dpa_rpc(struct doca_dpa *dpa, doca_dpa_func_t *func, uint64_t *retval, struct dpa_kit_args *args)
{
	if (dpa == NULL || func == NULL || retval == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!soft_dpa_is_started(dpa))
		return DOCA_ERROR_BAD_STATE;
	struct call call = {.function = soft_dpa_function(dpa, func), .args = args};
	if (call.function == NULL || call.function->rpc == NULL) {
		soft_detail("the function of a remote procedure call is not registered as such: use DPA_KIT_RPC");
		return DOCA_ERROR_INVALID_VALUE;
	}
	struct soft_kernel kernel = {.dpa = dpa};
	if (soft_kernel_run(&kernel, make_call, &call) != SOFT_KERNEL_RETURNED)
		return DOCA_ERROR_DRIVER;
	*retval = call.result;
	return DOCA_SUCCESS;
}
