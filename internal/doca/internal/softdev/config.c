/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fault.h"
#include "model.h"
#include "quirk.h"
#include "topology.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Other users whose processes may be peers. */
#define MAX_USERS 16

/* What one soft_configure decided. Readers hold pointers into it without a lock, so it is replaced, never changed, and
 * the replaced ones are kept. */
struct configuration {
	struct configuration *previous;
	struct soft_limits limits;
	uint32_t quirks;
	uint32_t function_kinds;
	struct soft_faults *faults;
	unsigned num_users;
	uid_t users[MAX_USERS];
	int dirfd;
	char dir[PATH_MAX];
};

static pthread_mutex_t configure_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct configuration *) current;

/* ---- Limits ---- */

static const struct soft_limits default_limits = {
	.max_buf_size = 2 << 20,
	.max_buf_list_len = 64,
	.max_dma_tasks = 1024,
	.max_msg_size = 4080,
	.max_name_len = 64,
	.max_recv_queue_size = 8192,
	.max_send_tasks = 8192,
	.max_clients = 512,
	.max_fast_tasks = 1024,
	.max_fast_buf_size = 1 << 30,
	.max_imm_data_len = 128,
	.max_consumers = 64,
	.max_producers = 64,
	.max_export_size = 256,
	.task_latency_us = 0,
	.pin_files = 1,
	.remote_mapping = 1,
	.move_bytes = 1,
};

struct limit {
	const char *name;
	size_t offset;
	uint64_t least, most;
};

#define LIMIT(name, least, most)                                       \
	{                                                              \
#name, offsetof(struct soft_limits, name), least, most \
	}

/* The largest values keep what is allocated for them, and the 32 bits in which DOCA reports most of them, in bounds. */
static const struct limit limit_table[] = {
	LIMIT(max_buf_size, 1, 1ULL << 40),
	LIMIT(max_buf_list_len, 1, 1 << 16),
	LIMIT(max_dma_tasks, 1, 1 << 20),
	LIMIT(max_msg_size, 1, 1 << 16),
	LIMIT(max_name_len, 2, 255),
	LIMIT(max_recv_queue_size, 1, 1 << 20),
	LIMIT(max_send_tasks, 1, 1 << 20),
	LIMIT(max_clients, 1, 1 << 16),
	LIMIT(max_fast_tasks, 1, 1 << 16),
	LIMIT(max_fast_buf_size, 1, UINT32_MAX),
	LIMIT(max_imm_data_len, 0, 4096),
	LIMIT(max_consumers, 1, 1 << 12),
	LIMIT(max_producers, 1, 1 << 12),
	LIMIT(max_export_size, 1, 1 << 16),
	LIMIT(task_latency_us, 0, 60 * 1000 * 1000),
	LIMIT(pin_files, 0, 1),
	LIMIT(remote_mapping, 0, 1),
	LIMIT(dma_latency_ns, 0, 60ULL * 1000 * 1000 * 1000),
	LIMIT(dma_task_mb_per_s, 0, 10 * 1000 * 1000),
	LIMIT(dma_read_mb_per_s, 0, 10 * 1000 * 1000),
	LIMIT(dma_write_mb_per_s, 0, 10 * 1000 * 1000),
	LIMIT(dma_read_gap_ns, 0, 1000 * 1000 * 1000),
	LIMIT(dma_write_gap_ns, 0, 1000 * 1000 * 1000),
	LIMIT(dma_optimized_gap_ns, 0, 1000 * 1000 * 1000),
	LIMIT(dma_at_once, 0, SOFT_MOST_AT_ONCE),
	LIMIT(move_bytes, 0, 1),
};

#define NUM_LIMITS (sizeof(limit_table) / sizeof(limit_table[0]))

/* A model is named, not numbered. */
_Static_assert((NUM_LIMITS + 1) * sizeof(uint64_t) == sizeof(struct soft_limits), "every limit is in the table");

static const struct limit *find_limit(const char *name, size_t len)
{
	for (size_t i = 0; i < NUM_LIMITS; i++) {
		if (strlen(limit_table[i].name) == len && memcmp(limit_table[i].name, name, len) == 0)
			return &limit_table[i];
	}
	return NULL;
}

/* Decimal digits up to end, and nothing else. */
static bool parse_number(const char *text, const char *end, uint64_t *number)
{
	uint64_t value = 0;
	for (const char *p = text; p < end; p++) {
		if (*p < '0' || *p > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return false;
	}
	*number = value;
	return text < end;
}

static doca_error_t apply_limit(struct soft_limits *limits, const char *item, const char *end)
{
	const char *equals = memchr(item, '=', (size_t)(end - item));
	const struct limit *limit = equals == NULL ? NULL : find_limit(item, (size_t)(equals - item));
	if (limit == NULL) {
		soft_detail("limit \"%s\" of the software device is not known", shown(item, (size_t)(end - item)).text);
		return DOCA_ERROR_INVALID_VALUE;
	}
	uint64_t value;
	if (!parse_number(equals + 1, end, &value) || value < limit->least || value > limit->most) {
		soft_detail("limit %s of the software device must be a number from %llu to %llu, not \"%s\"",
			    limit->name, (unsigned long long)limit->least, (unsigned long long)limit->most,
			    shown(equals + 1, (size_t)(end - equals - 1)).text);
		return DOCA_ERROR_INVALID_VALUE;
	}
	memcpy((char *)limits + limit->offset, &value, sizeof(value));
	return DOCA_SUCCESS;
}

static const char model_is[] = "model=";
#define MODEL_IS_LEN (sizeof(model_is) - 1)

static bool names_model(const char *item)
{
	return strncmp(item, model_is, MODEL_IS_LEN) == 0;
}

static doca_error_t apply_model(struct soft_limits *limits, const char *item, const char *end)
{
	const char *name = item + MODEL_IS_LEN;
	return names_model(item) ? soft_model_choose(limits, name, (size_t)(end - name)) : DOCA_SUCCESS;
}

static doca_error_t apply_number(struct soft_limits *limits, const char *item, const char *end)
{
	return names_model(item) ? DOCA_SUCCESS : apply_limit(limits, item, end);
}

static doca_error_t for_each_item(const char *text, struct soft_limits *limits,
				  doca_error_t (*apply)(struct soft_limits *, const char *, const char *))
{
	for (const char *item = text;; item++) {
		const char *end = strchrnul(item, ',');
		doca_error_t result = apply(limits, item, end);
		if (result != DOCA_SUCCESS || *end == '\0')
			return result;
		item = end;
	}
}

/* "name=value,name=value", or nothing. The model comes first wherever it stands: numbers beside it are meant to alter it. */
static doca_error_t parse_limits(const char *text, struct soft_limits *limits)
{
	*limits = default_limits;
	if (text == NULL || *text == '\0')
		return DOCA_SUCCESS;
	doca_error_t result = for_each_item(text, limits, apply_model);
	return result == DOCA_SUCCESS ? for_each_item(text, limits, apply_number) : result;
}

/* ---- Other users ---- */

static doca_error_t bad_user(const char *item, const char *end)
{
	soft_detail("DMA_COPY_SOFT_USERS must be at most %d user ids such as 1000,1001, not \"%s\"", MAX_USERS,
		    shown(item, (size_t)(end - item)).text);
	return DOCA_ERROR_INVALID_VALUE;
}

/* The largest number is no user's: the kernel takes it for none. */
static doca_error_t add_user(struct configuration *new, const char *item, const char *end)
{
	uint64_t uid;
	if (!parse_number(item, end, &uid) || uid >= UINT32_MAX || new->num_users == MAX_USERS)
		return bad_user(item, end);
	new->users[new->num_users++] = (uid_t)uid;
	return DOCA_SUCCESS;
}

/* "uid,uid", or nothing. */
static doca_error_t parse_users(const char *text, struct configuration *new)
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

static bool trusts(const struct configuration *now, uid_t uid)
{
	if (uid == geteuid())
		return true;
	for (unsigned i = 0; i < now->num_users; i++) {
		if (now->users[i] == uid)
			return true;
	}
	return false;
}

/* ---- Runtime directory ---- */

static const char *environment(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && *value != '\0' ? value : NULL;
}

static bool is_directory(const char *path)
{
	struct stat st;
	return path != NULL && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool choose_default_dir(char path[PATH_MAX])
{
	const char *run = environment("XDG_RUNTIME_DIR");
	const char *tmp = environment("TMPDIR");
	int len;
	if (is_directory(run))
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

/* Whoever can write into the directory can pose as a device, so it must belong to us or to a user whom we trust. */
static int check_dir(const struct configuration *new, const char *path, const struct stat *st)
{
	if (trusts(new, st->st_uid) && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return 0;
	soft_detail("runtime directory %s must belong to user %u, or to one of DMA_COPY_SOFT_USERS, and be writable by "
		    "its owner only (owner %u, mode %o)",
		    shown_string(path).text, (unsigned)geteuid(), (unsigned)st->st_uid,
		    (unsigned)(st->st_mode & 07777));
	return -1;
}

int soft_set_mode(int fd, mode_t mode)
{
	char link[32];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* fchmod takes no O_PATH */
	return chmod(link, mode);
}

/* What mkdir has made has the mode less the umask. */
static int examine_dir(const struct configuration *new, const char *path, int fd, bool made, struct stat *st)
{
	if ((made && soft_set_mode(fd, 0700) != 0) || fstat(fd, st) != 0)
		return dir_failure(path);
	return check_dir(new, path, st);
}

/*
 * nofollow: a default name in a directory that others may write to could be a symlink of theirs. What was just made is
 * none, unless it was replaced. -1: refused.
 */
static int open_dir(const struct configuration *new, const char *path, int nofollow, struct stat *st)
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

/* Configured again with the same directory, the descriptor stays the same, so that they do not pile up. */
static int reuse_dirfd(int fd, const struct stat *st)
{
	const struct configuration *old = atomic_load(&current);
	struct stat old_st;
	if (old == NULL || fstat(old->dirfd, &old_st) != 0 || old_st.st_dev != st->st_dev ||
	    old_st.st_ino != st->st_ino)
		return fd;
	close(fd);
	return old->dirfd;
}

/* The directory that the caller or the environment names; NULL: none. */
static const char *named_dir(const char *dir)
{
	return dir != NULL ? dir : environment("DMA_COPY_SOFT_DIR");
}

bool soft_choose_dir(const char *dir, char path[PATH_MAX])
{
	dir = named_dir(dir);
	return dir == NULL ? choose_default_dir(path) : snprintf(path, PATH_MAX, "%s", dir) < PATH_MAX;
}

static doca_error_t set_dir(struct configuration *new, const char *dir)
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

/* Sockets, whose addresses may be too long otherwise, are reached through it. Without it no peer is ever found. */
static doca_error_t check_proc(void)
{
	if (access("/proc/self/fd", X_OK) == 0)
		return DOCA_SUCCESS;
	soft_detail("the software device needs /proc, which is not mounted: /proc/self/fd: %s", strerror(errno));
	return DOCA_ERROR_NOT_SUPPORTED;
}

static doca_error_t parse(struct configuration *new, const struct soft_settings *settings)
{
	doca_error_t result = parse_limits(chosen(settings->limits, "DMA_COPY_SOFT_LIMITS"), &new->limits);
	if (result == DOCA_SUCCESS)
		result = soft_parse_quirks(chosen(settings->quirks, "DMA_COPY_SOFT_QUIRKS"), &new->quirks);
	if (result == DOCA_SUCCESS)
		result = soft_parse_functions(chosen(settings->functions, "DMA_COPY_SOFT_FUNCTIONS"),
					      &new->function_kinds);
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
	if (soft_dev_any_open()) {
		soft_detail("the software device cannot be configured while devices are open");
		return DOCA_ERROR_IN_USE;
	}
	struct configuration *new = calloc(1, sizeof(*new));
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
	new->previous = atomic_load(&current);
	atomic_store(&current, new);
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
	doca_error_t result = atomic_load(&current) != NULL ? DOCA_SUCCESS : configure(&(struct soft_settings){0});
	pthread_mutex_unlock(&configure_lock);
	return result;
}

void soft_unconfigure(void)
{
	struct configuration *old = atomic_exchange(&current, NULL);
	int closed = -1;
	while (old != NULL) {
		struct configuration *previous = old->previous;
		if (old->dirfd != closed)
			close(old->dirfd);
		closed = old->dirfd;
		soft_free_faults(old->faults);
		free(old);
		old = previous;
	}
}

const struct soft_limits *soft_limits(void)
{
	const struct configuration *now = atomic_load(&current);
	return now == NULL ? &default_limits : &now->limits;
}

bool soft_has_quirk(enum soft_quirk quirk)
{
	const struct configuration *now = atomic_load(&current);
	return now != NULL && (now->quirks & 1U << quirk) != 0;
}

uint32_t soft_function_kinds(void)
{
	const struct configuration *now = atomic_load(&current);
	return now == NULL ? 0 : now->function_kinds;
}

struct soft_faults *soft_faults(void)
{
	const struct configuration *now = atomic_load(&current);
	return now == NULL ? NULL : now->faults;
}

bool soft_has_other_users(void)
{
	const struct configuration *now = atomic_load(&current);
	return now != NULL && now->num_users > 0;
}

bool soft_would_trust_user(uint32_t uid)
{
	struct configuration would = {0};
	if (parse_users(getenv("DMA_COPY_SOFT_USERS"), &would) != DOCA_SUCCESS)
		would.num_users = 0; /* which stays an error of the configuration */
	return trusts(&would, uid);
}

bool soft_trusts_user(uint32_t uid)
{
	return soft_ensure_configured() == DOCA_SUCCESS && trusts(atomic_load(&current), uid);
}

const char *soft_runtime_dir(void)
{
	const struct configuration *now = atomic_load(&current);
	return now == NULL ? "" : now->dir;
}

int soft_runtime_dirfd(void)
{
	const struct configuration *now = atomic_load(&current);
	return now == NULL ? -1 : now->dirfd;
}
