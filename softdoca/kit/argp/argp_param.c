/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "argp.h"

doca_error_t doca_argp_param_create(struct doca_argp_param **param)
{
	if (param == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!argp.initialized)
		return DOCA_ERROR_BAD_STATE;
	struct doca_argp_param *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	*param = created;
	return DOCA_SUCCESS;
}

void argp_param_free(struct doca_argp_param *param)
{
	free(param->short_name);
	free(param->long_name);
	free(param->arguments);
	free(param->description);
	free(param);
}

doca_error_t doca_argp_param_destroy(struct doca_argp_param *param)
{
	if (param == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (param->registered)
		return DOCA_ERROR_BAD_STATE;
	argp_param_free(param);
	return DOCA_SUCCESS;
}

const char *argp_param_name(const struct doca_argp_param *param)
{
	return param->long_name != NULL ? param->long_name : param->short_name;
}

/* The setters answer nothing, so what they lack comes out at registration. */

void doca_argp_param_set_short_name(struct doca_argp_param *param, const char *name)
{
	param->incomplete |= !argp_replace_string(&param->short_name, name);
}

void doca_argp_param_set_long_name(struct doca_argp_param *param, const char *name)
{
	param->incomplete |= !argp_replace_string(&param->long_name, name);
}

void doca_argp_param_set_arguments(struct doca_argp_param *param, const char *arguments)
{
	param->incomplete |= !argp_replace_string(&param->arguments, arguments);
}

void doca_argp_param_set_description(struct doca_argp_param *param, const char *description)
{
	param->incomplete |= !argp_replace_string(&param->description, description);
}

void doca_argp_param_set_callback(struct doca_argp_param *param, doca_argp_param_cb_t callback)
{
	param->callback = callback;
}

void doca_argp_param_set_type(struct doca_argp_param *param, enum doca_argp_type type)
{
	param->type = type;
}

void doca_argp_param_set_mandatory(struct doca_argp_param *param)
{
	param->mandatory = true;
}

void doca_argp_param_set_cli_only(struct doca_argp_param *param)
{
	param->cli_only = true;
}

void doca_argp_param_set_multiplicity(struct doca_argp_param *param)
{
	param->multiplicity = true;
}

void doca_argp_param_set_singular(struct doca_argp_param *param)
{
	param->singular = true;
}

void doca_argp_param_set_inherited(struct doca_argp_param *param)
{
	param->inherited = true;
}

void doca_argp_param_set_hidden(struct doca_argp_param *param)
{
	param->hidden = true;
}
