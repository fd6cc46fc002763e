/* SPDX-License-Identifier: Apache-2.0 */
/* The logger: which lines go where, and what they look like. */
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <doca_dev.h>
#include <doca_log.h>

#include "capture.h"
#include "check.h"

DOCA_LOG_REGISTER(LOG::TEST);

/* One line of each level, named by its level. */
static void log_all_levels(void)
{
	for (uint32_t level = DOCA_LOG_LEVEL_CRIT; level <= DOCA_LOG_LEVEL_TRACE; level += 10)
		EXPECT(DOCA_SUCCESS, DOCA_LOG(level, "<%u>", level));
}

/* ---- Limits: which levels a backend takes ---- */

struct limits {
	uint32_t lower, upper;               /* of the backend; 0: not set */
	int strict;                          /* both are made strict then */
	uint32_t global_lower, global_upper; /* set afterwards; 0: not set */
	const char *levels;                  /* what arrives */
};

static const struct limits limits[] = {
	{0, 0, 0, 0, 0, "20 30 40 50 "},
	{60, 0, 0, 0, 0, "20 30 40 50 60 "},
	{70, 40, 0, 0, 0, "40 50 60 70 "},
	{30, 30, 0, 0, 0, "30 "},
	{10, 0, 0, 0, 0, ""},
	{0, 0, 0, 30, 0, "20 30 "},
	{0, 0, 0, 70, 60, "60 70 "},
	{0, 0, 0, 10, 0, ""},
	{60, 40, 0, 30, 20, "20 30 "},
	{60, 40, 1, 30, 20, "40 50 60 "},
};

/* "20 30 " of what was written by log_all_levels */
static void levels_in(const char *text, char *levels)
{
	levels[0] = '\0';
	for (const char *at = strchr(text, '<'); at != NULL; at = strchr(at + 1, '<'))
		strncat(strncat(levels, at + 1, 2), " ", 2);
}

static void set_limits(struct doca_log_backend *backend, const struct limits *wanted)
{
	if (wanted->lower != 0)
		EXPECT(DOCA_SUCCESS, doca_log_backend_set_level_lower_limit(backend, wanted->lower));
	if (wanted->upper != 0)
		EXPECT(DOCA_SUCCESS, doca_log_backend_set_level_upper_limit(backend, wanted->upper));
	if (wanted->strict) {
		EXPECT(DOCA_SUCCESS, doca_log_backend_set_level_lower_limit_strict(backend));
		EXPECT(DOCA_SUCCESS, doca_log_backend_set_level_upper_limit_strict(backend));
	}
	if (wanted->global_lower != 0)
		EXPECT(DOCA_SUCCESS, doca_log_level_set_global_lower_limit(wanted->global_lower));
	if (wanted->global_upper != 0)
		EXPECT(DOCA_SUCCESS, doca_log_level_set_global_upper_limit(wanted->global_upper));
}

static int log_within(const void *argument)
{
	struct doca_log_backend *backend;
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_fd(STDOUT_FILENO, &backend));
	set_limits(backend, argument);
	log_all_levels();
	return 0;
}

static int check_limits(const struct limits *wanted)
{
	char levels[64];
	struct capture got;
	capture_run(log_within, wanted, &got);
	levels_in(got.out, levels);
	if (got.exit_code == 0 && strcmp(levels, wanted->levels) == 0)
		return 0;
	fprintf(stderr, "limits %u %u strict %d global %u %u: exit %d, levels %s not %s; %s\n", wanted->lower,
		wanted->upper, wanted->strict, wanted->global_lower, wanted->global_upper, got.exit_code, levels,
		wanted->levels, got.err);
	return 1;
}

/* ---- The standard backends: what goes to which stream at a global limit ---- */

static const struct {
	uint32_t lower, upper;
	const char *out, *err;
} streams[] = {
	{50, 20, "50 ", "20 30 40 "},
	{70, 20, "50 60 70 ", "20 30 40 "},
	{30, 20, "", "20 30 "},
	{60, 40, "50 60 ", "40 "},
};

static int log_standard(const void *argument)
{
	size_t i = *(const size_t *)argument;
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_standard());
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_standard());
	EXPECT(DOCA_SUCCESS, doca_log_level_set_global_lower_limit(streams[i].lower));
	EXPECT(DOCA_SUCCESS, doca_log_level_set_global_upper_limit(streams[i].upper));
	log_all_levels();
	return 0;
}

static int check_standard(size_t i)
{
	char out[64], err[64];
	struct capture got;
	capture_run(log_standard, &i, &got);
	levels_in(got.out, out);
	levels_in(got.err, err);
	if (got.exit_code == 0 && strcmp(out, streams[i].out) == 0 && strcmp(err, streams[i].err) == 0)
		return 0;
	fprintf(stderr, "standard %zu: exit %d, out %s err %s\n", i, got.exit_code, out, got.err);
	return 1;
}

/* ---- Single cases ---- */

static int line_has_its_form(const void *argument)
{
	(void)argument;
	struct doca_log_backend *backend;
	char *text = NULL;
	size_t size;
	regex_t form;
	FILE *file = open_memstream(&text, &size);
	CHECK(file != NULL);
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_file(file, &backend));
	DOCA_LOG_INFO("%s and %d", "text", 7);
	CHECK(regcomp(&form,
		      "^\\[[0-2][0-9]:[0-5][0-9]:[0-6][0-9]:[0-9]{6}\\]\\[[0-9]+\\]\\[DOCA\\]\\[INF\\]"
		      "\\[LOG::TEST:[0-9]+\\]\\[line_has_its_form\\] text and 7\n$",
		      REG_EXTENDED | REG_NOSUB) == 0);
	CHECK(regexec(&form, text, 0, NULL, 0) == 0);
	regfree(&form);
	DOCA_LOG_TRC("not compiled");
	DOCA_LOG_ERR("graver");
	CHECK(strstr(text, "not compiled") == NULL && strstr(text, "[ERR]") != NULL);
	return 0;
}

static char handed_over[1024];

static void hand_over(char *line)
{
	strncat(handed_over, strrchr(line, ']') != NULL ? strrchr(line, ']') + 1 : line, 64);
}

static int buffer_gets_each_line(const void *argument)
{
	(void)argument;
	char buffer[200], small[4];
	struct doca_log_backend *backend;
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_buf(buffer, sizeof(buffer), hand_over, &backend));
	DOCA_LOG_INFO("one");
	DOCA_LOG_WARN("two");
	CHECK(strcmp(handed_over, " one\n two\n") == 0);
	DOCA_LOG_INFO("%0300d", 1);
	CHECK(strlen(buffer) == sizeof(buffer) - 1);
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_buf(small, sizeof(small), hand_over, &backend));
	DOCA_LOG_INFO("three");
	CHECK(strlen(small) == 3 && small[0] == '[');
	return 0;
}

/* The device logs why a list was refused, at DEBUG. */
static void provoke_device(void)
{
	struct doca_devinfo **list;
	uint32_t count;
	setenv("DMA_COPY_SOFT_SIDE", "nowhere", 1);
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_devinfo_create_list(&list, &count));
}

static int sdk_lines_go_to_sdk_backends(const void *argument)
{
	(void)argument;
	char sdk[400] = "", own[400] = "", quiet[400] = "";
	struct doca_log_backend *sdk_backend, *own_backend, *quiet_backend;
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_buf_sdk(sdk, sizeof(sdk), hand_over, &sdk_backend));
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_buf_sdk(quiet, sizeof(quiet), hand_over, &quiet_backend));
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_buf(own, sizeof(own), hand_over, &own_backend));
	provoke_device();
	CHECK(sdk[0] == '\0');
	EXPECT(DOCA_SUCCESS, doca_log_backend_set_sdk_level(quiet_backend, DOCA_LOG_LEVEL_ERROR));
	EXPECT(DOCA_SUCCESS, doca_log_backend_set_level_lower_limit_strict(quiet_backend));
	EXPECT(DOCA_SUCCESS, doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_DEBUG));
	CHECK(doca_log_level_get_global_sdk_limit() == DOCA_LOG_LEVEL_DEBUG);
	provoke_device();
	CHECK(strstr(sdk, "[DBG][SOFT:0]") != NULL && strstr(sdk, "DMA_COPY_SOFT_SIDE") != NULL);
	CHECK(own[0] == '\0' && quiet[0] == '\0');
	DOCA_LOG_INFO("mine");
	CHECK(strstr(own, "mine") != NULL && strstr(sdk, "mine") == NULL);
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_backend_set_sdk_level(own_backend, DOCA_LOG_LEVEL_INFO));
	return 0;
}

static int strict_limits_stay(const void *argument)
{
	(void)argument;
	struct doca_log_backend *own, *sdk;
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_fd(STDOUT_FILENO, &own));
	EXPECT(DOCA_SUCCESS, doca_log_backend_set_level_lower_limit_strict(own));
	EXPECT(DOCA_ERROR_NOT_PERMITTED, doca_log_backend_set_level_lower_limit(own, DOCA_LOG_LEVEL_DEBUG));
	EXPECT(DOCA_SUCCESS, doca_log_backend_set_level_upper_limit(own, DOCA_LOG_LEVEL_ERROR));
	EXPECT(DOCA_SUCCESS, doca_log_backend_set_level_upper_limit_strict(own));
	EXPECT(DOCA_ERROR_NOT_PERMITTED, doca_log_backend_set_level_upper_limit(own, DOCA_LOG_LEVEL_CRIT));
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_fd_sdk(STDOUT_FILENO, &sdk));
	EXPECT(DOCA_SUCCESS, doca_log_backend_set_level_lower_limit_strict(sdk));
	EXPECT(DOCA_ERROR_NOT_PERMITTED, doca_log_backend_set_sdk_level(sdk, DOCA_LOG_LEVEL_DEBUG));
	return 0;
}

static int wrong_arguments_are_refused(const void *argument)
{
	(void)argument;
	char buffer[8];
	int source;
	struct doca_log_backend *backend;
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_backend_create_with_file(NULL, &backend));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_backend_create_with_file(stdout, NULL));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_backend_create_with_fd(-1, &backend));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_backend_create_with_buf(buffer, 0, hand_over, &backend));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_backend_create_with_buf(buffer, 8, NULL, &backend));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_backend_create_with_syslog(NULL, &backend));
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_syslog("log_test", &backend));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_backend_set_level_lower_limit(backend, 55));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_backend_set_level_lower_limit(NULL, 50));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_level_set_global_lower_limit(0));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_level_set_global_upper_limit(80));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_level_set_global_sdk_limit(15));
	EXPECT(DOCA_ERROR_INVALID_VALUE, DOCA_LOG(DOCA_LOG_LEVEL_DISABLE, "x"));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_register_source(NULL, &source));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_register_source("", &source));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_register_source("x", NULL));
	return 0;
}

static int sources_come_and_go(const void *argument)
{
	(void)argument;
	int first, again, other;
	EXPECT(DOCA_SUCCESS, doca_log_register_source("A", &first));
	EXPECT(DOCA_SUCCESS, doca_log_register_source("A", &again));
	EXPECT(DOCA_SUCCESS, doca_log_register_source("B", &other));
	CHECK(first == again && first != other && first != log_source && first > 0);
	EXPECT(DOCA_SUCCESS, doca_log_unregister_source(first));
	EXPECT(DOCA_SUCCESS, doca_log(DOCA_LOG_LEVEL_INFO, first, "f", 1, "g", "still there"));
	EXPECT(DOCA_SUCCESS, doca_log_unregister_source(first));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log_unregister_source(first));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log(DOCA_LOG_LEVEL_INFO, first, "f", 1, "g", "gone"));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_log(DOCA_LOG_LEVEL_INFO, 0, "f", 1, "g", "never registered"));
	return 0;
}

/* At 255 characters. */
static int long_names_are_cut(const void *argument)
{
	(void)argument;
	char name[301], line[1000] = "";
	int cut, whole;
	struct doca_log_backend *backend;
	memset(name, 'n', sizeof(name) - 1);
	name[300] = '\0';
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_buf(line, sizeof(line), hand_over, &backend));
	EXPECT(DOCA_SUCCESS, doca_log_register_source(name, &cut));
	EXPECT(DOCA_SUCCESS, doca_log(DOCA_LOG_LEVEL_INFO, cut, "f", 1, "g", "x"));
	CHECK(strspn(strchr(line, 'n'), "n") == 255);
	name[255] = '\0';
	EXPECT(DOCA_SUCCESS, doca_log_register_source(name, &whole));
	CHECK(cut == whole);
	return 0;
}

/* ---- Threads: lines stay whole ---- */

#define THREADS 4
#define LINES 500

static void *write_lines(void *unused)
{
	for (int i = 0; i < LINES; i++)
		DOCA_LOG_INFO("%0100d", i);
	return unused;
}

static int count_whole_lines(FILE *file)
{
	char line[256];
	int count = 0;
	rewind(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		const char *message = strrchr(line, ']');
		CHECK(line[0] == '[' && message != NULL && strlen(message) == 103);
		count++;
	}
	return count;
}

static int lines_of_threads_stay_whole(const void *argument)
{
	(void)argument;
	pthread_t threads[THREADS];
	struct doca_log_backend *by_file, *by_fd;
	FILE *first = tmpfile(), *second = tmpfile();
	CHECK(first != NULL && second != NULL);
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_file(first, &by_file));
	EXPECT(DOCA_SUCCESS, doca_log_backend_create_with_fd(fileno(second), &by_fd));
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, write_lines, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(count_whole_lines(first) == THREADS * LINES && count_whole_lines(second) == THREADS * LINES);
	return 0;
}

static const struct capture_case cases[] = {
	{"form", line_has_its_form},           {"buffer", buffer_gets_each_line},
	{"SDK", sdk_lines_go_to_sdk_backends}, {"arguments", wrong_arguments_are_refused},
	{"sources", sources_come_and_go},      {"long names", long_names_are_cut},
	{"strict", strict_limits_stay},        {"threads", lines_of_threads_stay_whole},
};

int main(void)
{
	size_t failed = check_cases(cases, COUNT(cases));
	for (size_t i = 0; i < COUNT(limits); i++)
		failed += (size_t)check_limits(&limits[i]);
	for (size_t i = 0; i < COUNT(streams); i++)
		failed += (size_t)check_standard(i);
	return report("log", COUNT(limits) + COUNT(streams) + COUNT(cases), failed);
}
