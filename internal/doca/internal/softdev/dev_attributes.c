/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of a function beyond its names: an Ethernet port of 200 Gb/s without an IPv4 address. */
#include "core.h"

#include <stdio.h>
#include <string.h>

#define RATE 200000000000U

/* Locally administered, the last byte tells the functions apart. */
static void make_mac(const struct doca_devinfo *devinfo, uint8_t mac[DOCA_DEVINFO_MAC_ADDR_SIZE])
{
	const uint8_t address[] = {0x02, 0x00, 0x00, 0x00, 0x00, (uint8_t)devinfo->vhca_id};
	memcpy(mac, address, sizeof(address));
}

doca_error_t soft_doca_devinfo_get_mac_addr(const struct doca_devinfo *devinfo, uint8_t *mac_addr, uint32_t size)
{
	if (devinfo == NULL || mac_addr == NULL || size < DOCA_DEVINFO_MAC_ADDR_SIZE)
		return DOCA_ERROR_INVALID_VALUE;
	make_mac(devinfo, mac_addr);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_get_ipv4_addr(const struct doca_devinfo *devinfo, uint8_t *ipv4_addr, uint32_t size)
{
	if (devinfo == NULL || ipv4_addr == NULL || size < DOCA_DEVINFO_IPV4_ADDR_SIZE)
		return DOCA_ERROR_INVALID_VALUE;
	return DOCA_ERROR_NOT_FOUND;
}

/* Every interface has a link-local address, made of its MAC address. */
doca_error_t soft_doca_devinfo_get_ipv6_addr(const struct doca_devinfo *devinfo, uint8_t *ipv6_addr, uint32_t size)
{
	uint8_t mac[DOCA_DEVINFO_MAC_ADDR_SIZE];
	if (devinfo == NULL || ipv6_addr == NULL || size < DOCA_DEVINFO_IPV6_ADDR_SIZE)
		return DOCA_ERROR_INVALID_VALUE;
	make_mac(devinfo, mac);
	const uint8_t address[DOCA_DEVINFO_IPV6_ADDR_SIZE] = {
		0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
	memcpy(ipv6_addr, address, sizeof(address));
	return DOCA_SUCCESS;
}

/* Ethernet has none. */
doca_error_t soft_doca_devinfo_get_lid(const struct doca_devinfo *devinfo, uint16_t *lid)
{
	return devinfo == NULL || lid == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t soft_doca_devinfo_get_active_rate(const struct doca_devinfo *devinfo, uint64_t *active_rate)
{
	if (devinfo == NULL || active_rate == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*active_rate = RATE;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_get_vhca_id(const struct doca_devinfo *devinfo, uint16_t *vhca_id)
{
	if (devinfo == NULL || vhca_id == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*vhca_id = devinfo->vhca_id;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_rep_get_vhca_id(const struct doca_devinfo_rep *devinfo_rep, uint16_t *vhca_id)
{
	if (devinfo_rep == NULL || vhca_id == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*vhca_id = devinfo_rep->function->vhca_id;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_rep_get_iface_name(const struct doca_devinfo_rep *devinfo_rep, char *iface_name,
						  uint32_t size)
{
	if (devinfo_rep == NULL || iface_name == NULL || size < DOCA_DEVINFO_IFACE_NAME_SIZE)
		return DOCA_ERROR_INVALID_VALUE;
	snprintf(iface_name, size, "%s", devinfo_rep->iface_name);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_get_pci_func_type(const struct doca_devinfo *devinfo,
						 enum doca_pci_func_type *pci_func_type)
{
	if (devinfo == NULL || pci_func_type == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*pci_func_type = devinfo->kind;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_get_sf_index(const struct doca_devinfo *devinfo, uint32_t *sf_index)
{
	if (devinfo == NULL || sf_index == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (devinfo->kind != DOCA_PCI_FUNC_TYPE_SF)
		return DOCA_ERROR_NOT_SUPPORTED;
	*sf_index = devinfo->sf_index;
	return DOCA_SUCCESS;
}

/* ---- what this device does not have ---- */

static doca_error_t no(const void *object, uint8_t *answer)
{
	if (object == NULL || answer == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*answer = 0;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_cap_is_hotplug_manager_supported(const struct doca_devinfo *devinfo,
								uint8_t *is_hotplug_manager)
{
	return no(devinfo, is_hotplug_manager);
}

doca_error_t soft_doca_devinfo_cap_is_notification_moderation_supported(const struct doca_devinfo *devinfo,
									uint8_t *is_supported)
{
	return no(devinfo, is_supported);
}

doca_error_t soft_doca_devinfo_cap_is_accelerate_resource_reclaim_supported(const struct doca_devinfo *devinfo,
									    uint8_t *is_supported)
{
	return no(devinfo, is_supported);
}

doca_error_t soft_doca_devinfo_rep_cap_is_filter_emulated_supported(const struct doca_devinfo *devinfo,
								    uint8_t *filter_emulated_supported)
{
	return no(devinfo, filter_emulated_supported);
}

doca_error_t soft_doca_devinfo_rep_get_is_hotplug(const struct doca_devinfo_rep *devinfo_rep, uint8_t *is_hotplug)
{
	return no(devinfo_rep, is_hotplug);
}

doca_error_t soft_doca_dev_accelerate_resource_reclaim(struct doca_dev *dev)
{
	return dev == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_ERROR_NOT_SUPPORTED;
}
