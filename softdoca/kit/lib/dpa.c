/* SPDX-License-Identifier: Apache-2.0 */
/* The exports of libdoca_dpa: the functions of the CPU, and of the DPA, whose code is a part of the program. */
#define DMA_COPY_KIT_VERSION 305 /* all functions are declared */
#include "doca_dpa.h"
#include "doca_dpa_dev.h"
#include "doca_dpa_dev_buf.h"
#include "doca_dpa_dev_comch_msgq.h"

#define EXPORT_COMMON(...)
#define EXPORT_COMCH(...)
#define EXPORT_DPA(...) __VA_ARGS__
#include "dpa_exports.h"

doca_error_t doca_dpa_rpc(struct doca_dpa *dpa, doca_dpa_func_t *func, uint64_t *retval, ...)
{
	struct dpa_kit_args args;
	va_start(args.list, retval);
	doca_error_t result = priv_doca_dpa_ops()->doca_dpa_rpc(dpa, func, retval, &args);
	va_end(args.list);
	return result;
}

void doca_dpa_dev_log(doca_dpa_dev_log_level_t log_level, const char *format, ...)
{
	struct dpa_kit_args args;
	va_start(args.list, format);
	priv_doca_dpa_ops()->doca_dpa_dev_log(log_level, format, &args);
	va_end(args.list);
}
