/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "topology.h"

#include <string.h>

enum { HOST_PF0, HOST_PF1, HOST_VF, HOST_SF, DPU_PF0, DPU_PF1 };

#define PF DOCA_PCI_FUNC_TYPE_PF
#define VF DOCA_PCI_FUNC_TYPE_VF
#define SF DOCA_PCI_FUNC_TYPE_SF

/* A scalable function has its parent's PCI address, so it has a Comch key of its own. */
static const struct doca_devinfo functions[SOFT_NUM_FUNCTIONS] = {
	[HOST_PF0] = {SOFT_HOST, PF, 0, "0000:b1:00.0", "0000:b1:00.0", "mlx5_0", "enp177s0f0np0", 0},
	[HOST_PF1] = {SOFT_HOST, PF, 0, "0000:b1:00.1", "0000:b1:00.1", "mlx5_1", "enp177s0f1np1", 1},
	[HOST_VF] = {SOFT_HOST, VF, 0, "0000:b1:00.2", "0000:b1:00.2", "mlx5_4", "enp177s0f0v0", 4},
	[HOST_SF] = {SOFT_HOST, SF, 4, "0000:b1:00.0", "sf04:b1:00.0", "mlx5_5", "enp177s0f0s4", 5},
	[DPU_PF0] = {SOFT_DPU, PF, 0, "0000:03:00.0", "0000:03:00.0", "mlx5_2", "p0", 2},
	[DPU_PF1] = {SOFT_DPU, PF, 0, "0000:03:00.1", "0000:03:00.1", "mlx5_3", "p1", 3},
};

#define DEVICE(function)                                                      \
	{                                                                     \
		.info = &functions[function], .clock = SOFT_CLOCK_INITIALIZER \
	}

struct doca_dev soft_devices[SOFT_NUM_FUNCTIONS] = {
	DEVICE(HOST_PF0), DEVICE(HOST_PF1), DEVICE(HOST_VF), DEVICE(HOST_SF), DEVICE(DPU_PF0), DEVICE(DPU_PF1),
};

#define REPRESENTORS                                                                  \
	{                                                                             \
		{&functions[HOST_PF0], "SOFT00000000MLNXS0D0F0", "pf0hpf"},           \
			{&functions[HOST_PF1], "SOFT00000000MLNXS0D0F1", "pf1hpf"},   \
			{&functions[HOST_VF], "SOFT00000000MLNXS0D0F0VF1", "pf0vf0"}, \
			{&functions[HOST_SF], "SOFT00000000MLNXS0D0F0SF4", "pf0sf4"}, \
	}

struct soft_representors soft_representors[SOFT_NUM_REPRESENTED] = {
	{&soft_devices[DPU_PF0], REPRESENTORS},
	{&soft_devices[DPU_PF1], REPRESENTORS},
};

static uint32_t function_kinds(void)
{
	const struct soft_config *now = soft_config();
	return now == NULL ? 0 : now->function_kinds;
}

bool soft_function_exists(const struct doca_devinfo *function)
{
	return function->kind == PF || (function_kinds() & 1U << function->kind) != 0;
}

/* ---- Settings ---- */

/* 0: not a kind that can be asked for. */
static uint32_t find_kind(const char *item, size_t len)
{
	if (len != strlen("vf"))
		return 0;
	if (memcmp(item, "vf", len) == 0)
		return 1U << VF;
	return memcmp(item, "sf", len) == 0 ? 1U << SF : 0;
}

doca_error_t soft_parse_functions(const char *text, uint32_t *kinds)
{
	*kinds = 0;
	if (text == NULL || *text == '\0')
		return DOCA_SUCCESS;
	for (const char *item = text;; item++) {
		const char *end = strchrnul(item, ',');
		uint32_t kind = find_kind(item, (size_t)(end - item));
		if (kind == 0) {
			soft_detail("function \"%s\" of the software device is not known: it can be vf or sf",
				    shown(item, (size_t)(end - item)).text);
			return DOCA_ERROR_INVALID_VALUE;
		}
		*kinds |= kind;
		if (*end == '\0')
			return DOCA_SUCCESS;
		item = end;
	}
}
