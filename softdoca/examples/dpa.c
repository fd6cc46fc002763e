/* SPDX-License-Identifier: Apache-2.0 */
#include "dpa.h"

#include <doca_error.h>

doca_error_t dpa_open(struct doca_dev *dev, struct doca_dpa_app *app, struct doca_dpa **dpa)
{
	doca_error_t result = doca_dpa_create(dev, dpa);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_dpa_set_app(*dpa, app);
	if (result == DOCA_SUCCESS)
		result = doca_dpa_start(*dpa);
	if (result != DOCA_SUCCESS)
		doca_dpa_destroy(*dpa);
	return result;
}

doca_error_t dpa_close(struct doca_dpa *dpa)
{
	doca_error_t result = doca_dpa_peek_at_last_error(dpa);
	DOCA_ERROR_PROPAGATE(result, doca_dpa_stop(dpa));
	DOCA_ERROR_PROPAGATE(result, doca_dpa_destroy(dpa));
	return result;
}

doca_error_t dpa_store(struct doca_dpa *dpa, void *from, size_t size, doca_dpa_dev_uintptr_t *stored)
{
	doca_error_t result = doca_dpa_mem_alloc(dpa, size, stored);
	return result == DOCA_SUCCESS ? doca_dpa_h2d_memcpy(dpa, *stored, from, size) : result;
}

doca_error_t dpa_thread_open(struct doca_dpa *dpa, doca_dpa_func_t *kernel, uint64_t arg,
			     struct doca_dpa_thread **thread)
{
	doca_error_t result = doca_dpa_thread_create(dpa, thread);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_dpa_thread_set_func_arg(*thread, kernel, arg);
	if (result == DOCA_SUCCESS)
		result = doca_dpa_thread_start(*thread);
	if (result != DOCA_SUCCESS)
		doca_dpa_thread_destroy(*thread);
	return result;
}
