/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kit's logger replaces the device's own (embedded.c) and defines the same functions: soft_log, and the two log
 * functions of the list, as soft_<name>.
 */
#include <stdlib.h>

#include "error.h"
#include "log.h"

static doca_error_t write_line(enum log_writer writer, uint32_t level, const struct log_origin *origin,
			       const char *format, va_list args)
{
	if (!log_wanted(writer, level))
		return DOCA_SUCCESS;
	char *line = log_line_format(level, origin, format, args);
	if (line == NULL)
		return DOCA_ERROR_NO_MEMORY;
	log_deliver(writer, level, line);
	free(line);
	return DOCA_SUCCESS;
}

/* The line names its source; the file that DOCA's macros also pass is not shown. */
doca_error_t doca_log(uint32_t level, int source, const char *fname, int line, const char *func, const char *format,
		      ...)
{
	char name[LOG_SOURCE_NAME_SIZE];
	(void)fname;
	if (!log_level_valid(level) || level == DOCA_LOG_LEVEL_DISABLE || func == NULL || format == NULL ||
	    !log_source_name(source, name))
		return DOCA_ERROR_INVALID_VALUE;
	struct log_origin origin = {name, line, func};
	va_list args;
	va_start(args, format);
	doca_error_t result = write_line(LOG_PROGRAM, level, &origin, format, args);
	va_end(args);
	return result;
}

__attribute__((format(printf, 3, 4))) static void write_sdk(uint32_t level, const struct log_origin *origin,
							    const char *format, ...)
{
	va_list args;
	va_start(args, format);
	write_line(LOG_SDK, level, origin, format, args);
	va_end(args);
}

void soft_log(uint32_t level, const char *message)
{
	struct log_origin device = {"SOFT", 0, "device"};
	write_sdk(level, &device, "%s", message);
}
