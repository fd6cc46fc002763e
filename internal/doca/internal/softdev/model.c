/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <stdio.h>
#include <string.h>

#include "core.h"

/* What makes a model; a preset sets all of it, so that naming another leaves nothing of the first. */
struct numbers {
	uint64_t latency_ns, task_mb_per_s, read_mb_per_s, write_mb_per_s;
	uint64_t read_gap_ns, write_gap_ns, optimized_gap_ns, at_once;
};

/* bluefield3 is a fit of published rows. bluefield2 has half its bandwidth, as PCIe 4.0 has half that of 5.0, and 400g
 * that of a 400 Gb/s port, both by assumption. */
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

doca_error_t soft_model_choose(struct soft_limits *limits, const char *name, size_t len)
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
