/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void read_back(FILE *file, char *text, size_t size)
{
	rewind(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
}

void capture_run(int (*what)(const void *argument), const void *argument, struct capture *capture)
{
	int status;
	FILE *out = tmpfile(), *err = tmpfile();
	if (out == NULL || err == NULL)
		die("tmpfile");
	fflush(NULL);
	pid_t child = fork();
	if (child < 0)
		die("fork");
	if (child == 0) {
		dup2(fileno(out), STDOUT_FILENO);
		dup2(fileno(err), STDERR_FILENO);
		fclose(out);
		fclose(err);
		exit(what(argument));
	}
	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	capture->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
	read_back(out, capture->out, sizeof(capture->out));
	read_back(err, capture->err, sizeof(capture->err));
}

int report(const char *what, size_t count, size_t failed)
{
	printf("%s: %zu cases, %zu failed\n", what, count, failed);
	return failed == 0 ? 0 : 1;
}

static int check_case(const struct capture_case *one)
{
	struct capture got;
	capture_run(one->run, NULL, &got);
	if (got.exit_code != 0)
		fprintf(stderr, "%s: exit %d, %s\n", one->name, got.exit_code, got.err);
	return got.exit_code != 0;
}

size_t check_cases(const struct capture_case *cases, size_t count)
{
	size_t failed = 0;
	for (size_t i = 0; i < count; i++)
		failed += (size_t)check_case(&cases[i]);
	return failed;
}
