/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   { "doca_general_flags": { "log-level": 60 }, "doca_program_flags": { "file": "/tmp/x", } } // a comment
 *
 * json-c, unless it is set to be strict, accepts the comments and the trailing commas that files of this kind have.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "argp.h"

#define MAX_FILE_SIZE (1 << 20)

/* ---- The file ---- */

static doca_error_t read_text(FILE *file, const char *path, char *text, size_t *len)
{
	*len = fread(text, 1, MAX_FILE_SIZE + 1, file);
	if (ferror(file))
		return argp_fail(DOCA_ERROR_IO_FAILED, "%s cannot be read: %s", path, strerror(errno));
	if (*len > MAX_FILE_SIZE)
		return argp_fail(DOCA_ERROR_IO_FAILED, "%s is larger than %d bytes", path, MAX_FILE_SIZE);
	text[(*len)++] = '\n'; /* for json-c a comment without it does not end */
	return DOCA_SUCCESS;
}

/* Returns the end of the comment; NULL: there is none, or it has no end. */
static const char *skip_comment(const char *text, const char *end)
{
	if (end - text < 2 || *text != '/')
		return NULL;
	if (text[1] == '/') {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		return newline == NULL ? end : newline;
	}
	const char *close = text[1] == '*' ? memmem(text + 2, (size_t)(end - text) - 2, "*/", 2) : NULL;
	return close == NULL ? NULL : close + 2;
}

/* Or comments, which json-c accepts within the object and before it. */
static bool only_space(const char *text, const char *end)
{
	while (text != NULL && text < end) {
		bool space = memchr(" \t\r\n", *text, 4) != NULL;
		text = space ? text + 1 : skip_comment(text, end);
	}
	return text == end;
}

static doca_error_t parse_text(const char *path, const char *text, size_t len, struct json_object **root)
{
	struct json_tokener *tokener = json_tokener_new();
	if (tokener == NULL)
		return DOCA_ERROR_NO_MEMORY;
	struct json_object *parsed = json_tokener_parse_ex(tokener, text, (int)len);
	enum json_tokener_error error = json_tokener_get_error(tokener);
	size_t end = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	if (error == json_tokener_success && json_object_is_type(parsed, json_type_object) &&
	    only_space(text + end, text + len)) {
		*root = parsed;
		return DOCA_SUCCESS;
	}
	json_object_put(parsed);
	return argp_fail(DOCA_ERROR_IO_FAILED, "%s is no JSON object: %s at byte %zu", path,
			 error == json_tokener_success ? "wrong text" : json_tokener_error_desc(error), end);
}

static doca_error_t load(const char *path, struct json_object **root)
{
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return argp_fail(DOCA_ERROR_IO_FAILED, "%s cannot be opened: %s", path, strerror(errno));
	size_t len;
	char *text = malloc(MAX_FILE_SIZE + 1);
	doca_error_t result = text == NULL ? DOCA_ERROR_NO_MEMORY : read_text(file, path, text, &len);
	if (result == DOCA_SUCCESS)
		result = parse_text(path, text, len, root);
	free(text);
	fclose(file);
	return result;
}

/* ---- Values ---- */

/* A C string ends at a zero, so a JSON string with one inside would arrive short. */
static bool is_c_string(struct json_object *value)
{
	return json_object_is_type(value, json_type_string) &&
	       strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value);
}

static doca_error_t add_scalar(struct argp_values *values, struct doca_argp_param *param, struct json_object *value)
{
	bool whole = json_object_is_type(value, json_type_int);
	if (argp_is_text(param->type) && is_c_string(value))
		return argp_values_add_text(values, param, json_object_get_string(value));
	if (param->type == DOCA_ARGP_TYPE_BOOLEAN && json_object_is_type(value, json_type_boolean))
		return argp_values_add_boolean(values, param, json_object_get_boolean(value));
	if (param->type == DOCA_ARGP_TYPE_DOUBLE && (whole || json_object_is_type(value, json_type_double)))
		return argp_values_add_real(values, param, json_object_get_double(value));
	int64_t number = json_object_get_int64(value);
	if (param->type == DOCA_ARGP_TYPE_INT && whole && number >= INT_MIN && number <= INT_MAX)
		return argp_values_add_integer(values, param, (int)number);
	return argp_fail(DOCA_ERROR_INVALID_VALUE, "%s does not take this: %s", argp_param_name(param),
			 json_object_to_json_string(value));
}

static doca_error_t add_value(struct argp_values *values, struct doca_argp_param *param, struct json_object *value)
{
	if (!param->multiplicity || !json_object_is_type(value, json_type_array))
		return add_scalar(values, param, value);
	doca_error_t result = DOCA_SUCCESS;
	for (size_t i = 0; result == DOCA_SUCCESS && i < json_object_array_length(value); i++)
		result = add_scalar(values, param, json_object_array_get_idx(value, i));
	return result;
}

/* ---- Groups ---- */

static doca_error_t unknown(const char *what, const char *name)
{
	return argp.lenient ? DOCA_SUCCESS : argp_fail(DOCA_ERROR_NOT_SUPPORTED, "unknown JSON %s \"%s\"", what, name);
}

/* A group has only its own keys, although the command line has all flags together. */
static doca_error_t add_key(const struct doca_argp_cmd *cmd, const char *key, struct json_object *value,
			    struct argp_values *values)
{
	struct doca_argp_param *param = argp_cmd_find_param(cmd, ARGP_LONG, key, strlen(key));
	if (param == NULL || param->cli_only || argp_is_general(param) != (cmd == &argp.general))
		return unknown("key", key);
	return param->on_command_line ? DOCA_SUCCESS : add_value(values, param, value);
}

static doca_error_t add_keys(const struct doca_argp_cmd *scope, struct json_object *group, struct argp_values *values)
{
	json_object_object_foreach(group, key, value)
	{
		doca_error_t result = add_key(scope, key, value, values);
		if (result != DOCA_SUCCESS)
			return result;
	}
	return DOCA_SUCCESS;
}

/* For programs that run on DPDK; any other ignores it, so that one file can serve several programs. */
static doca_error_t skip_dpdk_group(void)
{
	if (argp.dpdk_callback == NULL)
		return DOCA_SUCCESS;
	return argp_fail(DOCA_ERROR_NOT_SUPPORTED, "\"doca_dpdk_flags\" in a JSON file is not supported: "
						   "give DPDK's flags on the command line, before \"--\"");
}

static doca_error_t add_group(const struct doca_argp_cmd *cmd, const char *name, struct json_object *group,
			      struct argp_values *values)
{
	bool general = strcmp(name, "doca_general_flags") == 0, dpdk = strcmp(name, "doca_dpdk_flags") == 0;
	if (!general && !dpdk && strcmp(name, "doca_program_flags") != 0)
		return unknown("group", name);
	if (!json_object_is_type(group, json_type_object))
		return argp_fail(DOCA_ERROR_INVALID_VALUE, "\"%s\" must be a JSON object", name);
	return dpdk ? skip_dpdk_group() : add_keys(general ? &argp.general : cmd, group, values);
}

static doca_error_t add_groups(struct json_object *root, const struct doca_argp_cmd *cmd, struct argp_values *values)
{
	json_object_object_foreach(root, name, group)
	{
		doca_error_t result = add_group(cmd, name, group, values);
		if (result != DOCA_SUCCESS)
			return result;
	}
	return DOCA_SUCCESS;
}

doca_error_t argp_json_parse(const char *path, const struct doca_argp_cmd *cmd, struct argp_values *values)
{
	struct json_object *root = NULL;
	doca_error_t result = load(path, &root);
	if (result != DOCA_SUCCESS)
		return result;
	result = add_groups(root, cmd, values);
	json_object_put(root);
	return result;
}
