/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One program's parameters, and what becomes of command lines and JSON files. Each callback appends to a record; a case
 * says what the record, the result and the output must be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <doca_argp.h>

#include "capture.h"

/* ---- The program ---- */

static char record[1024];

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
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

static doca_error_t on_validation(void *config)
{
	(void)config;
	note("valid");
	return strstr(record, "number=13") != NULL ? DOCA_ERROR_BAD_CONFIG : DOCA_SUCCESS;
}

static doca_error_t on_dpdk(int argc, char **argv)
{
	note("dpdk=%d,%s ", argc, argv[argc - 1]);
	return DOCA_SUCCESS;
}

static doca_error_t on_version(void *value, void *config)
{
	printf("version %d\n", value == NULL && config == record);
	return DOCA_SUCCESS;
}

typedef void (*mark_fn)(struct doca_argp_param *param);

struct parameter {
	const char *short_name, *long_name;
	enum doca_argp_type type;
	doca_argp_param_cb_t callback;
	mark_fn marks[2];
};

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

static struct doca_argp_param *make(const struct parameter *parameter)
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

static struct doca_argp_cmd *make_cmd(const char *name, doca_argp_cmd_cb_t callback)
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
	doca_error_t result = doca_argp_cmd_register_param(remote, make(&host));
	if (result == DOCA_SUCCESS)
		result = doca_argp_cmd_register_cmd(remote, make_cmd("add", on_add));
	return result == DOCA_SUCCESS ? doca_argp_register_cmd(remote) : result;
}

static doca_error_t set_up(const char *name)
{
	doca_error_t result = doca_argp_init(name, record);
	for (size_t i = 0; result == DOCA_SUCCESS && i < sizeof(parameters) / sizeof(parameters[0]); i++)
		result = doca_argp_register_param(make(&parameters[i]));
	if (result == DOCA_SUCCESS)
		result = register_cmds();
	if (result == DOCA_SUCCESS)
		result = doca_argp_register_validation_callback(on_validation);
	return result;
}

/* ---- Command lines ---- */

struct line {
	const char *args; /* separated by spaces; "JSON" stands for the file */
	const char *json; /* NULL: no such file */
	doca_error_t result;
	const char *record; /* NULL: not looked at */
	const char *err;    /* contained in stderr; NULL: nothing there */
};

#define FILE_IS_X "{\"doca_program_flags\": {\"file\": \"x\""
static const struct line lines[] = {
	/* forms of flags */
	{"-f x", NULL, DOCA_SUCCESS, "file=x valid", NULL},
	{"--file x", NULL, DOCA_SUCCESS, "file=x valid", NULL},
	{"--file=x=y", NULL, DOCA_SUCCESS, "file=x=y valid", NULL},
	{"--file=", NULL, DOCA_SUCCESS, "file= valid", NULL},
	{"-f -n", NULL, DOCA_SUCCESS, "file=-n valid", NULL},
	{"-ns 3 -f x -n -4 -b", NULL, DOCA_SUCCESS, "sources=3 file=x number=-4 flag=true valid", NULL},
	{"-f x -m 1 -m 2", NULL, DOCA_SUCCESS, "file=x many=1 many=2 valid", NULL},
	{"-f x -s y", NULL, DOCA_SUCCESS, "file=x secret=y valid", NULL},

	/* wrong ones: nobody is called back */
	{"", NULL, DOCA_ERROR_INVALID_VALUE, "", "file is missing"},
	{"-f x -q", NULL, DOCA_ERROR_NOT_SUPPORTED, "", "unknown flag -q"},
	{"-f x --files y", NULL, DOCA_ERROR_NOT_SUPPORTED, "", "unknown flag --files"},
	{"-f x -file y", NULL, DOCA_ERROR_NOT_SUPPORTED, "", "unknown flag -file"},
	{"-f x y", NULL, DOCA_ERROR_NOT_SUPPORTED, "", "\"y\" is neither"},
	{"-f x -f y", NULL, DOCA_ERROR_INVALID_VALUE, "", "file is given twice"},
	{"-f x -n", NULL, DOCA_ERROR_INVALID_VALUE, "", "-n wants a value"},
	{"-f x -n 1a", NULL, DOCA_ERROR_INVALID_VALUE, "", "whole number"},
	{"-f x -n 2147483648", NULL, DOCA_ERROR_INVALID_VALUE, "", "whole number"},
	{"-f x --number=", NULL, DOCA_ERROR_INVALID_VALUE, "", "whole number"},
	{"-f x --flag=true", NULL, DOCA_ERROR_INVALID_VALUE, "", "takes no value"},

	/* what the program says to a value */
	{"-f x -x y -n 1", NULL, DOCA_ERROR_TOO_BIG, "file=x ", "value of x was refused"},
	{"-f x -n 13", NULL, DOCA_ERROR_BAD_CONFIG, "file=x number=13 valid", NULL},

	/* alone */
	{"--list", NULL, DOCA_SUCCESS, "list valid", NULL},
	{"--list -l 60", NULL, DOCA_SUCCESS, "list valid", NULL},
	{"--list -f x", NULL, DOCA_ERROR_INVALID_VALUE, "", "list must be alone"},

	/* log levels */
	{"-f x -l 35", NULL, DOCA_ERROR_INVALID_VALUE, "file=x ", "log-level"},
	{"-f x --sdk-log-level 80", NULL, DOCA_ERROR_INVALID_VALUE, "file=x ", "sdk-log-level"},

	/* commands */
	{"-f x remote --host h add", NULL, DOCA_SUCCESS, "file=x host=h remote add valid", NULL},
	{"-f x remote --host h -d 2", NULL, DOCA_SUCCESS, "file=x host=h depth=2 remote valid", NULL},
	{"-f x remote --host h -l 50", NULL, DOCA_SUCCESS, "file=x host=h remote valid", NULL},
	{"-f x remote", NULL, DOCA_ERROR_INVALID_VALUE, "", "host is missing"},
	{"remote --host h", NULL, DOCA_ERROR_INVALID_VALUE, "", "file is missing"},
	{"-f x --host h", NULL, DOCA_ERROR_NOT_SUPPORTED, "", "--host"},
	{"remote -f x --host h", NULL, DOCA_ERROR_NOT_SUPPORTED, "", "-f"},
	{"-f x add", NULL, DOCA_ERROR_NOT_SUPPORTED, "", "add"},

	/* JSON */
	{"--json JSON", FILE_IS_X "}}", DOCA_SUCCESS, "file=x valid", NULL},
	{"-j JSON", FILE_IS_X ", \"flag\": false, \"number\": -7,}, }", DOCA_SUCCESS,
	 "file=x flag=false number=-7 valid", NULL},
	{"-j JSON", "// one\n" FILE_IS_X " /* two */, // three\n}}\n", DOCA_SUCCESS, "file=x valid", NULL},
	{"-j JSON", "{\"doca_program_flags\": {\"file\": \"// no /* comment */ ,}\"}}", DOCA_SUCCESS,
	 "file=// no /* comment */ ,} valid", NULL},
	{"-j JSON", FILE_IS_X ", \"many\": [\"1\", \"2\",]}}", DOCA_SUCCESS, "file=x many=1 many=2 valid", NULL},
	{"-j JSON", FILE_IS_X ", \"many\": \"1\"}}", DOCA_SUCCESS, "file=x many=1 valid", NULL},
	{"-j JSON -f y", FILE_IS_X ", \"number\": 2}}", DOCA_SUCCESS, "file=y number=2 valid", NULL},
	{"-j JSON", "{\"doca_general_flags\": {\"log-level\": 60}, \"doca_program_flags\": {\"list\": true}}",
	 DOCA_SUCCESS, "list valid", NULL},
	{"-j JSON remote", FILE_IS_X "}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"file\""},
	{"-f x -j JSON remote", "{\"doca_program_flags\": {\"host\": \"h\", \"depth\": 3}}", DOCA_SUCCESS,
	 "file=x host=h depth=3 remote valid", NULL},

	{"-f x -j /nonexistent", NULL, DOCA_ERROR_IO_FAILED, "", "cannot be opened"},
	{"-f x -j /", NULL, DOCA_ERROR_IO_FAILED, "", "cannot be read"},
	{"-f x -j JSON", "", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-f x -j JSON", "{", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-f x -j JSON", "[1]", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-f x -j JSON", "{} {}", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-f x -j JSON", "{\"doca_program_flags\": 1}", DOCA_ERROR_INVALID_VALUE, "", "must be a JSON object"},
	{"-f x -j JSON", "{\"other_flags\": {}}", DOCA_ERROR_NOT_SUPPORTED, "", "other_flags"},
	{"-j JSON", FILE_IS_X ", \"fil\": \"y\"}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"fil\""},
	{"-j JSON", FILE_IS_X ", \"n\": 1}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"n\""},
	{"-j JSON", FILE_IS_X ", \"secret\": \"y\"}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"secret\""},
	{"-j JSON", FILE_IS_X ", \"log-level\": 50}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"log-level\""},
	{"-f x -j JSON", "{\"doca_general_flags\": {\"json\": \"y\"}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"json\""},
	{"-j JSON", "{\"doca_program_flags\": {\"file\": 1}}", DOCA_ERROR_INVALID_VALUE, "", "file does not take"},
	{"-j JSON", FILE_IS_X ", \"number\": \"1\"}}", DOCA_ERROR_INVALID_VALUE, "", "number does not take"},
	{"-j JSON", FILE_IS_X ", \"number\": 1.5}}", DOCA_ERROR_INVALID_VALUE, "", "number does not take"},
	{"-j JSON", FILE_IS_X ", \"number\": 9999999999}}", DOCA_ERROR_INVALID_VALUE, "", "number does not take"},
	{"-j JSON", FILE_IS_X ", \"flag\": 1}}", DOCA_ERROR_INVALID_VALUE, "", "flag does not take"},
	{"-j JSON", FILE_IS_X ", \"flag\": null}}", DOCA_ERROR_INVALID_VALUE, "", "flag does not take"},
	{"-j JSON", FILE_IS_X ", \"number\": [1]}}", DOCA_ERROR_INVALID_VALUE, "", "number does not take"},
};

#define MAX_ARGS 16

/* Cuts the line into its arguments; JSON becomes the path. */
static int split(char *text, const char *json_path, char **argv)
{
	int argc = 1;
	char *rest;
	argv[0] = (char *)"/some/where/prog";
	for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = strcmp(word, "JSON") == 0 ? (char *)json_path : word;
	argv[argc] = NULL;
	return argc;
}

static void write_json(const char *text, char path[])
{
	int fd = mkstemp(path);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		exit(92);
	close(fd);
}

/* 0 as expected; else says what came instead. */
static int run_line(const void *argument)
{
	const struct line *line = argument;
	char text[256], path[] = "/tmp/argp_test_XXXXXX", *argv[MAX_ARGS];
	snprintf(text, sizeof(text), "%s", line->args);
	if (line->json != NULL)
		write_json(line->json, path);
	if (set_up(NULL) != DOCA_SUCCESS)
		return 93;
	doca_error_t result = doca_argp_start(split(text, path, argv), argv);
	if (line->json != NULL)
		unlink(path);
	printf("%s; %s", doca_error_get_name(result), record);
	doca_argp_destroy();
	return result != line->result || (line->record != NULL && strcmp(record, line->record) != 0);
}

static int check_line(const struct line *line)
{
	struct capture got;
	capture_run(run_line, line, &got);
	if (got.exit_code == 0 && (line->err == NULL ? got.err[0] == '\0' : strstr(got.err, line->err) != NULL))
		return 0;
	fprintf(stderr, "prog %s (%s): exit %d, %s, wrote \"%s\"\n", line->args,
		line->json != NULL ? line->json : "no file", got.exit_code, got.out, got.err);
	return 1;
}

/* ---- What ends the program ---- */

static int start_with(const void *argument)
{
	char *argv[] = {(char *)"/some/where/prog", (char *)argument, NULL};
	if (set_up(NULL) != DOCA_SUCCESS)
		return 94;
	doca_argp_start(2, argv);
	return 95;
}

static int start_with_own_version(const void *argument)
{
	char *argv[] = {(char *)"prog", (char *)argument, NULL};
	if (set_up("own name") != DOCA_SUCCESS || doca_argp_register_version_callback(on_version) != DOCA_SUCCESS)
		return 94;
	doca_argp_start(2, argv);
	return 95;
}

static int usage_of_command(const void *argument)
{
	(void)argument;
	char *argv[] = {(char *)"prog", (char *)"remote", (char *)"-h", NULL};
	if (set_up(NULL) != DOCA_SUCCESS)
		return 94;
	doca_argp_start(3, argv);
	return 95;
}

struct ending {
	const char *name;
	int (*run)(const void *argument);
	const char *argument;
	const char *out[8]; /* contained in stdout, up to a NULL */
	const char *absent; /* not contained */
};

static const struct ending endings[] = {
	{"help",
	 start_with,
	 "-h",
	 {"Usage: prog [DOCA Flags] [Program Flags] [Command]\n", "\nDOCA Flags:\n  -h, --help  ", "  -l, --log-level ",
	  "\nProgram Flags:\n  -f, --file <VALUE> ", "  -x <VALUE> ", "      --list ", "\nCommands:\n  remote "},
	 "secret"},
	{"long help", start_with, "--help", {"Usage: prog "}, "secret"},
	{"help of a command",
	 usage_of_command,
	 NULL,
	 {"Usage: prog remote [DOCA Flags] [Program Flags] [Command]\n", "--host <VALUE>", "-d, --depth", "\n  add "},
	 "--file"},
	{"version",
	 start_with,
	 "-v",
	 {"DOCA SDK     Version (Compilation): 3.", "DOCA Runtime Version (Runtime):     3."},
	 "secret"},
	{"own version", start_with_own_version, "--version", {"version 1\n"}, "DOCA"},
};

static int check_ending(const struct ending *ending)
{
	struct capture got;
	capture_run(ending->run, ending->argument, &got);
	int failed = got.exit_code != 0 || strstr(got.out, ending->absent) != NULL;
	for (int i = 0; ending->out[i] != NULL; i++)
		failed |= strstr(got.out, ending->out[i]) == NULL;
	if (failed)
		fprintf(stderr, "%s: exit %d, wrote \"%s\"\n", ending->name, got.exit_code, got.out);
	return failed;
}

/* ---- Calls in the wrong place, and who owns what afterwards; leaks are the sanitizer's business ---- */

#define EXPECT(expected, call)                                                                                      \
	do {                                                                                                        \
		doca_error_t got_ = (call);                                                                         \
		if (got_ != (expected)) {                                                                           \
			fprintf(stderr, "%s:%d: %s is %s\n", __FILE__, __LINE__, #call, doca_error_get_name(got_)); \
			return 1;                                                                                   \
		}                                                                                                   \
	} while (0)

static int calls_before_init(const void *argument)
{
	(void)argument;
	struct doca_argp_param *param;
	struct doca_argp_cmd *cmd;
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_destroy());
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_start(0, NULL));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_param_create(&param));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_create(&cmd));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_register_param(NULL));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_register_validation_callback(on_validation));
	return 0;
}

static int calls_after_start(const void *argument)
{
	(void)argument;
	char *argv[] = {(char *)"prog", (char *)"-f", (char *)"x", NULL};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_init("prog", NULL));
	EXPECT(DOCA_SUCCESS, doca_argp_start(3, argv));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_start(3, argv));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_register_param(make(&parameters[1])));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_register_version_callback(on_version));
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
	EXPECT(DOCA_SUCCESS, doca_argp_init("prog", NULL));
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
	return 0;
}

static int bad_registrations(const void *argument)
{
	(void)argument;
	const struct parameter taken = {"f", "other", DOCA_ARGP_TYPE_INT, on_number, {NULL}};
	const struct parameter reserved = {NULL, "json", DOCA_ARGP_TYPE_INT, on_number, {NULL}};
	const struct parameter nameless = {NULL, NULL, DOCA_ARGP_TYPE_INT, on_number, {NULL}};
	const struct parameter mute = {"y", NULL, DOCA_ARGP_TYPE_INT, NULL, {NULL}};
	const struct parameter typeless = {"y", NULL, DOCA_ARGP_TYPE_UNKNOWN, on_number, {NULL}};
	const struct parameter typed_later = {"y", NULL, (enum doca_argp_type)4, on_number, {NULL}};
	struct doca_argp_param *param = NULL;
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(make(&taken)));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(make(&reserved)));
	EXPECT(DOCA_ERROR_INITIALIZATION, doca_argp_register_param(make(&nameless)));
	EXPECT(DOCA_ERROR_INITIALIZATION, doca_argp_register_param(make(&mute)));
	EXPECT(DOCA_ERROR_INITIALIZATION, doca_argp_register_param(make(&typeless)));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(make(&typed_later)));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(NULL));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_param_create(NULL));
	EXPECT(DOCA_SUCCESS, doca_argp_param_create(&param));
	EXPECT(DOCA_SUCCESS, doca_argp_param_destroy(param));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_param_destroy(NULL));
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
	return 0;
}

static int registered_twice(const void *argument)
{
	(void)argument;
	const struct parameter parameter = {"y", NULL, DOCA_ARGP_TYPE_INT, on_number, {NULL}};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	struct doca_argp_param *param = make(&parameter);
	EXPECT(DOCA_SUCCESS, doca_argp_register_param(param));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(param));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_param_destroy(param));
	struct doca_argp_cmd *cmd = make_cmd("outer", NULL), *inner = make_cmd("inner", NULL);
	EXPECT(DOCA_SUCCESS, doca_argp_cmd_register_cmd(cmd, inner));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_cmd_register_cmd(inner, cmd));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_cmd_register_cmd(cmd, cmd));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_destroy(inner));
	EXPECT(DOCA_SUCCESS, doca_argp_register_cmd(cmd));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_cmd(make_cmd("outer", NULL)));
	EXPECT(DOCA_ERROR_INITIALIZATION, doca_argp_register_cmd(make_cmd("-dash", NULL)));
	EXPECT(DOCA_SUCCESS, doca_argp_cmd_destroy(make_cmd("never", NULL)));
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
	return 0;
}

static int levels_are_applied(const void *argument)
{
	(void)argument;
	int level = 0;
	char *argv[] = {
		(char *)"p", (char *)"-f", (char *)"x", (char *)"-l", (char *)"20", (char *)"--sdk-log-level=70", NULL};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	EXPECT(DOCA_SUCCESS, doca_argp_get_log_level(&level));
	if (level != DOCA_LOG_LEVEL_INFO)
		return 1;
	EXPECT(DOCA_SUCCESS, doca_argp_start(6, argv));
	EXPECT(DOCA_SUCCESS, doca_argp_get_log_level(&level));
	if (level != 20 || doca_log_level_get_global_lower_limit() != 20)
		return 2;
	EXPECT(DOCA_SUCCESS, doca_argp_get_sdk_log_level(&level));
	if (level != 70 || doca_log_level_get_global_sdk_limit() != 70)
		return 3;
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_get_log_level(NULL));
	return doca_argp_destroy();
}

static int dpdk_program(const void *argument)
{
	(void)argument;
	char *both[] = {(char *)"p", (char *)"-a", (char *)"03:00.0", (char *)"--", (char *)"-f", (char *)"x", NULL};
	char *ours[] = {(char *)"p", (char *)"-f", (char *)"x", NULL};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	doca_argp_set_dpdk_program(on_dpdk);
	EXPECT(DOCA_SUCCESS, doca_argp_start(6, both));
	if (strcmp(record, "file=x dpdk=3,03:00.0 valid") != 0)
		return 1;
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
	record[0] = '\0';
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	doca_argp_set_dpdk_program(on_dpdk);
	EXPECT(DOCA_SUCCESS, doca_argp_start(3, ours));
	if (strcmp(record, "file=x dpdk=1,p valid") != 0)
		return 2;
	return doca_argp_destroy();
}

static doca_error_t to_record(enum doca_log_level level, const char *format, va_list args)
{
	char text[256];
	vsnprintf(text, sizeof(text), format, args);
	note("%d:%s ", level, text);
	return DOCA_SUCCESS;
}

static int own_logger(const void *argument)
{
	(void)argument;
	char *argv[] = {(char *)"p", (char *)"-q", NULL};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	EXPECT(DOCA_SUCCESS, doca_argp_register_logger_callback(to_record));
	EXPECT(DOCA_ERROR_ALREADY_EXIST, doca_argp_register_logger_callback(to_record));
	EXPECT(DOCA_ERROR_NOT_SUPPORTED, doca_argp_start(2, argv));
	if (strcmp(record, "30:unknown flag -q ") != 0)
		return 1;
	EXPECT(DOCA_SUCCESS, doca_argp_disable_logger_callback());
	return doca_argp_destroy();
}

struct call_case {
	const char *name;
	int (*run)(const void *argument);
};

static const struct call_case call_cases[] = {
	{"calls before init", calls_before_init},
	{"calls after start", calls_after_start},
	{"bad registrations", bad_registrations},
	{"registered twice", registered_twice},
	{"log levels", levels_are_applied},
	{"DPDK program", dpdk_program},
	{"own logger", own_logger},
};

static int check_calls(const struct call_case *call_case)
{
	struct capture got;
	capture_run(call_case->run, NULL, &got);
	if (got.exit_code != 0)
		fprintf(stderr, "%s: exit %d, \"%s\"\n", call_case->name, got.exit_code, got.err);
	return got.exit_code != 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int main(void)
{
	int failed = 0;
	for (size_t i = 0; i < COUNT(lines); i++)
		failed += check_line(&lines[i]);
	for (size_t i = 0; i < COUNT(endings); i++)
		failed += check_ending(&endings[i]);
	for (size_t i = 0; i < COUNT(call_cases); i++)
		failed += check_calls(&call_cases[i]);
	printf("argp: %zu cases, %d failed\n", COUNT(lines) + COUNT(endings) + COUNT(call_cases), failed);
	return failed == 0 ? 0 : 1;
}
