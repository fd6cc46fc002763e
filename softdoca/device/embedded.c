/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log and the release of the software device inside dma-copy. The development kit, which has DOCA's whole logger
 * and stands for a release of DOCA, is linked with its own instead of this file.
 */
#include <pthread.h>
#include <stdio.h>

#include "error.h"
#include "soft.h"

/* ---- log ---- */

/* There is one log per process; it is never closed. */
struct doca_log_backend {
	int fd; /* -1: none yet */
};

static struct doca_log_backend backend_of_process = {.fd = -1};
static uint32_t level_limit = DOCA_LOG_LEVEL_INFO;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two above */

void soft_log(uint32_t level, const char *message)
{
	const char *name = level == DOCA_LOG_LEVEL_WARNING ? "WRN" : "DBG";
	pthread_mutex_lock(&log_lock);
	if (backend_of_process.fd >= 0 && level_limit >= level)
		dprintf(backend_of_process.fd, "[DOCA][%s][SOFT] %s\n", name, message);
	pthread_mutex_unlock(&log_lock);
}

doca_error_t soft_doca_log_backend_create_with_fd_sdk(int fd, struct doca_log_backend **backend)
{
	if (fd < 0 || backend == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&log_lock);
	backend_of_process.fd = fd;
	pthread_mutex_unlock(&log_lock);
	*backend = &backend_of_process;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_log_level_set_global_sdk_limit(uint32_t level)
{
	if (level < DOCA_LOG_LEVEL_DISABLE || level > DOCA_LOG_LEVEL_TRACE || level % 10 != 0)
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&log_lock);
	level_limit = level;
	pthread_mutex_unlock(&log_lock);
	return DOCA_SUCCESS;
}

/* ---- version ---- */

const char *soft_doca_version_runtime(void)
{
	return "soft 1";
}
