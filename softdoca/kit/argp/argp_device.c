/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "argp.h"

/* "pci/ADDRESS[,REPRESENTOR][,ARGUMENTS]", cut at its commas. */
struct parts {
	const char *address, *rep, *devargs;
};

/* Copies a text that stays until the parser is destroyed. */
static char *keep(const char *text)
{
	size_t size = strlen(text) + 1;
	struct argp_text *kept = malloc(sizeof(*kept) + size);
	if (kept == NULL)
		return NULL;
	memcpy(kept->text, text, size);
	kept->next = argp.texts;
	argp.texts = kept;
	return kept->text;
}

/* Ends the text at its first comma, and returns what follows, or NULL. */
static char *cut(char *text)
{
	char *comma = text == NULL ? NULL : strchr(text, ',');
	if (comma == NULL)
		return NULL;
	*comma = '\0';
	return comma + 1;
}

static struct parts split(char *text, bool with_rep)
{
	struct parts parts = {.address = strncmp(text, "pci/", 4) == 0 ? text + 4 : text};
	char *rest = cut(text);
	if (with_rep) {
		parts.rep = rest == NULL ? "" : rest;
		rest = cut(rest);
	}
	parts.devargs = rest;
	return parts;
}

/* ---- Devices ---- */

static doca_error_t open_devinfo(struct doca_devinfo *info, struct doca_dev **dev)
{
	if (argp.dev_open_callback != NULL)
		return argp.dev_open_callback(info, argp.dev_open_context, dev);
	return doca_dev_open(info, dev);
}

static doca_error_t open_device(const char *address, struct doca_dev **dev)
{
	struct doca_devinfo **list;
	uint32_t count;
	doca_error_t result = doca_devinfo_create_list(&list, &count);
	if (result != DOCA_SUCCESS)
		return result;
	result = DOCA_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < count && result == DOCA_ERROR_NOT_FOUND; i++) {
		uint8_t equal = 0;
		if (doca_devinfo_is_equal_pci_addr(list[i], address, &equal) == DOCA_SUCCESS && equal)
			result = open_devinfo(list[i], dev);
	}
	doca_devinfo_destroy_list(list);
	return result;
}

/* ---- Representors ---- */

/* An interface is named for its port and function, perhaps behind other letters: "pf0vf0", "en3f0c1pf0sf4". */
static bool is_named(const struct doca_devinfo_rep *info, const char *name)
{
	char iface[DOCA_DEVINFO_IFACE_NAME_SIZE];
	if (*name == '\0' || doca_devinfo_rep_get_iface_name(info, iface, sizeof(iface)) != DOCA_SUCCESS)
		return false;
	size_t len = strlen(iface), end = strlen(name);
	return len >= end && strcmp(iface + len - end, name) == 0;
}

static doca_error_t open_rep(struct doca_dev *dev, const char *name, struct doca_dev_rep **rep)
{
	struct doca_devinfo_rep **list;
	uint32_t count;
	doca_error_t result = doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_ALL, &list, &count);
	if (result != DOCA_SUCCESS)
		return result;
	result = DOCA_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < count && result == DOCA_ERROR_NOT_FOUND; i++) {
		if (is_named(list[i], name))
			result = doca_dev_rep_open(list[i], rep);
	}
	doca_devinfo_rep_destroy_list(list);
	return result;
}

/* ---- Delivery ---- */

static doca_error_t deliver_device(const struct doca_argp_param *param, struct doca_argp_device_ctx *device)
{
	return param->callback(device, argp.config);
}

static doca_error_t deliver_rep(const struct doca_argp_param *param, const struct doca_argp_device_ctx *device,
				const char *name)
{
	struct doca_argp_device_rep_ctx rep = {.dev_ctx = *device};
	doca_error_t result = open_rep(device->dev, name, &rep.dev_rep);
	if (result == DOCA_SUCCESS)
		return param->callback(&rep, argp.config);
	doca_dev_close(device->dev);
	return argp_fail(result, "no representor \"%s\" of the device", name);
}

doca_error_t argp_device_deliver(const struct doca_argp_param *param, const char *text)
{
	bool with_rep = param->type == DOCA_ARGP_TYPE_DEVICE_REP;
	char *kept = keep(text);
	if (kept == NULL)
		return DOCA_ERROR_NO_MEMORY;
	struct parts parts = split(kept, with_rep);
	struct doca_argp_device_ctx device = {.devargs = parts.devargs};
	doca_error_t result = open_device(parts.address, &device.dev);
	if (result != DOCA_SUCCESS)
		return argp_fail(result, "no device \"%s\"", parts.address);
	return with_rep ? deliver_rep(param, &device, parts.rep) : deliver_device(param, &device);
}
