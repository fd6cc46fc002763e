/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "argp.h"
#include "doca_version.h"

#define LEVELS "<10=DISABLE, 20=CRITICAL, 30=ERROR, 40=WARNING, 50=INFO, 60=DEBUG, 70=TRACE>"

/* ---- What they do ---- */

/* *given is what doca_argp_get_..._level answers from then on. */
static doca_error_t apply_level(int level, doca_error_t (*set)(uint32_t level), int *given)
{
	doca_error_t result = set((uint32_t)level);
	if (result == DOCA_SUCCESS)
		*given = level;
	return result;
}

static doca_error_t set_log_level(void *value, void *config)
{
	(void)config;
	return apply_level(*(int *)value, doca_log_level_set_global_lower_limit, &argp.log_level);
}

static doca_error_t set_sdk_log_level(void *value, void *config)
{
	(void)config;
	return apply_level(*(int *)value, doca_log_level_set_global_sdk_limit, &argp.sdk_log_level);
}

/* For those that are acted upon while the command line is read. */
static doca_error_t do_nothing(void *value, void *config)
{
	(void)value;
	(void)config;
	return DOCA_SUCCESS;
}

static void print_version(void)
{
	printf("DOCA SDK     Version (Compilation): %s\n", doca_version());
	printf("DOCA Runtime Version (Runtime):     %s\n", doca_version_runtime());
}

/* A program's callback usually ends it. */
static _Noreturn void end_with_version(void)
{
	doca_error_t result = DOCA_SUCCESS;
	if (argp.version_callback != NULL)
		result = argp.version_callback(NULL, argp.config);
	else
		print_version();
	exit(result == DOCA_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE);
}

static bool is(const struct doca_argp_param *param, const char *long_name)
{
	return param->long_name != NULL && strcmp(param->long_name, long_name) == 0;
}

void argp_general_act(const struct doca_argp_param *param, const struct doca_argp_cmd *cmd)
{
	if (is(param, "help")) {
		argp_usage_print(stdout, cmd);
		exit(EXIT_SUCCESS);
	}
	if (is(param, "version"))
		end_with_version();
}

bool argp_is_general(const struct doca_argp_param *param)
{
	for (const struct doca_argp_param *own = argp.general.params; own != NULL; own = own->next) {
		if (own == param)
			return true;
	}
	return false;
}

const char *argp_general_json(const struct argp_values *values)
{
	for (size_t i = 0; i < values->count; i++) {
		if (is(values->items[i].param, "json"))
			return values->items[i].string;
	}
	return NULL;
}

doca_error_t doca_argp_get_log_level(int *log_level)
{
	if (log_level == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*log_level = argp.log_level != 0 ? argp.log_level : (int)doca_log_level_get_global_lower_limit();
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_get_sdk_log_level(int *log_level)
{
	if (log_level == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*log_level = argp.sdk_log_level != 0 ? argp.sdk_log_level : (int)doca_log_level_get_global_sdk_limit();
	return DOCA_SUCCESS;
}

/* ---- What they are ---- */

static const struct general {
	const char *short_name, *long_name, *arguments, *description;
	enum doca_argp_type type;
	bool cli_only;
	doca_argp_param_cb_t callback;
} flags[] = {
	{"h", "help", NULL, "Print this help", DOCA_ARGP_TYPE_BOOLEAN, true, do_nothing},
	{"v", "version", NULL, "Print the version", DOCA_ARGP_TYPE_BOOLEAN, true, do_nothing},
	{"l", "log-level", NULL, "Log level of the program " LEVELS, DOCA_ARGP_TYPE_INT, false, set_log_level},
	{NULL, "sdk-log-level", NULL, "Log level of the SDK " LEVELS, DOCA_ARGP_TYPE_INT, false, set_sdk_log_level},
	{"j", "json", "<path>", "Read flags from a JSON file", DOCA_ARGP_TYPE_STRING, true, do_nothing},
};

static doca_error_t register_flag(const struct general *flag)
{
	struct doca_argp_param *param;
	doca_error_t result = doca_argp_param_create(&param);
	if (result != DOCA_SUCCESS)
		return result;
	doca_argp_param_set_short_name(param, flag->short_name);
	doca_argp_param_set_long_name(param, flag->long_name);
	doca_argp_param_set_arguments(param, flag->arguments);
	doca_argp_param_set_description(param, flag->description);
	doca_argp_param_set_type(param, flag->type);
	doca_argp_param_set_callback(param, flag->callback);
	param->cli_only = flag->cli_only;
	return argp_cmd_add_param(&argp.general, param);
}

doca_error_t argp_general_register(void)
{
	doca_error_t result = DOCA_SUCCESS;
	for (size_t i = 0; result == DOCA_SUCCESS && i < sizeof(flags) / sizeof(flags[0]); i++)
		result = register_flag(&flags[i]);
	return result;
}
