/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.h"

#include <stdio.h>
#include <string.h>

#include <doca_log.h>

doca_error_t flag_store(char *text, size_t size, const char *value)
{
	if (strlen(value) >= size)
		return DOCA_ERROR_TOO_BIG;
	memcpy(text, value, strlen(value) + 1);
	return DOCA_SUCCESS;
}

static doca_error_t register_typed(const char *short_name, const char *long_name, const char *arguments,
				   const char *description, doca_argp_param_cb_t callback, enum doca_argp_type type)
{
	struct doca_argp_param *param;
	doca_error_t result = doca_argp_param_create(&param);
	if (result != DOCA_SUCCESS)
		return result;
	doca_argp_param_set_short_name(param, short_name);
	doca_argp_param_set_long_name(param, long_name);
	doca_argp_param_set_arguments(param, arguments);
	doca_argp_param_set_description(param, description);
	doca_argp_param_set_callback(param, callback);
	doca_argp_param_set_type(param, type);
	return doca_argp_register_param(param);
}

doca_error_t flag_register(const char *short_name, const char *long_name, const char *arguments,
			   const char *description, doca_argp_param_cb_t callback)
{
	return register_typed(short_name, long_name, arguments, description, callback, DOCA_ARGP_TYPE_STRING);
}

doca_error_t flag_register_int(const char *short_name, const char *long_name, const char *arguments,
			       const char *description, doca_argp_param_cb_t callback)
{
	return register_typed(short_name, long_name, arguments, description, callback, DOCA_ARGP_TYPE_INT);
}

doca_error_t logs_open(void)
{
	struct doca_log_backend *sdk;
	doca_error_t result = doca_log_backend_create_standard();
	if (result == DOCA_SUCCESS)
		result = doca_log_backend_create_with_file_sdk(stderr, &sdk);
	if (result == DOCA_SUCCESS)
		result = doca_log_backend_set_sdk_level(sdk, DOCA_LOG_LEVEL_WARNING);
	return result;
}
