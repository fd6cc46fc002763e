/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

#include "log.h"
#include "soft.h"

static struct doca_log_backend *backends;

static struct {
	uint32_t lower, upper; /* of the program's backends */
	uint32_t sdk;          /* the lower one of SDK backends */
} global = {DOCA_LOG_LEVEL_INFO, DOCA_LOG_LEVEL_CRIT, DOCA_LOG_LEVEL_INFO};

/* Guards both, and keeps the lines of two threads apart. Recursive, because the handler of a buffer may itself log. */
static pthread_mutex_t log_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

bool log_level_valid(uint32_t level)
{
	return level >= DOCA_LOG_LEVEL_DISABLE && level <= DOCA_LOG_LEVEL_TRACE && level % 10 == 0;
}

/* ---- Lines ---- */

static bool takes(const struct doca_log_backend *backend, enum log_writer writer, uint32_t level)
{
	return backend->writer == writer && level >= backend->upper && level <= backend->lower;
}

bool log_wanted(enum log_writer writer, uint32_t level)
{
	bool wanted = false;
	pthread_mutex_lock(&log_lock);
	for (struct doca_log_backend *backend = backends; backend != NULL; backend = backend->next)
		wanted = wanted || takes(backend, writer, level);
	pthread_mutex_unlock(&log_lock);
	return wanted;
}

void log_deliver(enum log_writer writer, uint32_t level, const char *line)
{
	pthread_mutex_lock(&log_lock);
	for (struct doca_log_backend *backend = backends; backend != NULL; backend = backend->next) {
		if (takes(backend, writer, level))
			backend->write(backend, level, line);
	}
	pthread_mutex_unlock(&log_lock);
}

/* ---- Adding ---- */

/* A backend takes over a global limit as far as its bound allows, unless its own is strict. Graver is smaller. */
static void follow_lower(struct doca_log_backend *backend, uint32_t level)
{
	bool beyond = backend->lower_bound != 0 && level > backend->lower_bound;
	if (!backend->lower_strict)
		backend->lower = beyond ? backend->lower_bound : level;
}

static void follow_upper(struct doca_log_backend *backend, uint32_t level)
{
	bool beyond = backend->upper_bound != 0 && level < backend->upper_bound;
	if (!backend->upper_strict)
		backend->upper = beyond ? backend->upper_bound : level;
}

doca_error_t log_backend_add(const struct doca_log_backend *wanted, struct doca_log_backend **backend)
{
	struct doca_log_backend *added = malloc(sizeof(*added));
	if (added == NULL)
		return DOCA_ERROR_NO_MEMORY;
	*added = *wanted;
	pthread_mutex_lock(&log_lock);
	follow_lower(added, added->writer == LOG_SDK ? global.sdk : global.lower);
	follow_upper(added, added->writer == LOG_SDK ? (uint32_t)DOCA_LOG_LEVEL_CRIT : global.upper);
	added->next = backends;
	backends = added;
	pthread_mutex_unlock(&log_lock);
	*backend = added;
	return DOCA_SUCCESS;
}

/* ---- Limits of one backend ---- */

static doca_error_t set_limit(uint32_t *limit, const bool *strict, uint32_t level)
{
	if (!log_level_valid(level))
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&log_lock);
	bool permitted = !*strict;
	if (permitted)
		*limit = level;
	pthread_mutex_unlock(&log_lock);
	return permitted ? DOCA_SUCCESS : DOCA_ERROR_NOT_PERMITTED;
}

static doca_error_t make_strict(bool *strict)
{
	pthread_mutex_lock(&log_lock);
	*strict = true;
	pthread_mutex_unlock(&log_lock);
	return DOCA_SUCCESS;
}

doca_error_t doca_log_backend_set_level_lower_limit(struct doca_log_backend *backend, uint32_t level)
{
	if (backend == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return set_limit(&backend->lower, &backend->lower_strict, level);
}

doca_error_t doca_log_backend_set_level_upper_limit(struct doca_log_backend *backend, uint32_t upper_limit)
{
	if (backend == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return set_limit(&backend->upper, &backend->upper_strict, upper_limit);
}

doca_error_t doca_log_backend_set_level_lower_limit_strict(struct doca_log_backend *backend)
{
	return backend == NULL ? DOCA_ERROR_INVALID_VALUE : make_strict(&backend->lower_strict);
}

doca_error_t doca_log_backend_set_level_upper_limit_strict(struct doca_log_backend *backend)
{
	return backend == NULL ? DOCA_ERROR_INVALID_VALUE : make_strict(&backend->upper_strict);
}

doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend *backend, uint32_t level)
{
	if (backend == NULL || backend->writer != LOG_SDK)
		return DOCA_ERROR_INVALID_VALUE;
	return set_limit(&backend->lower, &backend->lower_strict, level);
}

/* ---- Limits of all ---- */

typedef void (*follow_fn)(struct doca_log_backend *backend, uint32_t level);

static doca_error_t set_global(uint32_t *limit, uint32_t level, enum log_writer writer, follow_fn follow)
{
	if (!log_level_valid(level))
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&log_lock);
	*limit = level;
	for (struct doca_log_backend *backend = backends; backend != NULL; backend = backend->next) {
		if (backend->writer == writer)
			follow(backend, level);
	}
	pthread_mutex_unlock(&log_lock);
	return DOCA_SUCCESS;
}

static uint32_t get_global(const uint32_t *limit)
{
	pthread_mutex_lock(&log_lock);
	uint32_t level = *limit;
	pthread_mutex_unlock(&log_lock);
	return level;
}

doca_error_t doca_log_level_set_global_lower_limit(uint32_t level)
{
	return set_global(&global.lower, level, LOG_PROGRAM, follow_lower);
}

doca_error_t doca_log_level_set_global_upper_limit(uint32_t upper_limit)
{
	return set_global(&global.upper, upper_limit, LOG_PROGRAM, follow_upper);
}

doca_error_t soft_doca_log_level_set_global_sdk_limit(uint32_t level)
{
	return set_global(&global.sdk, level, LOG_SDK, follow_lower);
}

uint32_t doca_log_level_get_global_lower_limit(void)
{
	return get_global(&global.lower);
}

uint32_t doca_log_level_get_global_upper_limit(void)
{
	return get_global(&global.upper);
}

uint32_t doca_log_level_get_global_sdk_limit(void)
{
	return get_global(&global.sdk);
}
