/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "argp.h"

doca_error_t argp_values_add(struct argp_values *values, struct doca_argp_param *param, char *string, int integer,
			     bool boolean)
{
	struct argp_value *grown = realloc(values->items, (values->count + 1) * sizeof(*grown));
	if (grown == NULL) {
		free(string);
		return DOCA_ERROR_NO_MEMORY;
	}
	values->items = grown;
	values->items[values->count++] = (struct argp_value){param, string, integer, boolean};
	param->given = true;
	return DOCA_SUCCESS;
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

/* Of the command and of those around it. */
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

static void *pointer_to(struct argp_value *value)
{
	switch (value->param->type) {
	case DOCA_ARGP_TYPE_STRING:
		return value->string;
	case DOCA_ARGP_TYPE_INT:
		return &value->integer;
	default:
		return &value->boolean;
	}
}

doca_error_t argp_values_deliver(const struct argp_values *values)
{
	for (size_t i = 0; i < values->count; i++) {
		struct argp_value *value = &values->items[i];
		doca_error_t result = value->param->callback(pointer_to(value), argp.config);
		if (result != DOCA_SUCCESS)
			return argp_fail(result, "the value of %s was refused: %s", argp_param_name(value->param),
					 doca_error_get_descr(result));
	}
	return DOCA_SUCCESS;
}
