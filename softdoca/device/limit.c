/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "limit.h"

#include <stdio.h>
#include <string.h>

#include "config.h"
#include "error.h"
#include "shown.h"
#include "sizes.h"

/* ---- presets of the time model ---- */

/* The limits of a time model. A preset sets all of them, so that naming another one replaces the first completely. */
struct numbers {
	uint64_t latency_ns, task_mb_per_s, read_mb_per_s, write_mb_per_s;
	uint64_t read_gap_ns, write_gap_ns, optimized_gap_ns, at_once;
};

/*
 * bluefield3 is fitted to published measurements. By assumption, bluefield2 has half its bandwidth, as PCIe 4.0 has
 * half the bandwidth of 5.0, and 400g the bandwidth of a 400 Gb/s port.
 */
static const struct preset {
	const char *name;
	struct numbers numbers;
} presets[] = {
	{"bluefield2", {1437, 10787, 19059, 15784, 308, 258, 163, 0}},
	{"bluefield3", {1437, 10787, 38118, 31568, 308, 258, 163, 0}},
	{"400g", {1437, 10787, 50000, 50000, 308, 258, 163, 0}},
};

#define NUM_PRESETS (sizeof(presets) / sizeof(presets[0]))

static void set_numbers(struct soft_limits *limits, const struct numbers *n)
{
	limits->dma_latency_ns = n->latency_ns;
	limits->dma_task_mb_per_s = n->task_mb_per_s;
	limits->dma_read_mb_per_s = n->read_mb_per_s;
	limits->dma_write_mb_per_s = n->write_mb_per_s;
	limits->dma_read_gap_ns = n->read_gap_ns;
	limits->dma_write_gap_ns = n->write_gap_ns;
	limits->dma_optimized_gap_ns = n->optimized_gap_ns;
	limits->dma_at_once = n->at_once;
}

static struct numbers numbers_of(const struct soft_limits *limits)
{
	return (struct numbers){
		limits->dma_latency_ns,       limits->dma_task_mb_per_s, limits->dma_read_mb_per_s,
		limits->dma_write_mb_per_s,   limits->dma_read_gap_ns,   limits->dma_write_gap_ns,
		limits->dma_optimized_gap_ns, limits->dma_at_once,
	};
}

static bool same(const struct numbers *a, const struct numbers *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Sets the limits of the preset called name[0..len). INVALID_VALUE, with the detail, if there is none. */
static doca_error_t choose_model(struct soft_limits *limits, const char *name, size_t len)
{
	for (size_t i = 0; i < NUM_PRESETS; i++) {
		if (strlen(presets[i].name) != len || memcmp(presets[i].name, name, len) != 0)
			continue;
		set_numbers(limits, &presets[i].numbers);
		limits->model = i + 1;
		return DOCA_SUCCESS;
	}
	soft_detail("model of the software device must be bluefield2, bluefield3 or 400g, not \"%s\"",
		    shown(name, len).text);
	return DOCA_ERROR_INVALID_VALUE;
}

bool soft_model_on(const struct soft_limits *limits)
{
	static const struct numbers none;
	struct numbers n = numbers_of(limits);
	return !same(&n, &none);
}

/* ---- In words ---- */

static const char *name_of(const struct soft_limits *limits)
{
	return limits->model == 0 ? "custom" : presets[limits->model - 1].name;
}

static const char *alteration(const struct soft_limits *limits)
{
	struct numbers n = numbers_of(limits);
	return limits->model == 0 || same(&n, &presets[limits->model - 1].numbers) ? "" : " with other numbers";
}

static const char *rate_text(char text[32], uint64_t mb_per_s)
{
	if (mb_per_s == 0)
		return "no bound";
	snprintf(text, 32, "%.1f GB/s", (double)mb_per_s / 1000);
	return text;
}

void soft_model_describe(const struct soft_limits *limits, char *text, size_t size)
{
	char read[32], write[32];
	text[0] = '\0';
	if (!soft_model_on(limits))
		return;
	snprintf(text, size, "%s%s: read %s, write %s, %llu ns per task", name_of(limits), alteration(limits),
		 rate_text(read, limits->dma_read_mb_per_s), rate_text(write, limits->dma_write_mb_per_s),
		 (unsigned long long)limits->dma_latency_ns);
}

/* ---- limits ---- */

struct limit {
	const char *name;
	size_t offset;
	uint64_t least, most;
};

#define LIMIT(name, least, most)                                       \
	{                                                              \
#name, offsetof(struct soft_limits, name), least, most \
	}

/* The maxima keep allocations, and the 32 bits in which DOCA reports most limits, in bounds. */
static const struct limit limit_table[] = {
	LIMIT(max_buf_size, 1, 1ULL << 40),
	LIMIT(max_buf_list_len, 1, 1 << 16),
	LIMIT(max_dma_tasks, 1, 1 << 20),
	LIMIT(max_msg_size, 1, 1 << 16),
	LIMIT(max_name_len, 2, 255),
	LIMIT(max_recv_queue_size, 1, 1 << 20),
	LIMIT(max_send_tasks, 1, 1 << 20),
	LIMIT(max_clients, 1, 1 << 16),
	LIMIT(max_fast_tasks, 1, SOFT_MAX_FAST_TASKS),
	LIMIT(max_fast_buf_size, 1, UINT32_MAX),
	LIMIT(max_imm_data_len, 0, SOFT_MAX_IMM_DATA),
	LIMIT(max_consumers, 1, 1 << 12),
	LIMIT(max_producers, 1, 1 << 12),
	LIMIT(max_export_size, 1, 1 << 16),
	LIMIT(task_latency_us, 0, 60 * 1000 * 1000),
	LIMIT(pin_files, 0, 1),
	LIMIT(remote_mapping, 0, 1),
	LIMIT(dpa_kernel_ms, 0, 24 * 60 * 60 * 1000),
	LIMIT(sync_wait_ms, 0, 24 * 60 * 60 * 1000),
	LIMIT(dma_latency_ns, 0, 60ULL * 1000 * 1000 * 1000),
	LIMIT(dma_task_mb_per_s, 0, 10 * 1000 * 1000),
	LIMIT(dma_read_mb_per_s, 0, 10 * 1000 * 1000),
	LIMIT(dma_write_mb_per_s, 0, 10 * 1000 * 1000),
	LIMIT(dma_read_gap_ns, 0, 1000 * 1000 * 1000),
	LIMIT(dma_write_gap_ns, 0, 1000 * 1000 * 1000),
	LIMIT(dma_optimized_gap_ns, 0, 1000 * 1000 * 1000),
	LIMIT(dma_at_once, 0, SOFT_MAX_AT_ONCE),
	LIMIT(move_bytes, 0, 1),
};

#define NUM_LIMITS (sizeof(limit_table) / sizeof(limit_table[0]))

/* The model is set by name, not by number. */
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

static const char model_prefix[] = "model=";
#define MODEL_PREFIX_LEN (sizeof(model_prefix) - 1)

static bool names_model(const char *item)
{
	return strncmp(item, model_prefix, MODEL_PREFIX_LEN) == 0;
}

static doca_error_t apply_model(struct soft_limits *limits, const char *item, const char *end)
{
	const char *name = item + MODEL_PREFIX_LEN;
	return names_model(item) ? choose_model(limits, name, (size_t)(end - name)) : DOCA_SUCCESS;
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

/* The model is applied first, wherever it stands, so that numbers next to it change it. */
doca_error_t soft_parse_limits(const char *text, struct soft_limits *limits)
{
	*limits = soft_default_limits;
	if (text == NULL || *text == '\0')
		return DOCA_SUCCESS;
	doca_error_t result = for_each_item(text, limits, apply_model);
	return result == DOCA_SUCCESS ? for_each_item(text, limits, apply_number) : result;
}
