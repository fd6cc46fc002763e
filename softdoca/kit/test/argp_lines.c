/* SPDX-License-Identifier: Apache-2.0 */
#include "argp_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "argp_program.h"
#include "capture.h"

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

/* Returns 0 if the line has the expected effect; else reports the difference. */
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
	return result != line->result || strcmp(record, line->record) != 0;
}

static bool matches(const struct line *line, const struct capture *got)
{
	/* The parser's own errors come before any callback, and show the usage. */
	bool shows_usage = line->result != DOCA_SUCCESS && line->record[0] == '\0';
	if (got->exit_code != 0 || shows_usage != (strstr(got->err, "\nUsage: prog ") != NULL))
		return false;
	return line->err == NULL ? got->err[0] == '\0' : strstr(got->err, line->err) != NULL;
}

static int check_line(const struct line *line)
{
	struct capture got;
	capture_run(run_line, line, &got);
	if (matches(line, &got))
		return 0;
	fprintf(stderr, "prog %s (%s): exit %d, %s, wrote \"%s\"\n", line->args,
		line->json != NULL ? line->json : "no file", got.exit_code, got.out, got.err);
	return 1;
}

int check_lines(const char *what, const struct line *lines, size_t count)
{
	size_t failed = 0;
	for (size_t i = 0; i < count; i++)
		failed += (size_t)check_line(&lines[i]);
	return report(what, count, failed);
}
