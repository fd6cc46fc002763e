/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as DOCA 3.1's to 3.3's guides show: it finds a device by its PCI address and, where that is not enough, by
 * its index as a scalable function, and a representor by the kind of its function.
 */
#include <doca_argp.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_log.h>
#include <doca_version.h>

DOCA_LOG_REGISTER(GUIDE_3_3);

#define ANY_INDEX (-1)

#if !DOCA_VERSION_LTE_CURRENT(2, 10, 0)
#error "this program needs what came after DOCA 2.10"
#endif

struct config {
	char pci_addr[DOCA_DEVINFO_PCI_ADDR_SIZE];
	int sf_index;
};

static doca_error_t store_pci_addr(void *value, void *config)
{
	struct config *own = (struct config *)config;
	if (strlen((const char *)value) >= sizeof(own->pci_addr))
		return DOCA_ERROR_INVALID_VALUE;
	strcpy(own->pci_addr, (const char *)value);
	return DOCA_SUCCESS;
}

static doca_error_t store_sf_index(void *value, void *config)
{
	((struct config *)config)->sf_index = *(int *)value;
	return DOCA_SUCCESS;
}

static doca_error_t register_flag(const char *name, enum doca_argp_type type, doca_argp_param_cb_t store)
{
	struct doca_argp_param *param;
	doca_error_t result = doca_argp_param_create(&param);
	if (result != DOCA_SUCCESS)
		return result;
	doca_argp_param_set_long_name(param, name);
	doca_argp_param_set_description(param, name);
	doca_argp_param_set_callback(param, store);
	doca_argp_param_set_type(param, type);
	return doca_argp_register_param(param);
}

static doca_error_t read_flags(struct config *config, int argc, char **argv)
{
	doca_error_t result = doca_argp_init("guide_3_3", config);
	if (result == DOCA_SUCCESS)
		result = register_flag("pci-addr", DOCA_ARGP_TYPE_STRING, store_pci_addr);
	if (result == DOCA_SUCCESS)
		result = register_flag("sf-index", DOCA_ARGP_TYPE_INT, store_sf_index);
	return result == DOCA_SUCCESS ? doca_argp_start(argc, argv) : result;
}

/* ---- Search ---- */

static const char *name_of(enum doca_pci_func_type kind)
{
	switch (kind) {
	case DOCA_PCI_FUNC_TYPE_PF:
		return "PF";
	case DOCA_PCI_FUNC_TYPE_VF:
		return "VF";
	case DOCA_PCI_FUNC_TYPE_SF:
		return "SF";
	default:
		return "unknown";
	}
}

/* A PF or VF has no index: NOT_SUPPORTED. */
static bool has_index(const struct doca_devinfo *devinfo, int wanted)
{
	uint32_t index = 0;
	doca_error_t result = doca_devinfo_get_sf_index(devinfo, &index);
	if (wanted == ANY_INDEX)
		return result == DOCA_ERROR_NOT_SUPPORTED;
	return result == DOCA_SUCCESS && index == (uint32_t)wanted;
}

static bool is_wanted(const struct doca_devinfo *devinfo, const struct config *config)
{
	uint8_t equal = 0;
	return doca_devinfo_is_equal_pci_addr(devinfo, config->pci_addr, &equal) == DOCA_SUCCESS && equal != 0 &&
	       has_index(devinfo, config->sf_index);
}

static doca_error_t open_wanted(const struct config *config, struct doca_dev **dev)
{
	struct doca_devinfo **list;
	uint32_t count;
	doca_error_t result = doca_devinfo_create_list(&list, &count);
	if (result != DOCA_SUCCESS)
		return result;
	result = DOCA_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < count && result == DOCA_ERROR_NOT_FOUND; i++) {
		if (is_wanted(list[i], config))
			result = doca_dev_open(list[i], dev);
	}
	doca_devinfo_destroy_list(list);
	return result;
}

/* ---- What was found ---- */

static doca_error_t show_device(struct doca_dev *dev)
{
	char name[DOCA_DEVINFO_IBDEV_NAME_SIZE];
	enum doca_pci_func_type kind;
	doca_error_t result = doca_devinfo_get_pci_func_type(doca_dev_as_devinfo(dev), &kind);
	if (result == DOCA_SUCCESS)
		result = doca_devinfo_get_ibdev_name(doca_dev_as_devinfo(dev), name, sizeof(name));
	if (result == DOCA_SUCCESS)
		DOCA_LOG_INFO("device %s is a %s", name, name_of(kind));
	return result;
}

static doca_error_t show_representor(const struct doca_devinfo_rep *rep)
{
	char name[DOCA_DEVINFO_IFACE_NAME_SIZE];
	enum doca_pci_func_type kind;
	doca_error_t result = doca_devinfo_rep_get_pci_func_type(rep, &kind);
	if (result == DOCA_SUCCESS)
		result = doca_devinfo_rep_get_iface_name(rep, name, sizeof(name));
	if (result == DOCA_SUCCESS)
		DOCA_LOG_INFO("representor %s of a %s", name, name_of(kind));
	return result;
}

/* The host has none. */
static doca_error_t show_representors(struct doca_dev *dev)
{
	struct doca_devinfo_rep **list;
	uint32_t count;
	doca_error_t result = doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_ALL, &list, &count);
	if (result == DOCA_ERROR_NOT_SUPPORTED)
		return DOCA_SUCCESS;
	if (result != DOCA_SUCCESS)
		return result;
	for (uint32_t i = 0; i < count; i++)
		DOCA_ERROR_PROPAGATE(result, show_representor(list[i]));
	DOCA_ERROR_PROPAGATE(result, doca_devinfo_rep_destroy_list(list));
	return result;
}

int main(int argc, char **argv)
{
	struct config config;
	struct doca_dev *dev = NULL;
	memset(&config, 0, sizeof(config));
	config.sf_index = ANY_INDEX;
	doca_error_t result = doca_log_backend_create_standard();
	if (result == DOCA_SUCCESS)
		result = read_flags(&config, argc, argv);
	if (result == DOCA_SUCCESS)
		result = open_wanted(&config, &dev);
	if (result == DOCA_SUCCESS)
		result = show_device(dev);
	if (result == DOCA_SUCCESS)
		result = show_representors(dev);
	DOCA_ERROR_PROPAGATE(result, doca_dev_close(dev));
	doca_argp_destroy();
	if (result != DOCA_SUCCESS)
		DOCA_LOG_ERR("failed: %s", doca_error_get_descr(result));
	return result == DOCA_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
