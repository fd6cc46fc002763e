/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations that the files of the logger share.
 *
 *   log_source     names of sources               log_backend   limits, and which backend takes a line
 *   log_line       the text of a line             log_sink      where a backend puts it
 *   log_write      the ways in: a program's doca_log, the device's soft_log
 */
#ifndef DMA_COPY_SDK_LOG_H
#define DMA_COPY_SDK_LOG_H

#include <stdarg.h>
#include <stdbool.h>

#include "doca_log.h"

/* ---- log_source ---- */

#define LOG_SOURCE_NAME_SIZE 256

/* False if there is no such source. */
bool log_source_name(int source, char name[LOG_SOURCE_NAME_SIZE]);

/* ---- log_line ---- */

struct log_origin {
	const char *source;
	int line;
	const char *function;
};

/* The line, with its newline; to be freed. NULL: no memory. */
char *log_line_format(uint32_t level, const struct log_origin *origin, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

/* ---- log_backend ---- */

/* The writer of a line. A backend accepts the lines of one. */
enum log_writer { LOG_PROGRAM, LOG_SDK };

struct doca_log_backend {
	struct doca_log_backend *next;
	enum log_writer writer;
	uint32_t lower, upper; /* takes upper <= level <= lower */
	bool lower_strict, upper_strict;
	uint32_t lower_bound, upper_bound; /* however the global limits are set; 0: no bound */

	void (*write)(struct doca_log_backend *backend, uint32_t level, const char *line);
	union {
		FILE *file;
		int fd;
		char *name;
		struct {
			char *start;
			size_t capacity;
			log_flush_callback handler;
		} buf;
	} sink;
};

/* A level that a limit may have; a line may have all of them but DISABLE. */
bool log_level_valid(uint32_t level);

/* Adds a copy of wanted, with the global limits of the moment. It is never removed. */
doca_error_t log_backend_add(const struct doca_log_backend *wanted, struct doca_log_backend **backend);

/* Some backend would take such a line: otherwise there is no need to format it. */
bool log_wanted(enum log_writer writer, uint32_t level);

/* Writes the line to every backend that accepts it. */
void log_deliver(enum log_writer writer, uint32_t level, const char *line);

#endif
