/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "configure.h"
#include "topology.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Guards doca_dev.opened. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static struct doca_dev *dev_of(const struct doca_devinfo *info)
{
	for (size_t i = 0; i < SOFT_NUM_FUNCTIONS; i++) {
		if (soft_devices[i].info == info)
			return &soft_devices[i];
	}
	return NULL;
}

static struct doca_dev *dev_of_rep(const struct doca_devinfo_rep *info)
{
	for (size_t i = 0; i < SOFT_NUM_REPRESENTED; i++) {
		const struct soft_representors *own = &soft_representors[i];
		if (info >= own->infos && info < own->infos + SOFT_NUM_HOST_FUNCTIONS)
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

/* A real machine is one side of the cable; a process that plays both wants both. */
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
	struct doca_devinfo **list = calloc(SOFT_NUM_FUNCTIONS, sizeof(*list));
	if (list == NULL)
		return DOCA_ERROR_NO_MEMORY;
	uint32_t count = 0;
	for (size_t i = 0; i < SOFT_NUM_FUNCTIONS; i++) {
		const struct doca_devinfo *info = soft_devices[i].info;
		if (soft_function_exists(info) && (info->side == SOFT_HOST ? host : dpu))
			list[count++] = soft_doca_dev_as_devinfo(&soft_devices[i]);
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

/* Opening again what is open gives the same device, which then wants one close more. */
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

/* NULL is accepted, as free accepts it: programs close what they have closed and set to NULL before. */
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
	for (size_t i = 0; i < SOFT_NUM_REPRESENTED; i++) {
		if (soft_representors[i].dev == dev)
			return soft_representors[i].infos;
	}
	return NULL;
}

/* EMULATED names functions that the DPU makes up itself; there are none. */
static uint32_t fill_list(int filter, struct doca_devinfo_rep *infos, struct doca_devinfo_rep **list)
{
	uint32_t count = 0;
	for (uint32_t i = 0; filter != DOCA_DEVINFO_REP_FILTER_EMULATED && i < SOFT_NUM_HOST_FUNCTIONS; i++) {
		if (soft_function_exists(infos[i].function))
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
	struct doca_devinfo_rep **list = calloc(SOFT_NUM_HOST_FUNCTIONS, sizeof(*list));
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

/* ---- Addresses and names ---- */

/* "DDDD:BB:DD.F" or "BB:DD.F", hexadecimal digits of either case, to the long form in lower case. */
static bool parse_pci_addr(const char *text, char addr[DOCA_DEVINFO_PCI_ADDR_SIZE])
{
	static const char form[DOCA_DEVINFO_PCI_ADDR_SIZE] = "xxxx:xx:xx.x";
	size_t len = strnlen(text, DOCA_DEVINFO_PCI_ADDR_SIZE);
	if (len != strlen(form) && len != strlen("xx:xx.x"))
		return false;
	snprintf(addr, DOCA_DEVINFO_PCI_ADDR_SIZE, "%s%.*s", len == strlen(form) ? "" : "0000:", (int)len, text);
	for (size_t i = 0; form[i] != '\0'; i++) {
		if (form[i] == 'x' ? !isxdigit((unsigned char)addr[i]) : addr[i] != form[i])
			return false;
		addr[i] = (char)tolower((unsigned char)addr[i]);
	}
	/* A device number has five bits, a function number three. */
	return addr[8] <= '1' && addr[11] <= '7';
}

static doca_error_t compare_pci_addr(const char *own, const char *text, uint8_t *is_equal)
{
	char addr[DOCA_DEVINFO_PCI_ADDR_SIZE];
	if (text == NULL || is_equal == NULL || !parse_pci_addr(text, addr))
		return DOCA_ERROR_INVALID_VALUE;
	*is_equal = strcmp(own, addr) == 0;
	return DOCA_SUCCESS;
}

/* DOCA refuses a buffer that is smaller than its documented size, whether or not this name would fit. */
static doca_error_t give_name(const char *name, char *buffer, uint32_t size, uint32_t documented_size)
{
	if (buffer == NULL || size < documented_size)
		return DOCA_ERROR_INVALID_VALUE;
	snprintf(buffer, size, "%s", name);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo, char *pci_addr_str)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE
			       : give_name(devinfo->pci_addr, pci_addr_str, DOCA_DEVINFO_PCI_ADDR_SIZE,
					   DOCA_DEVINFO_PCI_ADDR_SIZE);
}

doca_error_t soft_doca_devinfo_is_equal_pci_addr(const struct doca_devinfo *devinfo, const char *pci_addr_str,
						 uint8_t *is_equal)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE : compare_pci_addr(devinfo->pci_addr, pci_addr_str, is_equal);
}

doca_error_t soft_doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo, char *iface_name, uint32_t size)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE
			       : give_name(devinfo->iface_name, iface_name, size, DOCA_DEVINFO_IFACE_NAME_SIZE);
}

doca_error_t soft_doca_devinfo_get_ibdev_name(const struct doca_devinfo *devinfo, char *ibdev_name, uint32_t size)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE
			       : give_name(devinfo->ibdev_name, ibdev_name, size, DOCA_DEVINFO_IBDEV_NAME_SIZE);
}

doca_error_t soft_doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep, char *rep_vuid, uint32_t size)
{
	return devinfo_rep == NULL ? DOCA_ERROR_INVALID_VALUE
				   : give_name(devinfo_rep->vuid, rep_vuid, size, DOCA_DEVINFO_REP_VUID_SIZE);
}

doca_error_t soft_doca_devinfo_rep_get_pci_addr_str(const struct doca_devinfo_rep *devinfo_rep, char *pci_addr_str)
{
	return devinfo_rep == NULL ? DOCA_ERROR_INVALID_VALUE
				   : give_name(devinfo_rep->function->pci_addr, pci_addr_str,
					       DOCA_DEVINFO_REP_PCI_ADDR_SIZE, DOCA_DEVINFO_REP_PCI_ADDR_SIZE);
}

doca_error_t soft_doca_devinfo_rep_get_pci_func_type(const struct doca_devinfo_rep *devinfo_rep,
						     enum doca_pci_func_type *pci_func_type)
{
	if (devinfo_rep == NULL || pci_func_type == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*pci_func_type = devinfo_rep->function->kind;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_rep_is_equal_pci_addr(const struct doca_devinfo_rep *devinfo_rep,
						     const char *pci_addr_str, uint8_t *is_equal)
{
	return devinfo_rep == NULL ? DOCA_ERROR_INVALID_VALUE
				   : compare_pci_addr(devinfo_rep->function->pci_addr, pci_addr_str, is_equal);
}

/* ---- Capabilities ---- */

static doca_error_t is_on_side(const struct doca_devinfo *devinfo, enum soft_side side, uint8_t *answer)
{
	if (devinfo == NULL || answer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*answer = devinfo->side == side;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_rep_cap_is_filter_all_supported(const struct doca_devinfo *devinfo,
							       uint8_t *filter_all_supported)
{
	return is_on_side(devinfo, SOFT_DPU, filter_all_supported);
}

doca_error_t soft_doca_devinfo_rep_cap_is_filter_net_supported(const struct doca_devinfo *devinfo,
							       uint8_t *filter_net_supported)
{
	return is_on_side(devinfo, SOFT_DPU, filter_net_supported);
}

doca_error_t soft_doca_mmap_cap_is_export_pci_supported(const struct doca_devinfo *devinfo, uint8_t *mmap_export)
{
	return is_on_side(devinfo, SOFT_HOST, mmap_export);
}

doca_error_t soft_doca_mmap_cap_is_create_from_export_pci_supported(const struct doca_devinfo *devinfo,
								    uint8_t *from_export)
{
	return is_on_side(devinfo, SOFT_DPU, from_export);
}
