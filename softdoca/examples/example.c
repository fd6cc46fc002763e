/* SPDX-License-Identifier: Apache-2.0 */
#include "example.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <doca_log.h>

#include "device.h"

DOCA_LOG_REGISTER(EXAMPLE);

/* ---- Logs ---- */

/* The program's own lines on stdout and stderr, the SDK's warnings on stderr. */
static doca_error_t open_logs(void)
{
	struct doca_log_backend *sdk;
	doca_error_t result = doca_log_backend_create_standard();
	if (result == DOCA_SUCCESS)
		result = doca_log_backend_create_with_file_sdk(stderr, &sdk);
	if (result == DOCA_SUCCESS)
		result = doca_log_backend_set_sdk_level(sdk, DOCA_LOG_LEVEL_WARNING);
	return result;
}

/* ---- Flags ---- */

/* The value is valid only during the callback, so it is copied. */
doca_error_t flag_store(char text[FLAG_SIZE], const char *value)
{
	if (strlen(value) >= FLAG_SIZE)
		return DOCA_ERROR_TOO_BIG;
	memcpy(text, value, strlen(value) + 1);
	return DOCA_SUCCESS;
}

static doca_error_t register_flag(const struct flag *flag)
{
	struct doca_argp_param *param;
	doca_error_t result = doca_argp_param_create(&param);
	if (result != DOCA_SUCCESS)
		return result;
	doca_argp_param_set_short_name(param, flag->short_name);
	doca_argp_param_set_long_name(param, flag->long_name);
	doca_argp_param_set_arguments(param, flag->arguments);
	doca_argp_param_set_description(param, flag->description);
	doca_argp_param_set_callback(param, flag->store);
	doca_argp_param_set_type(param, flag->type);
	return doca_argp_register_param(param);
}

static doca_error_t read_flags(const struct example *example, void *config, int argc, char **argv)
{
	doca_error_t result = doca_argp_init(example->name, config);
	for (const struct flag *flag = example->flags; result == DOCA_SUCCESS && flag->long_name != NULL; flag++)
		result = register_flag(flag);
	return result == DOCA_SUCCESS ? doca_argp_start(argc, argv) : result;
}

/* ---- The whole ---- */

static doca_error_t run_on_device(const struct example *example, void *config, const char *pci_addr)
{
	struct doca_dev *dev;
	doca_error_t result = device_open(pci_addr, &dev);
	if (result != DOCA_SUCCESS)
		return result;
	result = example->run(dev, config);
	doca_dev_close(dev);
	return result;
}

int example_main(const struct example *example, void *config, const char *pci_addr, int argc, char **argv)
{
	doca_error_t result = open_logs();
	if (result == DOCA_SUCCESS)
		result = read_flags(example, config, argc, argv);
	if (result == DOCA_SUCCESS)
		result = run_on_device(example, config, pci_addr);
	if (DOCA_IS_ERROR(result))
		DOCA_LOG_ERR("%s failed: %s", example->name, doca_error_get_descr(result));
	doca_argp_destroy();
	return DOCA_IS_ERROR(result) ? EXIT_FAILURE : EXIT_SUCCESS;
}
