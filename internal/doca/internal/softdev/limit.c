/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "limit.h"

#include <string.h>

#include "core.h"
#include "model.h"

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

bool soft_parse_number(const char *text, const char *end, uint64_t *number)
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
	if (!soft_parse_number(equals + 1, end, &value) || value < limit->least || value > limit->most) {
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

/* The model comes first wherever it stands: numbers beside it are meant to alter it. */
doca_error_t soft_parse_limits(const char *text, struct soft_limits *limits)
{
	*limits = soft_default_limits;
	if (text == NULL || *text == '\0')
		return DOCA_SUCCESS;
	doca_error_t result = for_each_item(text, limits, apply_model);
	return result == DOCA_SUCCESS ? for_each_item(text, limits, apply_number) : result;
}
