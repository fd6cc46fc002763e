/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command line and JSON file to callbacks.
 *
 *   init -> param_create, set_*, register_param, ... -> start -> destroy
 *
 * A parameter needs a name, a description, a type and a callback, which is called with each value once: a char * for a
 * string, an int *, a bool *, a double *, a struct doca_argp_device_ctx *, a struct doca_argp_device_rep_ctx *, valid
 * until it returns. Values of the command line come first, in its order; a parameter
 * on the command line is not read from the JSON file. Registering transfers ownership of the parameter, even on
 * failure.
 *
 * One thread; one parser for a process.
 */
#ifndef DOCA_ARGP_H_
#define DOCA_ARGP_H_

#include <stdarg.h>
#include <stdbool.h>

#include "doca_compat.h"
#include "doca_dev.h"
#include "doca_error.h"
#include "doca_log.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum doca_argp_type {
	DOCA_ARGP_TYPE_UNKNOWN = 0,
	DOCA_ARGP_TYPE_STRING = 1,
	DOCA_ARGP_TYPE_INT = 2,
	DOCA_ARGP_TYPE_BOOLEAN = 3,
#if DMA_COPY_KIT_VERSION >= 303
	DOCA_ARGP_TYPE_DEVICE = 4,
	DOCA_ARGP_TYPE_DEVICE_REP = 5,
	DOCA_ARGP_TYPE_DOUBLE = 6,
#endif
};

struct doca_argp_param;
struct doca_argp_cmd;

typedef doca_error_t (*doca_argp_param_cb_t)(void *param_value, void *program_config);
typedef doca_error_t (*doca_argp_cmd_cb_t)(void *program_config);
typedef doca_error_t (*doca_argp_validation_cb_t)(void *program_config);
typedef doca_error_t (*doca_argp_dpdk_cb_t)(int argc, char **argv);
typedef doca_error_t (*doca_argp_logger_cb_t)(enum doca_log_level log_level, const char *format, va_list args);

#if DMA_COPY_KIT_VERSION >= 303
typedef doca_error_t (*doca_argp_dev_open_cb_t)(struct doca_devinfo *devinfo, void *usr_ctx, struct doca_dev **dev);

/*
 * The values of devices and representors: "pci/0000:03:00.0" or "pci/0000:03:00.0,pf0vf0", each with arguments behind a
 * further comma, or NULL; these stay valid until doca_argp_destroy. The program closes what was opened for it.
 */
struct doca_argp_device_ctx {
	struct doca_dev *dev;
	const char *devargs;
};

struct doca_argp_device_rep_ctx {
	struct doca_argp_device_ctx dev_ctx;
	struct doca_dev_rep *dev_rep;
};
#endif

/* program_name NULL: the name comes from argv[0]. program_config is what every callback gets. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_init(const char *program_name, void *program_config);

DOCA_EXPERIMENTAL
doca_error_t doca_argp_destroy(void);

/*
 * NOT_SUPPORTED: an unregistered flag or JSON key. IO_FAILED: the JSON file. INVALID_VALUE: a value, or a flag that is
 * missing or repeated. Each is reported on stderr, followed by the usage. The result of a callback is passed on. -h and
 * -v end the program.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_start(int argc, char **argv);

/* Writes the usage to stdout. */
DOCA_EXPERIMENTAL
void doca_argp_usage(void);

/*
 * INITIALIZATION: the parameter is incomplete. INVALID_VALUE: its name is in use. BAD_STATE: it is registered, or the
 * call is not between init and start.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_param(struct doca_argp_param *input_param);

DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_cmd(struct doca_argp_cmd *input_cmd);

/* Called for -v, with NULL and program_config. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_version_callback(doca_argp_param_cb_t callback);

/* Called last, after all values. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_validation_callback(doca_argp_validation_cb_t callback);

#if DMA_COPY_KIT_VERSION >= 303
/* Opens the devices that are values, instead of doca_dev_open. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_dev_open_callback(doca_argp_dev_open_cb_t callback, void *usr_ctx);

/* Unknown groups and keys of a JSON file are ignored. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_disable_pedantic_config_parsing(void);
#endif

/* Gets the messages for stderr. ALREADY_EXIST the second time. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_logger_callback(doca_argp_logger_cb_t callback);

/* BAD_STATE: there is none. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_disable_logger_callback(void);

/*
 * The program also takes flags of DPDK's, before "--": callback gets them, behind argv[0]. The flags of a JSON file
 * (doca_dpdk_flags) are ignored without this call, and NOT_SUPPORTED with it.
 */
DOCA_EXPERIMENTAL
void doca_argp_set_dpdk_program(doca_argp_dpdk_cb_t callback);

/* The value of -l; without it, the global limit. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_get_log_level(int *log_level);

DOCA_EXPERIMENTAL
doca_error_t doca_argp_get_sdk_log_level(int *log_level);

/* Parameters. */

DOCA_EXPERIMENTAL
doca_error_t doca_argp_param_create(struct doca_argp_param **param);

/* Only one that was never registered. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_param_destroy(struct doca_argp_param *param);

/* Without its dash; it may have several letters. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_short_name(struct doca_argp_param *param, const char *name);

/* Without its dashes. It is the JSON key, too. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_long_name(struct doca_argp_param *param, const char *name);

/* The text that usage shows for the value. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_arguments(struct doca_argp_param *param, const char *arguments);

DOCA_EXPERIMENTAL
void doca_argp_param_set_description(struct doca_argp_param *param, const char *description);

DOCA_EXPERIMENTAL
void doca_argp_param_set_callback(struct doca_argp_param *param, doca_argp_param_cb_t callback);

DOCA_EXPERIMENTAL
void doca_argp_param_set_type(struct doca_argp_param *param, enum doca_argp_type type);

/* start fails without it. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_mandatory(struct doca_argp_param *param);

/* Not in JSON. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_cli_only(struct doca_argp_param *param);

/* May be given several times; an array in JSON. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_multiplicity(struct doca_argp_param *param);

/* Must be the program's only parameter when it is given; then none is mandatory. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_singular(struct doca_argp_param *param);

/* Is valid behind a command, too. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_inherited(struct doca_argp_param *param);

/* Not in the usage. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_hidden(struct doca_argp_param *param);

/* Commands: "program [flags] command [its flags] [command below it ...]". */

DOCA_EXPERIMENTAL
doca_error_t doca_argp_cmd_create(struct doca_argp_cmd **cmd);

/* Only one that was never registered. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_cmd_destroy(struct doca_argp_cmd *cmd);

DOCA_EXPERIMENTAL
void doca_argp_cmd_set_name(struct doca_argp_cmd *cmd, const char *name);

DOCA_EXPERIMENTAL
void doca_argp_cmd_set_description(struct doca_argp_cmd *cmd, const char *description);

/* Called after all values, for each command named, the outermost first. */
DOCA_EXPERIMENTAL
void doca_argp_cmd_set_callback(struct doca_argp_cmd *cmd, doca_argp_cmd_cb_t callback);

/* Not in the usage. */
DOCA_EXPERIMENTAL
void doca_argp_cmd_set_hidden(struct doca_argp_cmd *cmd);

/* Transfers ownership of the parameter, even on failure. BAD_STATE: cmd is registered already. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_cmd_register_param(struct doca_argp_cmd *cmd, struct doca_argp_param *input_param);

/* Transfers ownership of input_cmd, even on failure. BAD_STATE: one of the two is registered already. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_cmd_register_cmd(struct doca_argp_cmd *cmd, struct doca_argp_cmd *input_cmd);

#ifdef __cplusplus
}
#endif

#endif
