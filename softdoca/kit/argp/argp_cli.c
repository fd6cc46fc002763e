/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argp.h"

/* NULL: there is none left. */
static const char *take(struct argp_arguments *arguments)
{
	if (arguments->count == 0)
		return NULL;
	arguments->count--;
	return *arguments->next++;
}

/* "-n VALUE", "--name VALUE" or "--name=VALUE", seen from its first argument. */
struct flag {
	const char *text; /* as written */
	enum argp_name kind;
	const char *name;
	size_t len;
	const char *value; /* behind '=', or NULL */
};

static struct flag read_flag(const char *text)
{
	struct flag flag = {text, ARGP_SHORT, text + 1, strlen(text + 1), NULL};
	if (text[1] != '-')
		return flag;
	flag.kind = ARGP_LONG;
	flag.name = text + 2;
	flag.len = strcspn(flag.name, "=");
	flag.value = flag.name[flag.len] == '=' ? flag.name + flag.len + 1 : NULL;
	return flag;
}

/* ---- Values ---- */

static doca_error_t add_integer(struct argp_values *values, struct doca_argp_param *param, const char *text)
{
	char *end;
	errno = 0;
	long number = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || number < INT_MIN || number > INT_MAX)
		return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s wants a whole number, not \"%s\"",
				 argp_param_name(param), text);
	return argp_values_add_integer(values, param, (int)number);
}

static doca_error_t add_real(struct argp_values *values, struct doca_argp_param *param, const char *text)
{
	char *end;
	double number = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(number))
		return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s wants a number, not \"%s\"", argp_param_name(param),
				 text);
	return argp_values_add_real(values, param, number);
}

/* Takes the value from the arguments, if it is one of its own. */
static doca_error_t add_value(struct argp_values *values, struct doca_argp_param *param, const struct flag *flag,
			      struct argp_arguments *arguments)
{
	if (param->type == DOCA_ARGP_TYPE_BOOLEAN && flag->value != NULL)
		return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s takes no value", argp_param_name(param));
	if (param->type == DOCA_ARGP_TYPE_BOOLEAN)
		return argp_values_add_boolean(values, param, true);
	const char *text = flag->value != NULL ? flag->value : take(arguments);
	if (text == NULL)
		return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s wants a value", flag->text);
	if (param->type == DOCA_ARGP_TYPE_INT)
		return add_integer(values, param, text);
	if (param->type == DOCA_ARGP_TYPE_DOUBLE)
		return add_real(values, param, text);
	return argp_values_add_text(values, param, text);
}

/* ---- Arguments ---- */

static doca_error_t parse_flag(const char *text, struct argp_arguments *arguments, struct argp_values *values,
			       const struct doca_argp_cmd *cmd)
{
	struct flag flag = read_flag(text);
	struct doca_argp_param *param = argp_cmd_find_param(cmd, flag.kind, flag.name, flag.len);
	if (param == NULL)
		return argp_fail(DOCA_ERROR_NOT_SUPPORTED, "unknown flag %s", text);
	param->on_command_line = true;
	doca_error_t result = add_value(values, param, &flag, arguments);
	if (result == DOCA_SUCCESS)
		argp_general_act(param, cmd);
	return result;
}

static doca_error_t parse_word(const char *text, struct doca_argp_cmd **cmd)
{
	struct doca_argp_cmd *below = argp_cmd_find_cmd(*cmd, text);
	if (below == NULL)
		return argp_fail(DOCA_ERROR_NOT_SUPPORTED, "\"%s\" is neither a flag nor a command", text);
	*cmd = below;
	return DOCA_SUCCESS;
}

doca_error_t argp_cli_parse(struct argp_arguments arguments, struct argp_values *values, struct doca_argp_cmd **cmd)
{
	doca_error_t result = DOCA_SUCCESS;
	const char *text;
	while (result == DOCA_SUCCESS && (text = take(&arguments)) != NULL) {
		if (text[0] == '-' && text[1] != '\0')
			result = parse_flag(text, &arguments, values, *cmd);
		else
			result = parse_word(text, cmd);
	}
	return result;
}
