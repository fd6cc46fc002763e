/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table through which every DOCA function is called: of DOCA's own libraries (vendor.c) or of the software device
 * (table.c). It is filled once, when a driver is opened, and never changes after that.
 */
#ifndef DMA_COPY_OPS_H
#define DMA_COPY_OPS_H

#include "doca_abi.h"

struct doca_ops {
#define DOCA_FUNC(lib, need, ret, name, params, args, former) ret(*name) params;
#define DOCA_PROC(lib, need, name, params, args, former) void(*name) params;
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) ret (*name)(void);
#include "doca_functions.def"
};

/*
 * DOCA's headers define these two as inline functions, so no library exports them.
 *
 * by_addr: an empty buffer over [addr, addr + len), to be written to. by_data: a buffer whose data segment is all of
 * [data, data + data_len), to be read from.
 */
static inline doca_error_t doca_ops_buf_get_by_addr(const struct doca_ops *ops, struct doca_buf_inventory *inventory,
						    struct doca_mmap *mmap, void *addr, size_t len,
						    struct doca_buf **buf)
{
	return ops->doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, len, addr, 0, buf);
}

static inline doca_error_t doca_ops_buf_get_by_data(const struct doca_ops *ops, struct doca_buf_inventory *inventory,
						    struct doca_mmap *mmap, void *data, size_t data_len,
						    struct doca_buf **buf)
{
	return ops->doca_buf_inventory_buf_get_by_args(inventory, mmap, data, data_len, data, data_len, buf);
}

#endif
