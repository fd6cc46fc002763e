/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in the wrong state, and ownership afterwards; the sanitizer finds leaks. */
#include <string.h>
#include <unistd.h>

#include "argp_program.h"
#include "capture.h"
#include "check.h"

static doca_error_t accept(void *value, void *config)
{
	(void)value;
	(void)config;
	return DOCA_SUCCESS;
}

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
	const struct parameter late = {"y", NULL, DOCA_ARGP_TYPE_INT, accept, {NULL}};
	char *argv[] = {(char *)"prog", (char *)"-f", (char *)"x", NULL};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_init("prog", NULL));
	EXPECT(DOCA_SUCCESS, doca_argp_start(3, argv));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_start(3, argv));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_register_param(make_param(&late)));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_register_version_callback(accept));
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
	EXPECT(DOCA_SUCCESS, doca_argp_init("prog", NULL));
	return doca_argp_destroy();
}

/* Behind argc, an array of arguments may have anything, or nothing. */
static int arguments_end_at_argc(const void *argument)
{
	(void)argument;
	char *argv[] = {(char *)"prog", (char *)"-f", (char *)"x", (char *)"--beyond"};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	EXPECT(DOCA_SUCCESS, doca_argp_start(3, argv));
	CHECK(strcmp(record, "file=x valid") == 0);
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_start(2, argv));
	return doca_argp_destroy();
}

static int bad_registrations(const void *argument)
{
	(void)argument;
	const struct parameter taken = {"f", "other", DOCA_ARGP_TYPE_INT, accept, {NULL}};
	const struct parameter reserved = {NULL, "json", DOCA_ARGP_TYPE_INT, accept, {NULL}};
	const struct parameter nameless = {NULL, NULL, DOCA_ARGP_TYPE_INT, accept, {NULL}};
	const struct parameter mute = {"y", NULL, DOCA_ARGP_TYPE_INT, NULL, {NULL}};
	const struct parameter typeless = {"y", NULL, DOCA_ARGP_TYPE_UNKNOWN, accept, {NULL}};
	const struct parameter typed_later = {"y", NULL, (enum doca_argp_type)7, accept, {NULL}};
	struct doca_argp_param *param = NULL;
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(make_param(&taken)));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(make_param(&reserved)));
	EXPECT(DOCA_ERROR_INITIALIZATION, doca_argp_register_param(make_param(&nameless)));
	EXPECT(DOCA_ERROR_INITIALIZATION, doca_argp_register_param(make_param(&mute)));
	EXPECT(DOCA_ERROR_INITIALIZATION, doca_argp_register_param(make_param(&typeless)));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(make_param(&typed_later)));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(NULL));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_param_create(NULL));
	EXPECT(DOCA_SUCCESS, doca_argp_param_create(&param));
	EXPECT(DOCA_SUCCESS, doca_argp_param_destroy(param));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_param_destroy(NULL));
	return doca_argp_destroy();
}

static int registered_twice(const void *argument)
{
	(void)argument;
	const struct parameter parameter = {"y", NULL, DOCA_ARGP_TYPE_INT, accept, {NULL}};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	struct doca_argp_param *param = make_param(&parameter);
	EXPECT(DOCA_SUCCESS, doca_argp_register_param(param));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_register_param(param));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_param_destroy(param));
	struct doca_argp_cmd *cmd = make_cmd("outer", NULL), *inner = make_cmd("inner", NULL);
	EXPECT(DOCA_SUCCESS, doca_argp_cmd_register_cmd(cmd, inner));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_register_cmd(inner, cmd));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_register_cmd(inner, make_cmd("too late", NULL)));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_register_param(inner, make_param(&parameter)));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_cmd_register_cmd(cmd, cmd));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_destroy(inner));
	EXPECT(DOCA_SUCCESS, doca_argp_register_cmd(cmd));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_register_cmd(cmd));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_cmd(make_cmd("outer", NULL)));
	EXPECT(DOCA_ERROR_INITIALIZATION, doca_argp_register_cmd(make_cmd("-dash", NULL)));
	EXPECT(DOCA_SUCCESS, doca_argp_cmd_destroy(make_cmd("never", NULL)));
	return doca_argp_destroy();
}

static int levels_are_applied(const void *argument)
{
	(void)argument;
	int level = 0;
	char *argv[] = {
		(char *)"p", (char *)"-f", (char *)"x", (char *)"-l", (char *)"20", (char *)"--sdk-log-level=70", NULL};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	EXPECT(DOCA_SUCCESS, doca_argp_get_log_level(&level));
	CHECK(level == DOCA_LOG_LEVEL_INFO);
	EXPECT(DOCA_SUCCESS, doca_argp_start(6, argv));
	EXPECT(DOCA_SUCCESS, doca_argp_get_log_level(&level));
	CHECK(level == 20 && doca_log_level_get_global_lower_limit() == 20);
	EXPECT(DOCA_SUCCESS, doca_argp_get_sdk_log_level(&level));
	CHECK(level == 70 && doca_log_level_get_global_sdk_limit() == 70);
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_get_log_level(NULL));
	return doca_argp_destroy();
}

static doca_error_t on_dpdk(int argc, char **argv)
{
	note("dpdk=%d,%s ", argc, argv[argc - 1]);
	return DOCA_SUCCESS;
}

static int dpdk_program(const void *argument)
{
	(void)argument;
	char *both[] = {(char *)"p", (char *)"-a", (char *)"03:00.0", (char *)"--", (char *)"-f", (char *)"x", NULL};
	char *ours[] = {(char *)"p", (char *)"-f", (char *)"x", NULL};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	doca_argp_set_dpdk_program(on_dpdk);
	EXPECT(DOCA_SUCCESS, doca_argp_start(6, both));
	CHECK(strcmp(record, "file=x dpdk=3,03:00.0 valid") == 0);
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
	record[0] = '\0';
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	doca_argp_set_dpdk_program(on_dpdk);
	EXPECT(DOCA_SUCCESS, doca_argp_start(3, ours));
	CHECK(strcmp(record, "file=x dpdk=1,p valid") == 0);
	return doca_argp_destroy();
}

static doca_error_t to_record(enum doca_log_level level, const char *format, va_list args)
{
	char text[256];
	vsnprintf(text, sizeof(text), format, args);
	note("%d:%s ", level, text);
	return DOCA_SUCCESS;
}

/* A program that runs on DPDK must not lose the flags that a file has for it. */
static int dpdk_flags_of_a_file(const void *argument)
{
	(void)argument;
	char path[] = "/tmp/argp_test_XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0 && dprintf(fd, "{\"doca_dpdk_flags\": {}}") > 0 && close(fd) == 0);
	char *argv[] = {(char *)"p", (char *)"-f", (char *)"x", (char *)"-j", path, NULL};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	doca_argp_set_dpdk_program(on_dpdk);
	EXPECT(DOCA_SUCCESS, doca_argp_register_logger_callback(to_record));
	EXPECT(DOCA_ERROR_NOT_SUPPORTED, doca_argp_start(5, argv));
	CHECK(strstr(record, "doca_dpdk_flags") != NULL && strstr(record, "before \"--\"") != NULL);
	CHECK(unlink(path) == 0);
	return doca_argp_destroy();
}

static int own_logger(const void *argument)
{
	(void)argument;
	char *argv[] = {(char *)"p", (char *)"-q", NULL};
	EXPECT(DOCA_SUCCESS, set_up("prog"));
	EXPECT(DOCA_SUCCESS, doca_argp_register_logger_callback(to_record));
	EXPECT(DOCA_ERROR_ALREADY_EXIST, doca_argp_register_logger_callback(to_record));
	EXPECT(DOCA_ERROR_NOT_SUPPORTED, doca_argp_start(2, argv));
	CHECK(strcmp(record, "30:unknown flag -q ") == 0);
	EXPECT(DOCA_SUCCESS, doca_argp_disable_logger_callback());
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_disable_logger_callback());
	return doca_argp_destroy();
}

static const struct capture_case cases[] = {
	{"calls before init", calls_before_init},
	{"calls after start", calls_after_start},
	{"arguments end at argc", arguments_end_at_argc},
	{"bad registrations", bad_registrations},
	{"registered twice", registered_twice},
	{"log levels", levels_are_applied},
	{"DPDK program", dpdk_program},
	{"DPDK flags of a file", dpdk_flags_of_a_file},
	{"own logger", own_logger},
};

int main(void)
{
	return report("argp calls", COUNT(cases), check_cases(cases, COUNT(cases)));
}
