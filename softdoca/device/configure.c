/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "configure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "background.h"
#include "config.h"
#include "dev.h"
#include "error.h"
#include "fault.h"
#include "limit.h"
#include "quirk.h"
#include "shown.h"
#include "sizes.h"
#include "socket.h"
#include "soft.h"

static pthread_mutex_t configure_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Other users ---- */

static doca_error_t bad_user(const char *item, const char *end)
{
	soft_detail("DMA_COPY_SOFT_USERS must be at most %d user ids such as 1000,1001, not \"%s\"", SOFT_MAX_USERS,
		    shown(item, (size_t)(end - item)).text);
	return DOCA_ERROR_INVALID_VALUE;
}

/* The kernel uses the largest id for "no user". */
static doca_error_t add_user(struct soft_config *new, const char *item, const char *end)
{
	uint64_t uid;
	if (!soft_parse_number(item, end, &uid) || uid >= UINT32_MAX || new->num_users == SOFT_MAX_USERS)
		return bad_user(item, end);
	new->users[new->num_users++] = (uid_t)uid;
	return DOCA_SUCCESS;
}

/* Parses "uid,uid", or nothing. */
static doca_error_t parse_users(const char *text, struct soft_config *new)
{
	if (text == NULL || *text == '\0')
		return DOCA_SUCCESS;
	for (const char *item = text;; item++) {
		const char *end = strchrnul(item, ',');
		doca_error_t result = add_user(new, item, end);
		if (result != DOCA_SUCCESS || *end == '\0')
			return result;
		item = end;
	}
}

/* ---- Runtime directory ---- */

static const char *environment(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && *value != '\0' ? value : NULL;
}

/* su leaves the variable of another user, whose directory this one cannot use. */
static bool is_own_directory(const char *path)
{
	struct stat st;
	return path != NULL && stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static bool choose_default_dir(char path[PATH_MAX])
{
	const char *run = environment("XDG_RUNTIME_DIR");
	const char *tmp = environment("TMPDIR");
	int len;
	if (is_own_directory(run))
		len = snprintf(path, PATH_MAX, "%s/dma-copy", run);
	else
		len = snprintf(path, PATH_MAX, "%s/dma-copy-%u", tmp == NULL ? "/tmp" : tmp, (unsigned)geteuid());
	return len < PATH_MAX;
}

static int dir_failure(const char *path)
{
	soft_detail("runtime directory %s cannot be used: %s", shown_string(path).text, strerror(errno));
	return -1;
}

/* A process that can write into the directory can pose as a device, so it must belong to us or to a trusted user. */
static int check_dir(const struct soft_config *new, const char *path, const struct stat *st)
{
	if (soft_config_trusts(new, st->st_uid) && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return 0;
	soft_detail("runtime directory %s must belong to user %u, or to one of DMA_COPY_SOFT_USERS, and be writable by "
		    "its owner only (owner %u, mode %o)",
		    shown_string(path).text, (unsigned)geteuid(), (unsigned)st->st_uid,
		    (unsigned)(st->st_mode & 07777));
	return -1;
}

/* The mode after mkdir depends on the umask, so it is set. */
static int examine_dir(const struct soft_config *new, const char *path, int fd, bool made, struct stat *st)
{
	if ((made && soft_set_mode(fd, 0700) != 0) || fstat(fd, st) != 0)
		return dir_failure(path);
	return check_dir(new, path, st);
}

/*
 * nofollow: a default name in a directory that others may write to could be another user's symlink. A directory that
 * was just made is none, unless it was replaced. Returns -1 if refused.
 */
static int open_dir(const struct soft_config *new, const char *path, int nofollow, struct stat *st)
{
	bool made = mkdir(path, 0700) == 0;
	if (!made && errno != EEXIST)
		return dir_failure(path);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | (made ? O_NOFOLLOW : nofollow));
	if (fd < 0)
		return dir_failure(path);
	int err = examine_dir(new, path, fd, made, st);
	if (err == 0)
		return fd;
	close(fd);
	return -1;
}

/* Configuring the same directory again keeps the descriptor, so that descriptors do not accumulate. */
static int reuse_dirfd(int fd, const struct stat *st)
{
	const struct soft_config *old = soft_config();
	struct stat old_st;
	if (old == NULL || fstat(old->dirfd, &old_st) != 0 || old_st.st_dev != st->st_dev ||
	    old_st.st_ino != st->st_ino)
		return fd;
	close(fd);
	return old->dirfd;
}

/* Returns the directory that the caller or the environment names; NULL: none. */
static const char *named_dir(const char *dir)
{
	return dir != NULL ? dir : environment("DMA_COPY_SOFT_DIR");
}

bool soft_choose_dir(const char *dir, char path[PATH_MAX])
{
	dir = named_dir(dir);
	return dir == NULL ? choose_default_dir(path) : snprintf(path, PATH_MAX, "%s", dir) < PATH_MAX;
}

static doca_error_t set_dir(struct soft_config *new, const char *dir)
{
	if (!soft_choose_dir(dir, new->dir)) {
		errno = ENAMETOOLONG;
		dir_failure(new->dir);
		return DOCA_ERROR_OPERATING_SYSTEM;
	}
	struct stat st;
	int fd = open_dir(new, new->dir, named_dir(dir) == NULL ? O_NOFOLLOW : 0, &st);
	if (fd < 0)
		return DOCA_ERROR_OPERATING_SYSTEM;
	new->dirfd = reuse_dirfd(fd, &st);
	return DOCA_SUCCESS;
}

/* ---- Entry points ---- */

static const char *chosen(const char *text, const char *variable)
{
	return text != NULL ? text : getenv(variable);
}

/* Sockets are addressed through /proc, because their paths may be too long for sun_path. */
static doca_error_t check_proc(void)
{
	if (access("/proc/self/fd", X_OK) == 0)
		return DOCA_SUCCESS;
	soft_detail("the software device needs /proc, which is not mounted: /proc/self/fd: %s", strerror(errno));
	return DOCA_ERROR_NOT_SUPPORTED;
}

static doca_error_t parse(struct soft_config *new, const struct soft_settings *settings)
{
	doca_error_t result = soft_parse_limits(chosen(settings->limits, "DMA_COPY_SOFT_LIMITS"), &new->limits);
	if (result == DOCA_SUCCESS)
		result = soft_parse_quirks(chosen(settings->quirks, "DMA_COPY_SOFT_QUIRKS"), &new->quirks);
	if (result == DOCA_SUCCESS)
		result = soft_parse_functions(chosen(settings->functions, "DMA_COPY_SOFT_FUNCTIONS"),
					      &new->function_kinds, &new->places);
	if (result == DOCA_SUCCESS)
		result = soft_parse_faults(chosen(settings->faults, "DMA_COPY_SOFT_FAULTS"), &new->faults);
	if (result == DOCA_SUCCESS)
		result = parse_users(chosen(settings->users, "DMA_COPY_SOFT_USERS"), new);
	if (result == DOCA_SUCCESS)
		result = check_proc();
	if (result == DOCA_SUCCESS)
		result = set_dir(new, settings->dir);
	return result;
}

static doca_error_t configure(const struct soft_settings *settings)
{
	if (soft_config_is_held()) {
		soft_detail("the software device cannot be configured while devices are open");
		return DOCA_ERROR_IN_USE;
	}
	struct soft_config *new = calloc(1, sizeof(*new));
	if (new == NULL) {
		soft_detail("out of memory");
		return DOCA_ERROR_NO_MEMORY;
	}
	doca_error_t result = parse(new, settings);
	if (result != DOCA_SUCCESS) {
		soft_free_faults(new->faults);
		free(new);
		return result;
	}
	soft_config_set(new);
	soft_place_functions(&new->places);
	soft_sweep_runtime_dir();
	return DOCA_SUCCESS;
}

doca_error_t soft_configure_all(const struct soft_settings *settings, char *error, size_t error_size)
{
	pthread_mutex_lock(&configure_lock);
	doca_error_t result = configure(settings);
	pthread_mutex_unlock(&configure_lock);
	if (result != DOCA_SUCCESS && error_size > 0)
		snprintf(error, error_size, "%s", soft_last_detail());
	return result;
}

doca_error_t soft_configure(const char *dir, const char *limits, char *error, size_t error_size)
{
	return soft_configure_all(&(struct soft_settings){.dir = dir, .limits = limits}, error, error_size);
}

doca_error_t soft_ensure_configured(void)
{
	pthread_mutex_lock(&configure_lock);
	doca_error_t result = soft_config() != NULL ? DOCA_SUCCESS : configure(&(struct soft_settings){0});
	pthread_mutex_unlock(&configure_lock);
	return result;
}

void soft_unconfigure(void)
{
	soft_background_end();
	struct soft_config *old = soft_config_take();
	int closed = -1;
	while (old != NULL) {
		struct soft_config *previous = old->previous;
		if (old->dirfd != closed)
			close(old->dirfd);
		closed = old->dirfd;
		soft_free_faults(old->faults);
		free(old);
		old = previous;
	}
}

bool soft_would_trust_user(uint32_t uid)
{
	struct soft_config would = {0};
	if (parse_users(getenv("DMA_COPY_SOFT_USERS"), &would) != DOCA_SUCCESS)
		would.num_users = 0; /* configuring the device reports the error */
	return soft_config_trusts(&would, uid);
}

bool soft_describe_model(char *text, size_t size)
{
	text[0] = '\0';
	if (soft_ensure_configured() != DOCA_SUCCESS)
		return true;
	soft_model_describe(soft_limits(), text, size);
	return soft_limits()->move_bytes != 0;
}
