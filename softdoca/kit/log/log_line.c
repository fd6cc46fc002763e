/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

static const char *level_name(uint32_t level)
{
	static const char *const names[] = {"CRT", "ERR", "WRN", "INF", "DBG", "TRC"};
	return names[(level - DOCA_LOG_LEVEL_CRIT) / 10];
}

/* "15:13:03:603979" */
static void format_time(char *text, size_t size)
{
	struct timespec now;
	struct tm local;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &local);
	snprintf(text, size, "%02d:%02d:%02d:%06ld", local.tm_hour, local.tm_min, local.tm_sec, now.tv_nsec / 1000);
}

char *log_line_format(uint32_t level, const struct log_origin *origin, const char *format, va_list args)
{
	char *message, *line;
	char time[64];
	if (vasprintf(&message, format, args) < 0)
		return NULL;
	format_time(time, sizeof(time));
	int length = asprintf(&line, "[%s][%d][DOCA][%s][%s:%d][%s] %s\n", time, (int)gettid(), level_name(level),
			      origin->source, origin->line, origin->function, message);
	free(message);
	return length < 0 ? NULL : line;
}
