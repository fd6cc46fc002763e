/* SPDX-License-Identifier: Apache-2.0 */
#include "argp_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

char record[1024];

void note(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t used = strlen(record);
	vsnprintf(record + used, sizeof(record) - used, format, args);
	va_end(args);
}

#define NOTE_CALLBACK(name, format, value_of)                                   \
	static doca_error_t name(void *value, void *config)                     \
	{                                                                       \
		(void)value;                                                    \
		note(format " ", value_of);                                     \
		return config == record ? DOCA_SUCCESS : DOCA_ERROR_UNEXPECTED; \
	}

NOTE_CALLBACK(on_file, "file=%s", (char *)value)
NOTE_CALLBACK(on_number, "number=%d", *(int *)value)
NOTE_CALLBACK(on_sources, "sources=%d", *(int *)value)
NOTE_CALLBACK(on_flag, "flag=%s", *(bool *)value ? "true" : "false")
NOTE_CALLBACK(on_many, "many=%s", (char *)value)
NOTE_CALLBACK(on_list, "list%s", "")
NOTE_CALLBACK(on_secret, "secret=%s", (char *)value)
NOTE_CALLBACK(on_depth, "depth=%d", *(int *)value)
NOTE_CALLBACK(on_host, "host=%s", (char *)value)

static doca_error_t on_refuse(void *value, void *config)
{
	(void)value;
	(void)config;
	return DOCA_ERROR_TOO_BIG;
}

static doca_error_t on_remote(void *config)
{
	(void)config;
	note("remote ");
	return DOCA_SUCCESS;
}

static doca_error_t on_add(void *config)
{
	(void)config;
	note("add ");
	return DOCA_SUCCESS;
}

doca_error_t on_validation(void *config)
{
	(void)config;
	note("valid");
	return strstr(record, "number=13") != NULL ? DOCA_ERROR_BAD_CONFIG : DOCA_SUCCESS;
}

static const struct parameter parameters[] = {
	{"f", "file", DOCA_ARGP_TYPE_STRING, on_file, {doca_argp_param_set_mandatory}},
	{"n", "number", DOCA_ARGP_TYPE_INT, on_number, {NULL}},
	{"ns", "num-src", DOCA_ARGP_TYPE_INT, on_sources, {NULL}},
	{"b", "flag", DOCA_ARGP_TYPE_BOOLEAN, on_flag, {NULL}},
	{"m", "many", DOCA_ARGP_TYPE_STRING, on_many, {doca_argp_param_set_multiplicity}},
	{NULL, "list", DOCA_ARGP_TYPE_BOOLEAN, on_list, {doca_argp_param_set_singular}},
	{"s", "secret", DOCA_ARGP_TYPE_STRING, on_secret, {doca_argp_param_set_hidden, doca_argp_param_set_cli_only}},
	{"d", "depth", DOCA_ARGP_TYPE_INT, on_depth, {doca_argp_param_set_inherited}},
	{"x", NULL, DOCA_ARGP_TYPE_STRING, on_refuse, {NULL}},
};

struct doca_argp_param *make_param(const struct parameter *parameter)
{
	struct doca_argp_param *param = NULL;
	if (doca_argp_param_create(&param) != DOCA_SUCCESS)
		exit(90);
	doca_argp_param_set_short_name(param, parameter->short_name);
	doca_argp_param_set_long_name(param, parameter->long_name);
	doca_argp_param_set_description(param, "as described");
	doca_argp_param_set_arguments(param, parameter->type == DOCA_ARGP_TYPE_BOOLEAN ? NULL : "<VALUE>");
	doca_argp_param_set_type(param, parameter->type);
	doca_argp_param_set_callback(param, parameter->callback);
	for (int i = 0; i < 2; i++) {
		if (parameter->marks[i] != NULL)
			parameter->marks[i](param);
	}
	return param;
}

struct doca_argp_cmd *make_cmd(const char *name, doca_argp_cmd_cb_t callback)
{
	struct doca_argp_cmd *cmd = NULL;
	if (doca_argp_cmd_create(&cmd) != DOCA_SUCCESS)
		exit(91);
	doca_argp_cmd_set_name(cmd, name);
	doca_argp_cmd_set_description(cmd, "as described");
	doca_argp_cmd_set_callback(cmd, callback);
	return cmd;
}

/* "remote [--host VALUE] add" */
static doca_error_t register_cmds(void)
{
	const struct parameter host = {NULL, "host", DOCA_ARGP_TYPE_STRING, on_host, {doca_argp_param_set_mandatory}};
	struct doca_argp_cmd *remote = make_cmd("remote", on_remote);
	doca_error_t result = doca_argp_cmd_register_param(remote, make_param(&host));
	if (result == DOCA_SUCCESS)
		result = doca_argp_cmd_register_cmd(remote, make_cmd("add", on_add));
	return result == DOCA_SUCCESS ? doca_argp_register_cmd(remote) : result;
}

doca_error_t set_up(const char *name)
{
	doca_error_t result = doca_argp_init(name, record);
	for (size_t i = 0; result == DOCA_SUCCESS && i < COUNT(parameters); i++)
		result = doca_argp_register_param(make_param(&parameters[i]));
	if (result == DOCA_SUCCESS)
		result = register_cmds();
	if (result == DOCA_SUCCESS)
		result = doca_argp_register_validation_callback(on_validation);
	return result;
}
