/* SPDX-License-Identifier: Apache-2.0 */
#include "dpa.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "error.h"
#include "sizes.h"
#include "soft_dpa.h"

/* ---- creation and destruction ---- */

/* A DPA belongs to a physical function. */
doca_error_t soft_doca_dpa_cap_is_supported(const struct doca_devinfo *devinfo)
{
	if (devinfo == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return devinfo->kind == DOCA_PCI_FUNC_TYPE_PF ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t soft_doca_dpa_create(struct doca_dev *dev, struct doca_dpa **dpa)
{
	if (dev == NULL || dpa == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_doca_dpa_cap_is_supported(dev->info);
	if (result != DOCA_SUCCESS)
		return result;
	struct doca_dpa *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	created->dev = dev;
	created->log_level = DOCA_DPA_DEV_LOG_LEVEL_INFO;
	LIST_INIT(&created->blocks);
	atomic_fetch_add(&dev->users, 1);
	soft_dpa_lock();
	soft_object_add(&created->object, SOFT_OBJECT_DPA, created);
	soft_dpa_unlock();
	*dpa = created;
	return DOCA_SUCCESS;
}

/* Stops it too. */
doca_error_t soft_doca_dpa_destroy(struct doca_dpa *dpa)
{
	if (dpa == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	soft_dpa_lock();
	bool used = dpa->users > 0;
	if (!used)
		soft_object_remove(&dpa->object);
	soft_dpa_unlock();
	if (used)
		return DOCA_ERROR_IN_USE;
	soft_dpa_free_memory(dpa);
	atomic_fetch_sub(&dpa->dev->users, 1);
	free(dpa);
	return DOCA_SUCCESS;
}

/* ---- start and stop ---- */

doca_error_t soft_doca_dpa_start(struct doca_dpa *dpa)
{
	if (dpa == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (dpa->app == NULL) {
		soft_detail("a DPA needs doca_dpa_set_app before it starts");
		return DOCA_ERROR_INVALID_VALUE;
	}
	soft_dpa_lock();
	bool was_started = dpa->started;
	dpa->started = true;
	soft_dpa_unlock();
	return was_started ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_stop(struct doca_dpa *dpa)
{
	if (dpa == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = DOCA_SUCCESS;
	soft_dpa_lock();
	if (!dpa->started)
		result = DOCA_ERROR_BAD_STATE;
	else if (dpa->users > 0)
		result = DOCA_ERROR_IN_USE;
	else
		dpa->started = false;
	soft_dpa_unlock();
	return result;
}

bool soft_dpa_is_started(const struct doca_dpa *dpa)
{
	soft_dpa_lock();
	bool started = dpa->started;
	soft_dpa_unlock();
	return started;
}

void soft_dpa_use(struct doca_dpa *dpa)
{
	soft_dpa_lock();
	dpa->users++;
	soft_dpa_unlock();
}

void soft_dpa_unuse(struct doca_dpa *dpa)
{
	soft_dpa_lock();
	dpa->users--;
	soft_dpa_unlock();
}

/* ---- configuration ---- */

doca_error_t soft_doca_dpa_set_app(struct doca_dpa *dpa, struct doca_dpa_app *app)
{
	if (dpa == NULL || app == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (soft_dpa_is_started(dpa))
		return DOCA_ERROR_BAD_STATE;
	dpa->app = app;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_get_app(struct doca_dpa *dpa, struct doca_dpa_app **app)
{
	if (dpa == NULL || app == NULL || dpa->app == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*app = dpa->app;
	return DOCA_SUCCESS;
}

/* The length includes the zero. */
doca_error_t soft_doca_dpa_app_get_name(struct doca_dpa_app *app, char *app_name, uint32_t *app_name_len)
{
	if (app == NULL || app_name == NULL || app_name_len == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	size_t size = strlen(app->name) + 1;
	if (*app_name_len < size)
		return DOCA_ERROR_INVALID_VALUE;
	memcpy(app_name, app->name, size);
	*app_name_len = (uint32_t)size;
	return DOCA_SUCCESS;
}

const struct dpa_kit_function *soft_dpa_function(const struct doca_dpa *dpa, doca_dpa_func_t *func)
{
	const struct dpa_kit_function *const *function = dpa->app->first;
	while (function != dpa->app->end && (*function)->func != func)
		function++;
	return function == dpa->app->end ? NULL : *function;
}

static bool is_level(doca_dpa_dev_log_level_t level)
{
	return level == DOCA_DPA_DEV_LOG_LEVEL_DISABLE || level == DOCA_DPA_DEV_LOG_LEVEL_ERROR ||
	       level == DOCA_DPA_DEV_LOG_LEVEL_WARNING || level == DOCA_DPA_DEV_LOG_LEVEL_INFO ||
	       level == DOCA_DPA_DEV_LOG_LEVEL_DEBUG;
}

doca_error_t soft_doca_dpa_set_log_level(struct doca_dpa *dpa, doca_dpa_dev_log_level_t log_level)
{
	if (dpa == NULL || !is_level(log_level))
		return DOCA_ERROR_INVALID_VALUE;
	if (soft_dpa_is_started(dpa))
		return DOCA_ERROR_BAD_STATE;
	dpa->log_level = log_level;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_get_log_level(struct doca_dpa *dpa, doca_dpa_dev_log_level_t *log_level)
{
	if (dpa == NULL || log_level == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*log_level = dpa->log_level;
	return DOCA_SUCCESS;
}

uint32_t soft_dpa_queue_size(uint32_t wanted)
{
	if (wanted == 0 || wanted > SOFT_MAX_FAST_TASKS)
		return 0;
	uint32_t size = 1;
	while (size < wanted)
		size *= 2;
	return size;
}

/* ---- queries ---- */

doca_error_t soft_doca_dpa_get_dpa_handle(struct doca_dpa *dpa, doca_dpa_dev_t *handle)
{
	if (dpa == NULL || handle == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!soft_dpa_is_started(dpa))
		return DOCA_ERROR_BAD_STATE;
	*handle = dpa->object.handle;
	return DOCA_SUCCESS;
}

/* An error is not cleared: the DPA has to be created anew. */
doca_error_t soft_doca_dpa_peek_at_last_error(const struct doca_dpa *dpa)
{
	if (dpa == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	soft_dpa_lock();
	bool failed = dpa->failed;
	soft_dpa_unlock();
	return failed ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

/* In whole seconds, so that no program is ended sooner than it expects. Without a limit it is the largest number. */
doca_error_t soft_doca_dpa_get_kernel_max_run_time(const struct doca_dpa *dpa, unsigned long long *value)
{
	if (dpa == NULL || value == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	uint64_t ms = soft_limits()->dpa_kernel_ms;
	*value = ms == 0 ? ULLONG_MAX : ms / 1000;
	return DOCA_SUCCESS;
}

static doca_error_t answer(const struct doca_dpa *dpa, unsigned int *value, unsigned int known)
{
	if (dpa == NULL || value == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*value = known;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_get_core_num(struct doca_dpa *dpa, unsigned int *num_cores)
{
	return answer(dpa, num_cores, SOFT_DPA_CORES);
}

doca_error_t soft_doca_dpa_get_num_eus_per_core(struct doca_dpa *dpa, unsigned int *eus_per_core)
{
	return answer(dpa, eus_per_core, SOFT_DPA_EUS_PER_CORE);
}

doca_error_t soft_doca_dpa_get_total_num_eus_available(struct doca_dpa *dpa, unsigned int *total_num_eus)
{
	return answer(dpa, total_num_eus, SOFT_DPA_EUS);
}
