/* SPDX-License-Identifier: Apache-2.0 */
#include "dpa_end.h"

struct doca_dpa *dpa_open(void)
{
	struct doca_dpa *dpa;
	CHECK_OK(soft_doca_dpa_create(fixture.dpu, &dpa));
	CHECK_OK(soft_doca_dpa_set_app(dpa, test_app));
	CHECK_OK(soft_doca_dpa_start(dpa));
	return dpa;
}

void dpa_close(struct doca_dpa *dpa)
{
	CHECK_OK(soft_doca_dpa_stop(dpa));
	CHECK_OK(soft_doca_dpa_destroy(dpa));
}

doca_error_t dpa_call(struct doca_dpa *dpa, doca_dpa_func_t *func, uint64_t *retval, ...)
{
	struct dpa_kit_args args;
	va_start(args.list, retval);
	doca_error_t result = soft_doca_dpa_rpc(dpa, func, retval, &args);
	va_end(args.list);
	return result;
}

uint64_t run_body(uint64_t body, uint64_t arg)
{
	return ((uint64_t(*)(void *))(uintptr_t)body)((void *)(uintptr_t)arg);
}

uint64_t on_dpa(struct doca_dpa *dpa, uint64_t (*body)(void *arg), void *arg)
{
	uint64_t result;
	CHECK_OK(dpa_call(dpa, FUNC(run_body), &result, (uint64_t)(uintptr_t)body, (uint64_t)(uintptr_t)arg));
	return result;
}

struct doca_dpa_thread *thread_open(struct doca_dpa *dpa, void (*kernel)(uint64_t arg), uint64_t arg)
{
	struct doca_dpa_thread *thread;
	CHECK_OK(soft_doca_dpa_thread_create(dpa, &thread));
	CHECK_OK(soft_doca_dpa_thread_set_func_arg(thread, FUNC(kernel), arg));
	CHECK_OK(soft_doca_dpa_thread_start(thread));
	return thread;
}
