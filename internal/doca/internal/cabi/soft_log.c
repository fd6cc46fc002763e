/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the software device says about itself: the last reason behind a result code, for whoever asks, and the same as
 * log lines, for whoever opened a log.
 */
#include "soft_core.h"

#include <stdarg.h>
#include <stdio.h>

/* A program opens one log for its libraries, so there is one; it is never closed. */
struct doca_log_backend {
	int fd; /* -1: none yet */
};

static struct doca_log_backend backend_of_process = {.fd = -1};
static uint32_t level_limit = DOCA_LOG_LEVEL_INFO;
static char last_detail[512];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the three above */

void soft_detail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	pthread_mutex_lock(&log_lock);
	vsnprintf(last_detail, sizeof(last_detail), format, args);
	if (backend_of_process.fd >= 0 && level_limit >= DOCA_LOG_LEVEL_DEBUG)
		dprintf(backend_of_process.fd, "[DOCA][DBG][SOFT] %s\n", last_detail);
	pthread_mutex_unlock(&log_lock);
	va_end(args);
}

void soft_copy_last_detail(char *text, size_t size)
{
	pthread_mutex_lock(&log_lock);
	snprintf(text, size, "%s", last_detail);
	pthread_mutex_unlock(&log_lock);
}

void soft_forget_detail(void)
{
	pthread_mutex_lock(&log_lock);
	last_detail[0] = '\0';
	pthread_mutex_unlock(&log_lock);
}

const char *soft_last_detail(void)
{
	static _Thread_local char copy[sizeof(last_detail)];
	soft_copy_last_detail(copy, sizeof(copy));
	return copy;
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
