/* SPDX-License-Identifier: Apache-2.0 */
#include "argp.h"

#include <stdlib.h>
#include <string.h>

struct argp argp;

bool argp_replace_string(char **string, const char *text)
{
	char *copy = text == NULL ? NULL : strdup(text);
	if (text != NULL && copy == NULL)
		return false;
	free(*string);
	*string = copy;
	return true;
}

doca_error_t argp_fail(doca_error_t result, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (argp.logger_callback != NULL) {
		argp.logger_callback(DOCA_LOG_LEVEL_ERROR, format, args);
	} else {
		fprintf(stderr, "%s: ", argp.program_name != NULL ? argp.program_name : "doca_argp");
		vfprintf(stderr, format, args);
		fputc('\n', stderr);
	}
	va_end(args);
	return result;
}

/* ---- Life ---- */

static void release(void)
{
	argp_cmd_clear(&argp.general);
	argp_cmd_clear(&argp.program);
	free(argp.program_name);
	for (struct argp_text *text = argp.texts, *next; text != NULL; text = next) {
		next = text->next;
		free(text);
	}
	memset(&argp, 0, sizeof(argp));
}

doca_error_t doca_argp_init(const char *program_name, void *program_config)
{
	if (argp.initialized)
		return DOCA_ERROR_BAD_STATE;
	if (!argp_replace_string(&argp.program_name, program_name))
		return DOCA_ERROR_NO_MEMORY;
	argp.initialized = true;
	argp.config = program_config;
	doca_error_t result = argp_general_register();
	if (result != DOCA_SUCCESS)
		release();
	return result;
}

doca_error_t doca_argp_destroy(void)
{
	if (!argp.initialized)
		return DOCA_ERROR_BAD_STATE;
	release();
	return DOCA_SUCCESS;
}

doca_error_t argp_open_for_registration(void)
{
	return argp.initialized && !argp.started ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

/* ---- Callbacks of the program ---- */

static doca_error_t open_for_callback(bool given)
{
	doca_error_t result = argp_open_for_registration();
	return result == DOCA_SUCCESS && !given ? DOCA_ERROR_INVALID_VALUE : result;
}

doca_error_t doca_argp_register_version_callback(doca_argp_param_cb_t callback)
{
	doca_error_t result = open_for_callback(callback != NULL);
	if (result == DOCA_SUCCESS)
		argp.version_callback = callback;
	return result;
}

doca_error_t doca_argp_register_validation_callback(doca_argp_validation_cb_t callback)
{
	doca_error_t result = open_for_callback(callback != NULL);
	if (result == DOCA_SUCCESS)
		argp.validation_callback = callback;
	return result;
}

doca_error_t doca_argp_register_dev_open_callback(doca_argp_dev_open_cb_t callback, void *usr_ctx)
{
	doca_error_t result = open_for_callback(callback != NULL);
	if (result != DOCA_SUCCESS)
		return result;
	argp.dev_open_callback = callback;
	argp.dev_open_context = usr_ctx;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_disable_pedantic_config_parsing(void)
{
	doca_error_t result = argp_open_for_registration();
	if (result == DOCA_SUCCESS)
		argp.lenient = true;
	return result;
}

doca_error_t doca_argp_register_logger_callback(doca_argp_logger_cb_t callback)
{
	if (!argp.initialized)
		return DOCA_ERROR_BAD_STATE;
	if (callback == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (argp.logger_callback != NULL)
		return DOCA_ERROR_ALREADY_EXIST;
	argp.logger_callback = callback;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_disable_logger_callback(void)
{
	if (!argp.initialized || argp.logger_callback == NULL)
		return DOCA_ERROR_BAD_STATE;
	argp.logger_callback = NULL;
	return DOCA_SUCCESS;
}

void doca_argp_set_dpdk_program(doca_argp_dpdk_cb_t callback)
{
	argp.dpdk_callback = callback;
}

/* ---- Start ---- */

/* DPDK's flags come first and end with "--". Without one, all flags are ours. */
static int count_dpdk_arguments(int argc, char **argv)
{
	for (int i = 1; argp.dpdk_callback != NULL && i < argc; i++) {
		if (strcmp(argv[i], "--") == 0)
			return i;
	}
	return 0;
}

static doca_error_t collect(struct argp_arguments arguments, struct argp_values *values, struct doca_argp_cmd **cmd)
{
	doca_error_t result = argp_cli_parse(arguments, values, cmd);
	const char *json = result == DOCA_SUCCESS ? argp_general_json(values) : NULL;
	if (json != NULL)
		result = argp_json_parse(json, *cmd, values);
	return result == DOCA_SUCCESS ? argp_values_check(values, *cmd) : result;
}

static doca_error_t call_commands(const struct doca_argp_cmd *cmd)
{
	if (cmd->parent == NULL)
		return DOCA_SUCCESS;
	doca_error_t result = call_commands(cmd->parent);
	if (result == DOCA_SUCCESS && cmd->callback != NULL)
		result = cmd->callback(argp.config);
	return result;
}

/* The program's own callbacks, called with all values set. */
static doca_error_t call_program(int dpdk_argc, char **argv, const struct doca_argp_cmd *cmd)
{
	doca_error_t result = DOCA_SUCCESS;
	if (argp.dpdk_callback != NULL)
		result = argp.dpdk_callback(dpdk_argc, argv);
	if (result == DOCA_SUCCESS)
		result = call_commands(cmd);
	if (result == DOCA_SUCCESS && argp.validation_callback != NULL)
		result = argp.validation_callback(argp.config);
	return result;
}

static doca_error_t take_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (argp.program_name != NULL)
		return DOCA_SUCCESS;
	return argp_replace_string(&argp.program_name, slash != NULL ? slash + 1 : path) ? DOCA_SUCCESS
											 : DOCA_ERROR_NO_MEMORY;
}

doca_error_t doca_argp_start(int argc, char **argv)
{
	doca_error_t result = argp_open_for_registration();
	if (result != DOCA_SUCCESS)
		return result;
	if (argc < 1 || argv == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	result = take_name(argv[0]);
	if (result != DOCA_SUCCESS)
		return result;
	argp.started = true;
	struct argp_values values = {0};
	struct doca_argp_cmd *cmd = &argp.program;
	int split = count_dpdk_arguments(argc, argv);
	result = collect((struct argp_arguments){argv + split + 1, argc - split - 1}, &values, &cmd);
	if (result == DOCA_SUCCESS)
		result = argp_values_deliver(&values);
	else
		argp_usage_print(stderr, cmd);
	if (result == DOCA_SUCCESS)
		result = call_program(split > 0 ? split : 1, argv, cmd);
	argp_values_free(&values);
	return result;
}
