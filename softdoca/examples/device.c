/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

doca_error_t device_open(const char *pci_addr, struct doca_dev **dev)
{
	struct doca_devinfo **list;
	uint32_t count;
	doca_error_t result = doca_devinfo_create_list(&list, &count);
	if (result != DOCA_SUCCESS)
		return result;
	result = DOCA_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < count; i++) {
		uint8_t equal = 0;
		if (doca_devinfo_is_equal_pci_addr(list[i], pci_addr, &equal) == DOCA_SUCCESS && equal) {
			result = doca_dev_open(list[i], dev);
			break;
		}
	}
	doca_devinfo_destroy_list(list);
	return result;
}

doca_error_t representor_open(struct doca_dev *dev, const char *pci_addr, struct doca_dev_rep **rep)
{
	struct doca_devinfo_rep **list;
	uint32_t count;
	doca_error_t result = doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &count);
	if (result != DOCA_SUCCESS)
		return result;
	result = DOCA_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < count; i++) {
		uint8_t equal = 0;
		if (doca_devinfo_rep_is_equal_pci_addr(list[i], pci_addr, &equal) == DOCA_SUCCESS && equal) {
			result = doca_dev_rep_open(list[i], rep);
			break;
		}
	}
	doca_devinfo_rep_destroy_list(list);
	return result;
}
