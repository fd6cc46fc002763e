/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "argp.h"

#define NAMES_WIDTH 34 /* columns of a line before its description */

/* "  -x, --long-name <args>   description" */
static void print_param(const struct doca_argp_param *param)
{
	char names[256];
	snprintf(names, sizeof(names), "  %s%s%s%s%s%s%s", param->short_name != NULL ? "-" : "    ",
		 param->short_name != NULL ? param->short_name : "",
		 param->short_name != NULL && param->long_name != NULL ? ", " : "",
		 param->long_name != NULL ? "--" : "", param->long_name != NULL ? param->long_name : "",
		 param->arguments != NULL ? " " : "", param->arguments != NULL ? param->arguments : "");
	printf("%-*s %s\n", NAMES_WIDTH, names, param->description);
}

static void print_params(const struct doca_argp_cmd *cmd, bool only_inherited)
{
	for (const struct doca_argp_param *param = cmd->params; param != NULL; param = param->next) {
		if (!param->hidden && (!only_inherited || param->inherited))
			print_param(param);
	}
}

static void print_cmds(const struct doca_argp_cmd *cmd)
{
	if (cmd->cmds == NULL)
		return;
	printf("\nCommands:\n");
	for (const struct doca_argp_cmd *below = cmd->cmds; below != NULL; below = below->next) {
		if (!below->hidden)
			printf("  %-*s %s\n", NAMES_WIDTH - 2, below->name, below->description);
	}
}

/* The names of the commands that lead to cmd. */
static void print_path(const struct doca_argp_cmd *cmd)
{
	if (cmd->parent == NULL)
		return;
	print_path(cmd->parent);
	printf(" %s", cmd->name);
}

void argp_usage_print(const struct doca_argp_cmd *cmd)
{
	printf("Usage: %s", argp.program_name != NULL ? argp.program_name : "program");
	if (argp.dpdk_callback != NULL)
		printf(" [DPDK Flags] --");
	print_path(cmd);
	printf(" [DOCA Flags] [Program Flags]%s\n", cmd->cmds != NULL ? " [Command]" : "");
	printf("\nDOCA Flags:\n");
	print_params(&argp.general, false);
	printf("\nProgram Flags:\n");
	print_params(cmd, false);
	for (const struct doca_argp_cmd *around = cmd->parent; around != NULL; around = around->parent)
		print_params(around, true);
	print_cmds(cmd);
	putchar('\n');
}

void doca_argp_usage(void)
{
	argp_usage_print(&argp.program);
}
