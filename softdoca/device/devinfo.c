/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "dev.h"
#include "quirk.h"
#include "soft.h"

/* ---- Addresses and names ---- */

bool soft_parse_pci_addr(const char *text, char addr[DOCA_DEVINFO_PCI_ADDR_SIZE])
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
	if (text == NULL || is_equal == NULL || !soft_parse_pci_addr(text, addr))
		return DOCA_ERROR_INVALID_VALUE;
	*is_equal = strcmp(own, addr) == 0;
	return DOCA_SUCCESS;
}

/* DOCA refuses a buffer smaller than the documented size, even if this name would fit. */
static doca_error_t copy_name(const char *name, char *buffer, uint32_t size, uint32_t documented_size)
{
	if (buffer == NULL || size < documented_size)
		return DOCA_ERROR_INVALID_VALUE;
	snprintf(buffer, size, "%s", name);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo, char *pci_addr_str)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE
			       : copy_name(devinfo->pci_addr, pci_addr_str, DOCA_DEVINFO_PCI_ADDR_SIZE,
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
			       : copy_name(devinfo->iface_name, iface_name, size, DOCA_DEVINFO_IFACE_NAME_SIZE);
}

doca_error_t soft_doca_devinfo_get_ibdev_name(const struct doca_devinfo *devinfo, char *ibdev_name, uint32_t size)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE
			       : copy_name(devinfo->ibdev_name, ibdev_name, size, DOCA_DEVINFO_IBDEV_NAME_SIZE);
}

doca_error_t soft_doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep, char *rep_vuid, uint32_t size)
{
	return devinfo_rep == NULL ? DOCA_ERROR_INVALID_VALUE
				   : copy_name(devinfo_rep->vuid, rep_vuid, size, DOCA_DEVINFO_REP_VUID_SIZE);
}

doca_error_t soft_doca_devinfo_rep_get_pci_addr_str(const struct doca_devinfo_rep *devinfo_rep, char *pci_addr_str)
{
	return devinfo_rep == NULL ? DOCA_ERROR_INVALID_VALUE
				   : copy_name(devinfo_rep->function->pci_addr, pci_addr_str,
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

/* Either side exports to the other, unless a quirk says otherwise. */
bool soft_side_exports(enum soft_side side)
{
	return !soft_has_quirk(side == SOFT_HOST ? SOFT_NO_HOST_EXPORT : SOFT_NO_DPU_EXPORT);
}

bool soft_side_imports(enum soft_side side)
{
	return soft_side_exports(side == SOFT_HOST ? SOFT_DPU : SOFT_HOST);
}

doca_error_t soft_doca_mmap_cap_is_export_pci_supported(const struct doca_devinfo *devinfo, uint8_t *mmap_export)
{
	if (devinfo == NULL || mmap_export == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*mmap_export = soft_side_exports(devinfo->side);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_mmap_cap_is_create_from_export_pci_supported(const struct doca_devinfo *devinfo,
								    uint8_t *from_export)
{
	if (devinfo == NULL || from_export == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*from_export = soft_side_imports(devinfo->side);
	return DOCA_SUCCESS;
}

/* ---- an Ethernet port of 200 Gb/s without an IPv4 address ---- */

#define RATE 200000000000U

/* A locally administered address; the last byte distinguishes the functions. */
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

/* Ethernet has no LID. */
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
