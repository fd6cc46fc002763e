/* SPDX-License-Identifier: Apache-2.0 */
#include "error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "soft.h"

/* ---- detail ---- */

static char last_detail[SOFT_DETAIL_SIZE];
static pthread_mutex_t detail_lock = PTHREAD_MUTEX_INITIALIZER; /* guards it */

void soft_detail(const char *format, ...)
{
	char text[sizeof(last_detail)];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pthread_mutex_lock(&detail_lock);
	snprintf(last_detail, sizeof(last_detail), "%s", text);
	pthread_mutex_unlock(&detail_lock);
	soft_log(DOCA_LOG_LEVEL_DEBUG, text);
}

void soft_copy_last_detail(char *text, size_t size)
{
	pthread_mutex_lock(&detail_lock);
	snprintf(text, size, "%s", last_detail);
	pthread_mutex_unlock(&detail_lock);
}

void soft_restore_detail(const char *text)
{
	pthread_mutex_lock(&detail_lock);
	snprintf(last_detail, sizeof(last_detail), "%s", text);
	pthread_mutex_unlock(&detail_lock);
}

void soft_clear_detail(void)
{
	soft_restore_detail("");
}

const char *soft_last_detail(void)
{
	static _Thread_local char copy[sizeof(last_detail)];
	soft_copy_last_detail(copy, sizeof(copy));
	return copy;
}

/* ---- names of results ---- */

struct result {
	const char *name;
	const char *descr;
};

#define RESULT(code, descr) [DOCA_##code] = {"DOCA_" #code, descr}

static const struct result results[] = {
	RESULT(SUCCESS, "success"),
	RESULT(ERROR_UNKNOWN, "the cause is not known"),
	RESULT(ERROR_NOT_PERMITTED, "the operation is not permitted"),
	RESULT(ERROR_IN_USE, "the object is still in use"),
	RESULT(ERROR_NOT_SUPPORTED, "the device cannot do this"),
	RESULT(ERROR_AGAIN, "busy for the moment, try again"),
	RESULT(ERROR_INVALID_VALUE, "an argument is not valid"),
	RESULT(ERROR_NO_MEMORY, "out of memory or of preallocated elements"),
	RESULT(ERROR_INITIALIZATION, "initialization failed"),
	RESULT(ERROR_TIME_OUT, "timed out"),
	RESULT(ERROR_SHUTDOWN, "shutting down"),
	RESULT(ERROR_CONNECTION_RESET, "the peer reset the connection"),
	RESULT(ERROR_CONNECTION_ABORTED, "the connection was aborted"),
	RESULT(ERROR_CONNECTION_INPROGRESS, "the connection is in progress"),
	RESULT(ERROR_NOT_CONNECTED, "not connected"),
	RESULT(ERROR_NO_LOCK, "a lock could not be taken"),
	RESULT(ERROR_NOT_FOUND, "not found"),
	RESULT(ERROR_IO_FAILED, "input or output error"),
	RESULT(ERROR_BAD_STATE, "not allowed in this state"),
	RESULT(ERROR_UNSUPPORTED_VERSION, "the version is not supported"),
	RESULT(ERROR_OPERATING_SYSTEM, "an operating system call failed"),
	RESULT(ERROR_DRIVER, "a driver call failed"),
	RESULT(ERROR_UNEXPECTED, "something unexpected happened"),
	RESULT(ERROR_ALREADY_EXIST, "already exists"),
	RESULT(ERROR_FULL, "no space left"),
	RESULT(ERROR_EMPTY, "empty"),
	RESULT(ERROR_IN_PROGRESS, "in progress"),
	RESULT(ERROR_TOO_BIG, "too big"),
	RESULT(ERROR_AUTHENTICATION, "authentication failed"),
	RESULT(ERROR_BAD_CONFIG, "the configuration is not valid"),
	RESULT(ERROR_SKIPPED, "skipped"),
};

static const struct result unrecognized = {"DOCA_ERROR_UNRECOGNIZED", "not a result code"};

static const struct result *find_result(doca_error_t error)
{
	return (size_t)error < sizeof(results) / sizeof(results[0]) ? &results[error] : &unrecognized;
}

const char *soft_doca_error_get_name(doca_error_t error)
{
	return find_result(error)->name;
}

const char *soft_doca_error_get_descr(doca_error_t error)
{
	return find_result(error)->descr;
}
