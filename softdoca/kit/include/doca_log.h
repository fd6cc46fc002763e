/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines. A program registers a source and writes through the macros; backends take the lines whose level lies
 * between their upper limit (the gravest, CRIT if not set) and their lower one (the most talkative, INFO if not set).
 * Lines of the libraries themselves go to SDK backends only. Any thread may call; backends live as long as the
 * process.
 *
 *   [15:13:03:603979][4711][DOCA][INF][MY_SOURCE:42][main] the message
 *
 * Levels are numbers of enum doca_log_level; any other is DOCA_ERROR_INVALID_VALUE.
 */
#ifndef DOCA_LOG_H_
#define DOCA_LOG_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "doca_compat.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called with each line, as a string in the buffer of the backend. */
typedef void (*log_flush_callback)(char *buffer);

/* Backends of the program's own lines. */

/*
 * From WARNING on to stderr, the rest to stdout, both as the global limits go. Once: the second time changes nothing.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_standard(void);

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_file(FILE *fptr, struct doca_log_backend **backend);

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_fd(int fd, struct doca_log_backend **backend);

/* Each line is put into buf, cut to capacity - 1, and handler called with it. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_buf(char *buf, size_t capacity, log_flush_callback handler,
					      struct doca_log_backend **backend);

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_syslog(const char *name, struct doca_log_backend **backend);

/* Backends of the libraries' lines. */

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_file_sdk(FILE *fptr, struct doca_log_backend **backend);

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_fd_sdk(int fd, struct doca_log_backend **backend);

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_buf_sdk(char *buf, size_t capacity, log_flush_callback handler,
						  struct doca_log_backend **backend);

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_syslog_sdk(const char *name, struct doca_log_backend **backend);

/* Limits of one backend. One that was made strict stays as it is: the global ones pass by, NOT_PERMITTED to its own. */

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_set_level_lower_limit(struct doca_log_backend *backend, uint32_t level);

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_set_level_upper_limit(struct doca_log_backend *backend, uint32_t upper_limit);

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_set_level_lower_limit_strict(struct doca_log_backend *backend);

DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_set_level_upper_limit_strict(struct doca_log_backend *backend);

/* The lower limit of an SDK backend. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend *backend, uint32_t level);

/* Limits of all backends that there are, unless strict, and of those to come. */

DOCA_EXPERIMENTAL
doca_error_t doca_log_level_set_global_lower_limit(uint32_t level);

DOCA_EXPERIMENTAL
doca_error_t doca_log_level_set_global_upper_limit(uint32_t upper_limit);

DOCA_EXPERIMENTAL
uint32_t doca_log_level_get_global_lower_limit(void);

DOCA_EXPERIMENTAL
uint32_t doca_log_level_get_global_upper_limit(void);

/* For SDK backends. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level);

DOCA_EXPERIMENTAL
uint32_t doca_log_level_get_global_sdk_limit(void);

/* Sources and lines. */

/* The same name gives the same source. Its first 255 characters count. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_register_source(const char *source_name, int *source);

DOCA_EXPERIMENTAL
doca_error_t doca_log_unregister_source(int source);

/* Writes one line; the macros below call it. INVALID_VALUE: source is not registered. */
DOCA_EXPERIMENTAL
doca_error_t doca_log(uint32_t level, int source, const char *fname, int line, const char *func, const char *format,
		      ...) __attribute__((format(printf, 6, 7)));

/* Makes DOCA_LOG_* of this file write under the name SOURCE. */
#define DOCA_LOG_REGISTER(SOURCE)                                                             \
	static int log_source;                                                                \
	__attribute__((constructor(101), used)) static void doca_log_register_this_file(void) \
	{                                                                                     \
		doca_log_register_source(#SOURCE, &log_source);                               \
	}

#define DOCA_LOG(level, ...) doca_log(level, log_source, __FILE__, __LINE__, __func__, __VA_ARGS__)
#define DOCA_LOG_CRIT(...) DOCA_LOG(DOCA_LOG_LEVEL_CRIT, __VA_ARGS__)
#define DOCA_LOG_ERR(...) DOCA_LOG(DOCA_LOG_LEVEL_ERROR, __VA_ARGS__)
#define DOCA_LOG_WARN(...) DOCA_LOG(DOCA_LOG_LEVEL_WARNING, __VA_ARGS__)
#define DOCA_LOG_INFO(...) DOCA_LOG(DOCA_LOG_LEVEL_INFO, __VA_ARGS__)
#define DOCA_LOG_DBG(...) DOCA_LOG(DOCA_LOG_LEVEL_DEBUG, __VA_ARGS__)

#ifdef DOCA_LOGGING_ALLOW_TRACE
#define DOCA_LOG_TRC(...) DOCA_LOG(DOCA_LOG_LEVEL_TRACE, __VA_ARGS__)
#else
#define DOCA_LOG_TRC(...) \
	do {              \
	} while (0)
#endif

#ifdef __cplusplus
}
#endif

#endif
