/* SPDX-License-Identifier: Apache-2.0 */
/* Flags that end the program: -h and -v, and their output. */
#include <stdio.h>
#include <string.h>

#include "argp_program.h"
#include "capture.h"
#include "check.h"

static int start_with(const void *argument)
{
	char *argv[] = {(char *)"/some/where/prog", (char *)argument, NULL};
	if (set_up(NULL) != DOCA_SUCCESS)
		return 94;
	doca_argp_start(2, argv);
	return 95;
}

static doca_error_t on_version(void *value, void *config)
{
	printf("version %d\n", value == NULL && config == record);
	return DOCA_SUCCESS;
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
	 {"Usage: prog [DOCA Flags] [Program Flags] [Command]\n",
	  "\nDOCA Flags:\n  -h, --help                        Print", "\n  -l, --log-level                   Log",
	  "\nProgram Flags:\n  -f, --file <VALUE> ", "\n  -x <VALUE>                        as",
	  "\n  --list                            as", "\nCommands:\n  remote                            as"},
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

int main(void)
{
	size_t failed = 0;
	for (size_t i = 0; i < COUNT(endings); i++)
		failed += (size_t)check_ending(&endings[i]);
	return report("argp endings", COUNT(endings), failed);
}
