/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "argp.h"

bool argp_is_text(enum doca_argp_type type)
{
	return type == DOCA_ARGP_TYPE_STRING || type == DOCA_ARGP_TYPE_DEVICE || type == DOCA_ARGP_TYPE_DEVICE_REP;
}

static doca_error_t add(struct argp_values *values, struct argp_value value)
{
	struct argp_value *grown = realloc(values->items, (values->count + 1) * sizeof(*grown));
	if (grown == NULL)
		return DOCA_ERROR_NO_MEMORY;
	values->items = grown;
	values->items[values->count++] = value;
	value.param->given = true;
	return DOCA_SUCCESS;
}

doca_error_t argp_values_add_text(struct argp_values *values, struct doca_argp_param *param, const char *text)
{
	char *copy = strdup(text);
	doca_error_t result = DOCA_ERROR_NO_MEMORY;
	if (copy != NULL)
		result = add(values, (struct argp_value){.param = param, .string = copy});
	if (result != DOCA_SUCCESS)
		free(copy);
	return result;
}

doca_error_t argp_values_add_integer(struct argp_values *values, struct doca_argp_param *param, int integer)
{
	return add(values, (struct argp_value){.param = param, .integer = integer});
}

doca_error_t argp_values_add_boolean(struct argp_values *values, struct doca_argp_param *param, bool boolean)
{
	return add(values, (struct argp_value){.param = param, .boolean = boolean});
}

doca_error_t argp_values_add_real(struct argp_values *values, struct doca_argp_param *param, double real)
{
	return add(values, (struct argp_value){.param = param, .real = real});
}

void argp_values_free(struct argp_values *values)
{
	for (size_t i = 0; i < values->count; i++)
		free(values->items[i].string);
	free(values->items);
}

/* ---- Checks ---- */

static const struct doca_argp_param *find_singular(const struct argp_values *values)
{
	for (size_t i = 0; i < values->count; i++) {
		if (values->items[i].param->singular)
			return values->items[i].param;
	}
	return NULL;
}

static doca_error_t check_alone(const struct argp_values *values, const struct doca_argp_param *singular)
{
	for (size_t i = 0; i < values->count; i++) {
		const struct doca_argp_param *param = values->items[i].param;
		if (param != singular && !argp_is_general(param))
			return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s must be alone, without %s",
					 argp_param_name(singular), argp_param_name(param));
	}
	return DOCA_SUCCESS;
}

static doca_error_t check_once(const struct argp_values *values)
{
	for (size_t i = 0; i < values->count; i++) {
		for (size_t j = 0; j < i; j++) {
			const struct doca_argp_param *param = values->items[i].param;
			if (param == values->items[j].param && !param->multiplicity)
				return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s is given twice", argp_param_name(param));
		}
	}
	return DOCA_SUCCESS;
}

/* Checks the command and the commands around it. */
static doca_error_t check_mandatory(const struct doca_argp_cmd *cmd)
{
	for (; cmd != NULL; cmd = cmd->parent) {
		for (const struct doca_argp_param *param = cmd->params; param != NULL; param = param->next) {
			if (param->mandatory && !param->given)
				return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s is missing", argp_param_name(param));
		}
	}
	return DOCA_SUCCESS;
}

doca_error_t argp_values_check(const struct argp_values *values, const struct doca_argp_cmd *cmd)
{
	const struct doca_argp_param *singular = find_singular(values);
	doca_error_t result = check_once(values);
	if (result != DOCA_SUCCESS)
		return result;
	return singular != NULL ? check_alone(values, singular) : check_mandatory(cmd);
}

/* ---- Delivery ---- */

static doca_error_t deliver(struct argp_value *value)
{
	const struct doca_argp_param *param = value->param;
	switch (param->type) {
	case DOCA_ARGP_TYPE_STRING:
		return param->callback(value->string, argp.config);
	case DOCA_ARGP_TYPE_INT:
		return param->callback(&value->integer, argp.config);
	case DOCA_ARGP_TYPE_DOUBLE:
		return param->callback(&value->real, argp.config);
	case DOCA_ARGP_TYPE_DEVICE:
	case DOCA_ARGP_TYPE_DEVICE_REP:
		return argp_device_deliver(param, value->string);
	default:
		return param->callback(&value->boolean, argp.config);
	}
}

doca_error_t argp_values_deliver(const struct argp_values *values)
{
	for (size_t i = 0; i < values->count; i++) {
		struct argp_value *value = &values->items[i];
		doca_error_t result = deliver(value);
		if (result != DOCA_SUCCESS)
			return argp_fail(result, "the value of %s was refused: %s", argp_param_name(value->param),
					 doca_error_get_descr(result));
	}
	return DOCA_SUCCESS;
}
