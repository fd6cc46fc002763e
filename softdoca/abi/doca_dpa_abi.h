/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types for a DPA: for its programs on the CPU and for the code that runs on it. Names, values and widths are
 * DOCA's, the text is ours. Only the development kit uses them.
 */
#ifndef DMA_COPY_DOCA_DPA_ABI_H
#define DMA_COPY_DOCA_DPA_ABI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doca_abi.h"

/* A function that runs on the DPA, as programs on the CPU declare it, regardless of its arguments. */
typedef void(doca_dpa_func_t)(void);

/* Handles, by which code on the DPA knows the CPU's objects. 0 is never one, except of a DPA. */
typedef uint64_t doca_dpa_dev_t;
typedef uint64_t doca_dpa_dev_completion_t;
typedef uint64_t doca_dpa_dev_notification_completion_t;

/* One completion of a completion context. */
typedef uint64_t doca_dpa_dev_completion_element_t;
typedef uint64_t doca_dpa_dev_comch_consumer_completion_element_t;

/* An array of buffers, and one of them. */
typedef uint64_t doca_dpa_dev_buf_arr_t;
typedef uint64_t doca_dpa_dev_buf_t;

/* An address in the DPA's memory. */
typedef uint64_t doca_dpa_dev_uintptr_t;

typedef enum doca_dpa_dev_log_level {
	DOCA_DPA_DEV_LOG_LEVEL_DISABLE = 10,
	DOCA_DPA_DEV_LOG_LEVEL_ERROR = 30,
	DOCA_DPA_DEV_LOG_LEVEL_WARNING = 40,
	DOCA_DPA_DEV_LOG_LEVEL_INFO = 50,
	DOCA_DPA_DEV_LOG_LEVEL_DEBUG = 60,
} doca_dpa_dev_log_level_t;

typedef enum doca_dpa_dev_completion_type {
	DOCA_DPA_DEV_COMP_SEND = 0x0,
	DOCA_DPA_DEV_COMP_RECV_RDMA_WRITE_IMM = 0x1,
	DOCA_DPA_DEV_COMP_RECV_SEND = 0x2,
	DOCA_DPA_DEV_COMP_RECV_SEND_IMM = 0x3,
	DOCA_DPA_DEV_COMP_SEND_ERR = 0xD,
	DOCA_DPA_DEV_COMP_RECV_ERR = 0xE,
} doca_dpa_dev_completion_type_t;

/* How an operation of the DPA is submitted. */
enum doca_dpa_dev_submit_flag {
	DOCA_DPA_DEV_SUBMIT_FLAG_NONE = 0,
	DOCA_DPA_DEV_SUBMIT_FLAG_FLUSH = 1 << 0,
	DOCA_DPA_DEV_SUBMIT_FLAG_OPTIMIZE_REPORTS = 1 << 1,
};

/* Bits of the user data that a completion carries. */
#define DOCA_DPA_COMPLETION_LOG_MAX_USER_DATA 24

/* ---- the kit's own: what a compiler for a DPA generates (dpa_kit.h) ---- */

/* The arguments of a call that has a variable number of them. */
struct dpa_kit_args {
	va_list list;
};

/* A function that runs on the DPA. */
struct dpa_kit_function {
	const char *name;
	doca_dpa_func_t *func;
	void (*kernel)(uint64_t arg);               /* of a thread; NULL: not one */
	uint64_t (*rpc)(struct dpa_kit_args *args); /* calls func with these arguments; NULL: not one */
};

/* A program for the DPA: it has the functions of the executable or the library that it is a part of. */
struct doca_dpa_app {
	const char *name;
	const struct dpa_kit_function *const *first, *const *end;
};

/* ---- objects ---- */

struct doca_buf_arr;
struct doca_comch_msgq;
struct doca_dpa_eu_affinity;
struct doca_dpa_notification_completion;
struct doca_gpu_buf_arr;

#endif
