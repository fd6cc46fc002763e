/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "log.h"
#include "soft.h"

/* ---- Writing: a log that cannot be written must not stop the program, so what fails is lost ---- */

static void write_file(struct doca_log_backend *backend, uint32_t level, const char *line)
{
	(void)level;
	fputs(line, backend->sink.file);
	fflush(backend->sink.file);
}

static void write_fd(struct doca_log_backend *backend, uint32_t level, const char *line)
{
	(void)level;
	size_t left = strlen(line);
	while (left > 0) {
		ssize_t written = write(backend->sink.fd, line, left);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return;
		line += written;
		left -= (size_t)written;
	}
}

static void write_buf(struct doca_log_backend *backend, uint32_t level, const char *line)
{
	(void)level;
	snprintf(backend->sink.buf.start, backend->sink.buf.capacity, "%s", line);
	backend->sink.buf.handler(backend->sink.buf.start);
}

static void write_syslog(struct doca_log_backend *backend, uint32_t level, const char *line)
{
	static const int priorities[] = {LOG_CRIT, LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG, LOG_DEBUG};
	(void)backend;
	syslog(LOG_USER | priorities[(level - DOCA_LOG_LEVEL_CRIT) / 10], "%s", line);
}

/* ---- Creating, for either writer ---- */

static doca_error_t create_file(enum log_writer writer, FILE *file, struct doca_log_backend **backend)
{
	if (file == NULL || backend == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_log_backend wanted = {.writer = writer, .write = write_file, .sink.file = file};
	return log_backend_add(&wanted, backend);
}

static doca_error_t create_fd(enum log_writer writer, int fd, struct doca_log_backend **backend)
{
	if (fd < 0 || backend == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_log_backend wanted = {.writer = writer, .write = write_fd, .sink.fd = fd};
	return log_backend_add(&wanted, backend);
}

static doca_error_t create_buf(enum log_writer writer, char *buf, size_t capacity, log_flush_callback handler,
			       struct doca_log_backend **backend)
{
	if (buf == NULL || capacity == 0 || handler == NULL || backend == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_log_backend wanted = {
		.writer = writer,
		.write = write_buf,
		.sink.buf = {buf, capacity, handler},
	};
	return log_backend_add(&wanted, backend);
}

/* The system's log has one name for a process, the last that was given, and keeps the pointer: it is never freed. */
static doca_error_t create_syslog(enum log_writer writer, const char *name, struct doca_log_backend **backend)
{
	if (name == NULL || backend == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	char *copy = strdup(name);
	if (copy == NULL)
		return DOCA_ERROR_NO_MEMORY;
	openlog(copy, LOG_PID, LOG_USER);
	struct doca_log_backend wanted = {.writer = writer, .write = write_syslog, .sink.name = copy};
	return log_backend_add(&wanted, backend);
}

/* ---- The program's ---- */

doca_error_t doca_log_backend_create_with_file(FILE *fptr, struct doca_log_backend **backend)
{
	return create_file(LOG_PROGRAM, fptr, backend);
}

doca_error_t doca_log_backend_create_with_fd(int fd, struct doca_log_backend **backend)
{
	return create_fd(LOG_PROGRAM, fd, backend);
}

doca_error_t doca_log_backend_create_with_buf(char *buf, size_t capacity, log_flush_callback handler,
					      struct doca_log_backend **backend)
{
	return create_buf(LOG_PROGRAM, buf, capacity, handler, backend);
}

doca_error_t doca_log_backend_create_with_syslog(const char *name, struct doca_log_backend **backend)
{
	return create_syslog(LOG_PROGRAM, name, backend);
}

/* Programs have no handle of these two, so they cannot set limits of their own. Requesting them again has no effect. */
doca_error_t doca_log_backend_create_standard(void)
{
	static atomic_flag created = ATOMIC_FLAG_INIT;
	struct doca_log_backend *ignored;
	struct doca_log_backend output = {.write = write_file, .sink.file = stdout, .upper_bound = DOCA_LOG_LEVEL_INFO};
	struct doca_log_backend errors = {
		.write = write_file, .sink.file = stderr, .lower_bound = DOCA_LOG_LEVEL_WARNING};
	if (atomic_flag_test_and_set(&created))
		return DOCA_SUCCESS;
	doca_error_t result = log_backend_add(&output, &ignored);
	return result != DOCA_SUCCESS ? result : log_backend_add(&errors, &ignored);
}

/* ---- The SDK's ---- */

doca_error_t doca_log_backend_create_with_file_sdk(FILE *fptr, struct doca_log_backend **backend)
{
	return create_file(LOG_SDK, fptr, backend);
}

doca_error_t soft_doca_log_backend_create_with_fd_sdk(int fd, struct doca_log_backend **backend)
{
	return create_fd(LOG_SDK, fd, backend);
}

doca_error_t doca_log_backend_create_with_buf_sdk(char *buf, size_t capacity, log_flush_callback handler,
						  struct doca_log_backend **backend)
{
	return create_buf(LOG_SDK, buf, capacity, handler, backend);
}

doca_error_t doca_log_backend_create_with_syslog_sdk(const char *name, struct doca_log_backend **backend)
{
	return create_syslog(LOG_SDK, name, backend);
}
