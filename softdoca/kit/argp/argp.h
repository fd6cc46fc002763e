/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations that the files of the parser share.
 *
 *   argp           the one parser of the process: its life cycle and its callbacks
 *   argp_param     parameters                       argp_cmd       commands; the program itself is the outermost
 *   argp_general   the flags that every program has argp_usage     the help text
 *   argp_cli       the command line to values       argp_json      a JSON file to values
 *   argp_values    values, checked as a whole and given to callbacks
 *   argp_device    devices and representors as values
 *
 * Parsing first collects all values, then checks them, and only then calls the callbacks: a program never sees half of
 * a command line that turns out to be wrong.
 */
#ifndef DMA_COPY_SDK_ARGP_H
#define DMA_COPY_SDK_ARGP_H

#include <stddef.h>
#include <stdio.h>

#include "doca_argp.h"

/* ---- argp_param ---- */

struct doca_argp_param {
	struct doca_argp_param *next; /* in the order of registration */
	char *short_name, *long_name, *arguments, *description;
	doca_argp_param_cb_t callback;
	enum doca_argp_type type;
	bool mandatory, cli_only, multiplicity, singular, inherited, hidden;
	bool registered;
	bool incomplete; /* a setter found no memory */
	bool on_command_line;
	bool given; /* on the command line or in the file */
};

void argp_param_free(struct doca_argp_param *param);

/* Returns the name that users know: its longer one. */
const char *argp_param_name(const struct doca_argp_param *param);

/* ---- argp_cmd ---- */

struct doca_argp_cmd {
	struct doca_argp_cmd *next; /* in the order of registration */
	struct doca_argp_cmd *parent;
	char *name, *description;
	doca_argp_cmd_cb_t callback;
	bool hidden, registered, incomplete;
	struct doca_argp_param *params;
	struct doca_argp_cmd *cmds;
};

/* Frees what belongs to it; the outermost is not allocated. */
void argp_cmd_clear(struct doca_argp_cmd *cmd);

/* They take the param or command in every case; INITIALIZATION, INVALID_VALUE, BAD_STATE. */
doca_error_t argp_cmd_add_param(struct doca_argp_cmd *cmd, struct doca_argp_param *param);
doca_error_t argp_cmd_add_cmd(struct doca_argp_cmd *cmd, struct doca_argp_cmd *added);

struct doca_argp_cmd *argp_cmd_find_cmd(const struct doca_argp_cmd *cmd, const char *name);

/* Finds a parameter that is valid at cmd: its own, those it inherits, the general ones. A name is short or long. */
enum argp_name { ARGP_SHORT, ARGP_LONG };
struct doca_argp_param *argp_cmd_find_param(const struct doca_argp_cmd *cmd, enum argp_name kind, const char *name,
					    size_t len);

/* ---- argp ---- */

struct argp_text {
	struct argp_text *next;
	char text[];
};

struct argp {
	bool initialized, started;
	char *program_name; /* NULL: from the command line */
	void *config;
	struct doca_argp_cmd general; /* holds the general flags */
	struct doca_argp_cmd program;
	doca_argp_param_cb_t version_callback;
	doca_argp_validation_cb_t validation_callback;
	doca_argp_dpdk_cb_t dpdk_callback;
	doca_argp_logger_cb_t logger_callback;
	doca_argp_dev_open_cb_t dev_open_callback; /* NULL: doca_dev_open */
	void *dev_open_context;
	bool lenient;                 /* unknown keys of a JSON file are ignored */
	int log_level, sdk_log_level; /* 0: not given */
	struct argp_text *texts;      /* of values that programs may keep */
};

extern struct argp argp;

/* BAD_STATE unless between init and start. */
doca_error_t argp_open_for_registration(void);

/* Reports an error, to the program's logger or on stderr, and returns result. */
doca_error_t argp_fail(doca_error_t result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Replaces a string that a setter owns; false: no memory. */
bool argp_replace_string(char **string, const char *text);

/* ---- argp_values ---- */

struct argp_value {
	struct doca_argp_param *param;
	char *string; /* owned */
	int integer;
	bool boolean;
	double real;
};

struct argp_values {
	struct argp_value *items;
	size_t count;
};

/* Reports whether values of the type are written as text: strings and devices. */
bool argp_is_text(enum doca_argp_type type);

/* A value of one of the types. NO_MEMORY. */
doca_error_t argp_values_add_text(struct argp_values *values, struct doca_argp_param *param, const char *text);
doca_error_t argp_values_add_integer(struct argp_values *values, struct doca_argp_param *param, int integer);
doca_error_t argp_values_add_boolean(struct argp_values *values, struct doca_argp_param *param, bool boolean);
doca_error_t argp_values_add_real(struct argp_values *values, struct doca_argp_param *param, double real);
void argp_values_free(struct argp_values *values);

/* INVALID_VALUE if a parameter was given twice, is missing or should be alone. */
doca_error_t argp_values_check(const struct argp_values *values, const struct doca_argp_cmd *cmd);

/* One callback for each value; the first that fails decides. */
doca_error_t argp_values_deliver(const struct argp_values *values);

/* ---- argp_device ---- */

/* Opens the device, or the representor and its device, and calls the callback of the parameter. */
doca_error_t argp_device_deliver(const struct doca_argp_param *param, const char *text);

/* ---- argp_general ---- */

doca_error_t argp_general_register(void);
bool argp_is_general(const struct doca_argp_param *param);

/* Acts at once on what ends the program: -h, -v. */
void argp_general_act(const struct doca_argp_param *param, const struct doca_argp_cmd *cmd);

/* The file that -j named, or NULL. */
const char *argp_general_json(const struct argp_values *values);

/* ---- argp_cli, argp_json, argp_usage ---- */

/* The arguments that are still to be read; a NULL among them ends them, too. */
struct argp_arguments {
	char **next;
	int count;
};

/* Collects the values of the arguments. *cmd becomes the innermost command that was named. */
doca_error_t argp_cli_parse(struct argp_arguments arguments, struct argp_values *values, struct doca_argp_cmd **cmd);

/* Adds the values of the file, except for parameters that are on the command line. */
doca_error_t argp_json_parse(const char *path, const struct doca_argp_cmd *cmd, struct argp_values *values);

void argp_usage_print(FILE *out, const struct doca_argp_cmd *cmd);

#endif
