/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: the forms of flags, wrong ones, commands. */
#include "argp_lines.h"
#include "check.h"

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

	/* invalid ones: no callback is called */
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

	/* the program's result for a value */
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
};

int main(void)
{
	return check_lines("argp flags", lines, COUNT(lines));
}
