/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "argp.h"

/* ---- Life ---- */

doca_error_t doca_argp_cmd_create(struct doca_argp_cmd **cmd)
{
	if (cmd == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!argp.initialized)
		return DOCA_ERROR_BAD_STATE;
	struct doca_argp_cmd *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	*cmd = created;
	return DOCA_SUCCESS;
}

static void cmd_free(struct doca_argp_cmd *cmd)
{
	argp_cmd_clear(cmd);
	free(cmd);
}

/* As deep as the commands are nested. */
void argp_cmd_clear(struct doca_argp_cmd *cmd)
{
	while (cmd->params != NULL) {
		struct doca_argp_param *param = cmd->params;
		cmd->params = param->next;
		argp_param_free(param);
	}
	while (cmd->cmds != NULL) {
		struct doca_argp_cmd *below = cmd->cmds;
		cmd->cmds = below->next;
		cmd_free(below);
	}
	free(cmd->name);
	free(cmd->description);
}

doca_error_t doca_argp_cmd_destroy(struct doca_argp_cmd *cmd)
{
	if (cmd == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (cmd->registered)
		return DOCA_ERROR_BAD_STATE;
	cmd_free(cmd);
	return DOCA_SUCCESS;
}

void doca_argp_cmd_set_name(struct doca_argp_cmd *cmd, const char *name)
{
	cmd->incomplete |= !argp_replace_string(&cmd->name, name);
}

void doca_argp_cmd_set_description(struct doca_argp_cmd *cmd, const char *description)
{
	cmd->incomplete |= !argp_replace_string(&cmd->description, description);
}

void doca_argp_cmd_set_callback(struct doca_argp_cmd *cmd, doca_argp_cmd_cb_t callback)
{
	cmd->callback = callback;
}

void doca_argp_cmd_set_hidden(struct doca_argp_cmd *cmd)
{
	cmd->hidden = true;
}

/* ---- Finding ---- */

static bool has_name(const struct doca_argp_param *param, enum argp_name kind, const char *name, size_t len)
{
	const char *own = kind == ARGP_SHORT ? param->short_name : param->long_name;
	return own != NULL && strlen(own) == len && memcmp(own, name, len) == 0;
}

static struct doca_argp_param *find_own(const struct doca_argp_cmd *cmd, enum argp_name kind, const char *name,
					size_t len)
{
	for (struct doca_argp_param *param = cmd->params; param != NULL; param = param->next) {
		if (has_name(param, kind, name, len))
			return param;
	}
	return NULL;
}

struct doca_argp_param *argp_cmd_find_param(const struct doca_argp_cmd *cmd, enum argp_name kind, const char *name,
					    size_t len)
{
	for (const struct doca_argp_cmd *at = cmd; at != NULL; at = at->parent) {
		struct doca_argp_param *param = find_own(at, kind, name, len);
		if (param != NULL && (at == cmd || param->inherited))
			return param;
	}
	return find_own(&argp.general, kind, name, len);
}

struct doca_argp_cmd *argp_cmd_find_cmd(const struct doca_argp_cmd *cmd, const char *name)
{
	for (struct doca_argp_cmd *below = cmd->cmds; below != NULL; below = below->next) {
		if (strcmp(below->name, name) == 0)
			return below;
	}
	return NULL;
}

/* ---- Registering ---- */

static bool name_taken(const struct doca_argp_cmd *cmd, enum argp_name kind, const char *name)
{
	return name != NULL && (find_own(cmd, kind, name, strlen(name)) != NULL ||
				find_own(&argp.general, kind, name, strlen(name)) != NULL);
}

static doca_error_t check_param(const struct doca_argp_cmd *cmd, const struct doca_argp_param *param)
{
	if (param->incomplete || (param->short_name == NULL && param->long_name == NULL) || param->callback == NULL ||
	    param->description == NULL || param->type == DOCA_ARGP_TYPE_UNKNOWN)
		return argp_fail(DOCA_ERROR_INITIALIZATION,
				 "a parameter needs a name, a description, a type and a callback");
	if (param->type > DOCA_ARGP_TYPE_DOUBLE)
		return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s: not a type of this library", argp_param_name(param));
	if (name_taken(cmd, ARGP_SHORT, param->short_name) || name_taken(cmd, ARGP_LONG, param->long_name))
		return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s: its name is taken", argp_param_name(param));
	return DOCA_SUCCESS;
}

static void append_param(struct doca_argp_param **list, struct doca_argp_param *param)
{
	while (*list != NULL)
		list = &(*list)->next;
	*list = param;
}

doca_error_t argp_cmd_add_param(struct doca_argp_cmd *cmd, struct doca_argp_param *param)
{
	if (param == NULL || param->registered)
		return param == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_ERROR_BAD_STATE;
	doca_error_t result = check_param(cmd, param);
	if (result != DOCA_SUCCESS) {
		argp_param_free(param);
		return result;
	}
	param->registered = true;
	append_param(&cmd->params, param);
	return DOCA_SUCCESS;
}

static doca_error_t check_cmd(const struct doca_argp_cmd *cmd, const struct doca_argp_cmd *added)
{
	if (added->incomplete || added->name == NULL || added->name[0] == '-' || added->description == NULL)
		return argp_fail(DOCA_ERROR_INITIALIZATION, "a command needs a name without dash and a description");
	if (argp_cmd_find_cmd(cmd, added->name) != NULL)
		return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s: there is a command of this name", added->name);
	return DOCA_SUCCESS;
}

static bool contains(const struct doca_argp_cmd *outer, const struct doca_argp_cmd *cmd)
{
	while (cmd != NULL && cmd != outer)
		cmd = cmd->parent;
	return cmd != NULL;
}

static void append_cmd(struct doca_argp_cmd **list, struct doca_argp_cmd *cmd)
{
	while (*list != NULL)
		list = &(*list)->next;
	*list = cmd;
}

/* A command that contains the one it is given to cannot be freed here: it stays the caller's. */
doca_error_t argp_cmd_add_cmd(struct doca_argp_cmd *cmd, struct doca_argp_cmd *added)
{
	if (added == NULL || contains(added, cmd))
		return DOCA_ERROR_INVALID_VALUE;
	if (added->registered)
		return DOCA_ERROR_BAD_STATE;
	doca_error_t result = check_cmd(cmd, added);
	if (result != DOCA_SUCCESS) {
		cmd_free(added);
		return result;
	}
	added->registered = true;
	added->parent = cmd;
	append_cmd(&cmd->cmds, added);
	return DOCA_SUCCESS;
}

/* A command that is registered, wherever that is, takes no more. */
static doca_error_t open_for_registration(const struct doca_argp_cmd *cmd)
{
	if (cmd == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return cmd->registered ? DOCA_ERROR_BAD_STATE : argp_open_for_registration();
}

static doca_error_t take_param(doca_error_t open, struct doca_argp_cmd *cmd, struct doca_argp_param *param)
{
	if (open == DOCA_SUCCESS)
		return argp_cmd_add_param(cmd, param);
	if (param != NULL && !param->registered)
		argp_param_free(param);
	return open;
}

static doca_error_t take_cmd(doca_error_t open, struct doca_argp_cmd *cmd, struct doca_argp_cmd *added)
{
	if (open == DOCA_SUCCESS)
		return argp_cmd_add_cmd(cmd, added);
	if (added != NULL && !added->registered && !contains(added, cmd))
		cmd_free(added);
	return open;
}

doca_error_t doca_argp_register_param(struct doca_argp_param *input_param)
{
	return take_param(argp_open_for_registration(), &argp.program, input_param);
}

doca_error_t doca_argp_register_cmd(struct doca_argp_cmd *input_cmd)
{
	return take_cmd(argp_open_for_registration(), &argp.program, input_cmd);
}

doca_error_t doca_argp_cmd_register_param(struct doca_argp_cmd *cmd, struct doca_argp_param *input_param)
{
	return take_param(open_for_registration(cmd), cmd, input_param);
}

doca_error_t doca_argp_cmd_register_cmd(struct doca_argp_cmd *cmd, struct doca_argp_cmd *input_cmd)
{
	return take_cmd(open_for_registration(cmd), cmd, input_cmd);
}
