/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the software device says about itself: the reason behind the last result code, for whoever asks, and the same as
 * a line for the log, wherever that goes.
 */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>

static char last_detail[512];
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

void soft_forget_detail(void)
{
	pthread_mutex_lock(&detail_lock);
	last_detail[0] = '\0';
	pthread_mutex_unlock(&detail_lock);
}

const char *soft_last_detail(void)
{
	static _Thread_local char copy[sizeof(last_detail)];
	soft_copy_last_detail(copy, sizeof(copy));
	return copy;
}
