/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "dev.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "configure.h"
#include "error.h"
#include "schedule.h"
#include "shown.h"
#include "soft.h"

#define NUM_HOST_FUNCTIONS 4
#define NUM_FUNCTIONS 6
#define NUM_REPRESENTED 2

enum { HOST_PF0, HOST_PF1, HOST_VF, HOST_SF, DPU_PF0, DPU_PF1 };

#define PF DOCA_PCI_FUNC_TYPE_PF
#define VF DOCA_PCI_FUNC_TYPE_VF
#define SF DOCA_PCI_FUNC_TYPE_SF

/* Set by soft_place_functions. A scalable function has its parent's. */
static char addresses[NUM_FUNCTIONS][DOCA_DEVINFO_PCI_ADDR_SIZE] = {
	[HOST_PF0] = "0000:b1:00.0", [HOST_PF1] = "0000:b1:00.1", [HOST_VF] = "0000:b1:00.2",
	[HOST_SF] = "0000:b1:00.0",  [DPU_PF0] = "0000:03:00.0",  [DPU_PF1] = "0000:03:00.1",
};

/* The Comch key is the same in all processes, wherever they have the functions. */
static const struct doca_devinfo functions[NUM_FUNCTIONS] = {
	[HOST_PF0] = {SOFT_HOST, PF, 0, addresses[HOST_PF0], "0000:b1:00.0", "mlx5_0", "enp177s0f0np0", 0},
	[HOST_PF1] = {SOFT_HOST, PF, 0, addresses[HOST_PF1], "0000:b1:00.1", "mlx5_1", "enp177s0f1np1", 1},
	[HOST_VF] = {SOFT_HOST, VF, 0, addresses[HOST_VF], "0000:b1:00.2", "mlx5_4", "enp177s0f0v0", 4},
	[HOST_SF] = {SOFT_HOST, SF, 4, addresses[HOST_SF], "sf04:b1:00.0", "mlx5_5", "enp177s0f0s4", 5},
	[DPU_PF0] = {SOFT_DPU, PF, 0, addresses[DPU_PF0], "0000:03:00.0", "mlx5_2", "p0", 2},
	[DPU_PF1] = {SOFT_DPU, PF, 0, addresses[DPU_PF1], "0000:03:00.1", "mlx5_3", "p1", 3},
};

#define DEVICE(function)                                                      \
	{                                                                     \
		.info = &functions[function], .clock = SOFT_CLOCK_INITIALIZER \
	}

/* They live as long as the process, so a devinfo outlives its list. */
static struct doca_dev devices[NUM_FUNCTIONS] = {
	DEVICE(HOST_PF0), DEVICE(HOST_PF1), DEVICE(HOST_VF), DEVICE(HOST_SF), DEVICE(DPU_PF0), DEVICE(DPU_PF1),
};

/*
 * Named as on a card: en3f0c1pf0sf4 is SF 4 of PF 0 of controller 1, the host. The number in the VUID of an SF is its
 * function's number, which is not the SF number.
 */
#define REPRESENTORS                                                                              \
	{                                                                                         \
		{&functions[HOST_PF0], "SOFT00000000MLNXS0D0F0", "pf0hpf"},                       \
			{&functions[HOST_PF1], "SOFT00000000MLNXS0D0F1", "pf1hpf"},               \
			{&functions[HOST_VF], "SOFT00000000MLNXS0D0F0VF1", "pf0vf0"},             \
			{&functions[HOST_SF], "SOFT00000000CMLNXS0D0F0SF32768", "en3f0c1pf0sf4"}, \
	}

/* Each function of the DPU has its own representors of all functions of the host. */
static struct representors {
	struct doca_dev *dev;
	struct doca_devinfo_rep infos[NUM_HOST_FUNCTIONS];
} representors[NUM_REPRESENTED] = {
	{&devices[DPU_PF0], REPRESENTORS},
	{&devices[DPU_PF1], REPRESENTORS},
};

static uint32_t function_kinds(void)
{
	const struct soft_config *now = soft_config();
	return now == NULL ? 0 : now->function_kinds;
}

/* A virtual or scalable function exists only if configured. */
static bool function_exists(const struct doca_devinfo *function)
{
	return function->kind == PF || (function_kinds() & 1U << function->kind) != 0;
}

const char *soft_comch_key(const char *name)
{
	for (size_t i = 0; i < NUM_FUNCTIONS; i++) {
		const struct doca_devinfo *info = &functions[i];
		if (strcmp(name, info->pci_addr) == 0 || strcmp(name, info->ibdev_name) == 0 ||
		    strcmp(name, info->iface_name) == 0)
			return info->comch_key;
	}
	for (size_t i = 0; i < NUM_HOST_FUNCTIONS; i++) {
		const struct doca_devinfo_rep *rep = &representors[0].infos[i];
		if (strcmp(name, rep->vuid) == 0 || strcmp(name, rep->iface_name) == 0)
			return rep->function->comch_key;
	}
	return NULL;
}

/* ---- Settings ---- */

/* Returns 0 for a kind that cannot be configured. */
static uint32_t find_kind(const char *item, size_t len)
{
	if (len != strlen("vf"))
		return 0;
	if (memcmp(item, "vf", len) == 0)
		return 1U << VF;
	return memcmp(item, "sf", len) == 0 ? 1U << SF : 0;
}

/* Parses "host=BB:DD" or "dpu=BB:DD", perhaps with a domain. */
static bool parse_place(const char *item, size_t len, struct soft_places *places)
{
	char text[DOCA_DEVINFO_PCI_ADDR_SIZE], addr[DOCA_DEVINFO_PCI_ADDR_SIZE];
	bool dpu = strncmp(item, "dpu=", 4) == 0;
	size_t name = dpu ? 4 : 5;
	if ((!dpu && strncmp(item, "host=", 5) != 0) || len <= name || len - name + 3 > sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s.0", (int)(len - name), item + name);
	if (!soft_parse_pci_addr(text, addr))
		return false;
	memcpy(dpu ? places->dpu : places->host, addr, sizeof(places->host) - 1);
	return true;
}

void soft_place_functions(const struct soft_places *places)
{
	for (size_t i = 0; i < NUM_FUNCTIONS; i++) {
		bool host = functions[i].side == SOFT_HOST;
		memcpy(addresses[i], host ? places->host : places->dpu, sizeof(places->host) - 1);
	}
}

doca_error_t soft_parse_functions(const char *text, uint32_t *kinds, struct soft_places *places)
{
	*kinds = 0;
	*places = (struct soft_places){"0000:b1:00", "0000:03:00"};
	if (text == NULL || *text == '\0')
		return DOCA_SUCCESS;
	for (const char *item = text;; item++) {
		const char *end = strchrnul(item, ',');
		uint32_t kind = find_kind(item, (size_t)(end - item));
		if (kind == 0 && !parse_place(item, (size_t)(end - item), places)) {
			soft_detail("function \"%s\" of the software device is not known: it can be vf or sf, or "
				    "host=BB:DD or dpu=BB:DD for the PCI address of a side",
				    shown(item, (size_t)(end - item)).text);
			return DOCA_ERROR_INVALID_VALUE;
		}
		*kinds |= kind;
		if (*end == '\0')
			return DOCA_SUCCESS;
		item = end;
	}
}

/* Guards doca_dev.opened. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static struct doca_dev *dev_of(const struct doca_devinfo *info)
{
	for (size_t i = 0; i < NUM_FUNCTIONS; i++) {
		if (devices[i].info == info)
			return &devices[i];
	}
	return NULL;
}

static struct doca_dev *dev_of_rep(const struct doca_devinfo_rep *info)
{
	for (size_t i = 0; i < NUM_REPRESENTED; i++) {
		const struct representors *own = &representors[i];
		if (info >= own->infos && info < own->infos + NUM_HOST_FUNCTIONS)
			return own->dev;
	}
	return NULL;
}

static bool is_open(const struct doca_dev *dev)
{
	pthread_mutex_lock(&open_lock);
	bool open = dev->opened > 0;
	pthread_mutex_unlock(&open_lock);
	return open;
}

/* ---- Devices ---- */

/* By default a process sees both sides; a real machine is one. */
static doca_error_t visible_sides(bool *host, bool *dpu)
{
	const char *side = getenv("DMA_COPY_SOFT_SIDE");
	bool all = side == NULL || *side == '\0' || strcmp(side, "all") == 0;
	*host = all || strcmp(side, "host") == 0;
	*dpu = all || strcmp(side, "dpu") == 0;
	if (*host || *dpu)
		return DOCA_SUCCESS;
	soft_detail("DMA_COPY_SOFT_SIDE must be host, dpu or all, not \"%s\"", shown_string(side).text);
	return DOCA_ERROR_INVALID_VALUE;
}

doca_error_t soft_doca_devinfo_create_list(struct doca_devinfo ***dev_list, uint32_t *nb_devs)
{
	if (dev_list == NULL || nb_devs == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	bool host, dpu;
	doca_error_t result = soft_ensure_configured();
	if (result == DOCA_SUCCESS)
		result = visible_sides(&host, &dpu);
	if (result != DOCA_SUCCESS)
		return result;
	struct doca_devinfo **list = calloc(NUM_FUNCTIONS, sizeof(*list));
	if (list == NULL)
		return DOCA_ERROR_NO_MEMORY;
	uint32_t count = 0;
	for (size_t i = 0; i < NUM_FUNCTIONS; i++) {
		const struct doca_devinfo *info = devices[i].info;
		if (function_exists(info) && (info->side == SOFT_HOST ? host : dpu))
			list[count++] = soft_doca_dev_as_devinfo(&devices[i]);
	}
	*dev_list = list;
	*nb_devs = count;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_destroy_list(struct doca_devinfo **dev_list)
{
	if (dev_list == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	free(dev_list);
	return DOCA_SUCCESS;
}

/* Opening an open device returns the same device, which then needs another close. */
doca_error_t soft_doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev)
{
	struct doca_dev *found = dev_of(devinfo);
	if (found == NULL || dev == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&open_lock);
	found->opened++;
	soft_config_hold();
	pthread_mutex_unlock(&open_lock);
	*dev = found;
	return DOCA_SUCCESS;
}

/* NULL is accepted: programs close again what they have closed and set to NULL. */
doca_error_t soft_doca_dev_close(struct doca_dev *dev)
{
	if (dev == NULL)
		return DOCA_SUCCESS;
	doca_error_t result = DOCA_SUCCESS;
	pthread_mutex_lock(&open_lock);
	if (dev->opened == 0)
		result = DOCA_ERROR_INVALID_VALUE;
	else if (dev->opened == 1 && atomic_load(&dev->users) > 0)
		result = DOCA_ERROR_IN_USE;
	else {
		dev->opened--;
		soft_config_drop();
	}
	pthread_mutex_unlock(&open_lock);
	return result;
}

struct doca_devinfo *soft_doca_dev_as_devinfo(const struct doca_dev *dev)
{
	return dev == NULL ? NULL : (struct doca_devinfo *)dev->info;
}

/* ---- Representors ---- */

static bool is_filter(int filter)
{
	return (filter & ~(DOCA_DEVINFO_REP_FILTER_NET | DOCA_DEVINFO_REP_FILTER_EMULATED)) == 0;
}

static struct doca_devinfo_rep *reps_of(const struct doca_dev *dev)
{
	for (size_t i = 0; i < NUM_REPRESENTED; i++) {
		if (representors[i].dev == dev)
			return representors[i].infos;
	}
	return NULL;
}

/* EMULATED selects functions that the DPU emulates; there are none. */
static uint32_t fill_list(int filter, struct doca_devinfo_rep *infos, struct doca_devinfo_rep **list)
{
	uint32_t count = 0;
	for (uint32_t i = 0; filter != DOCA_DEVINFO_REP_FILTER_EMULATED && i < NUM_HOST_FUNCTIONS; i++) {
		if (function_exists(infos[i].function))
			list[count++] = &infos[i];
	}
	return count;
}

doca_error_t soft_doca_devinfo_rep_create_list(struct doca_dev *dev, int filter,
					       struct doca_devinfo_rep ***dev_list_rep, uint32_t *nb_devs_rep)
{
	if (dev == NULL || dev_list_rep == NULL || nb_devs_rep == NULL || !is_open(dev) || !is_filter(filter))
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_devinfo_rep *infos = reps_of(dev);
	if (infos == NULL)
		return DOCA_ERROR_NOT_SUPPORTED;
	struct doca_devinfo_rep **list = calloc(NUM_HOST_FUNCTIONS, sizeof(*list));
	if (list == NULL)
		return DOCA_ERROR_NO_MEMORY;
	*nb_devs_rep = fill_list(filter, infos, list);
	*dev_list_rep = list;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_rep_destroy_list(struct doca_devinfo_rep **dev_list_rep)
{
	if (dev_list_rep == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	free(dev_list_rep);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dev_rep_open(struct doca_devinfo_rep *devinfo, struct doca_dev_rep **dev_rep)
{
	struct doca_dev *dev = dev_of_rep(devinfo);
	if (dev == NULL || dev_rep == NULL || !is_open(dev))
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_dev_rep *rep = calloc(1, sizeof(*rep));
	if (rep == NULL)
		return DOCA_ERROR_NO_MEMORY;
	rep->info = devinfo;
	rep->dev = dev;
	atomic_fetch_add(&dev->users, 1);
	*dev_rep = rep;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dev_rep_close(struct doca_dev_rep *dev)
{
	if (dev == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (atomic_load(&dev->users) > 0)
		return DOCA_ERROR_IN_USE;
	atomic_fetch_sub(&dev->dev->users, 1);
	free(dev);
	return DOCA_SUCCESS;
}

struct doca_devinfo_rep *soft_doca_dev_rep_as_devinfo(struct doca_dev_rep *dev_rep)
{
	return dev_rep == NULL ? NULL : (struct doca_devinfo_rep *)dev_rep->info;
}
