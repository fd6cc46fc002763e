/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "argp.h"

#define NAMES_WIDTH 35 /* columns of a line before its description */

/* "  -x, --long-name <args>   description" */
static void print_param(FILE *out, const struct doca_argp_param *param)
{
	char names[256];
	snprintf(names, sizeof(names), "  %s%s%s%s%s%s%s", param->short_name != NULL ? "-" : "",
		 param->short_name != NULL ? param->short_name : "",
		 param->short_name != NULL && param->long_name != NULL ? ", " : "",
		 param->long_name != NULL ? "--" : "", param->long_name != NULL ? param->long_name : "",
		 param->arguments != NULL ? " " : "", param->arguments != NULL ? param->arguments : "");
	fprintf(out, "%-*s %s\n", NAMES_WIDTH, names, param->description);
}

static void print_params(FILE *out, const struct doca_argp_cmd *cmd, bool only_inherited)
{
	for (const struct doca_argp_param *param = cmd->params; param != NULL; param = param->next) {
		if (!param->hidden && (!only_inherited || param->inherited))
			print_param(out, param);
	}
}

static void print_cmds(FILE *out, const struct doca_argp_cmd *cmd)
{
	if (cmd->cmds == NULL)
		return;
	fprintf(out, "\nCommands:\n");
	for (const struct doca_argp_cmd *below = cmd->cmds; below != NULL; below = below->next) {
		if (!below->hidden)
			fprintf(out, "  %-*s %s\n", NAMES_WIDTH - 2, below->name, below->description);
	}
}

/* The names of the commands that lead to cmd. */
static void print_path(FILE *out, const struct doca_argp_cmd *cmd)
{
	if (cmd->parent == NULL)
		return;
	print_path(out, cmd->parent);
	fprintf(out, " %s", cmd->name);
}

void argp_usage_print(FILE *out, const struct doca_argp_cmd *cmd)
{
	fprintf(out, "Usage: %s", argp.program_name != NULL ? argp.program_name : "program");
	if (argp.dpdk_callback != NULL)
		fprintf(out, " [DPDK Flags] --");
	print_path(out, cmd);
	fprintf(out, " [DOCA Flags] [Program Flags]%s\n", cmd->cmds != NULL ? " [Command]" : "");
	fprintf(out, "\nDOCA Flags:\n");
	print_params(out, &argp.general, false);
	fprintf(out, "\nProgram Flags:\n");
	print_params(out, cmd, false);
	for (const struct doca_argp_cmd *around = cmd->parent; around != NULL; around = around->parent)
		print_params(out, around, true);
	print_cmds(out, cmd);
	fputc('\n', out);
}

void doca_argp_usage(void)
{
	argp_usage_print(stdout, &argp.program);
}
