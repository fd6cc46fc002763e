/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by which code of a DPA reaches memory of the CPU. */
#ifndef DOCA_DPA_DEV_BUF_H_
#define DOCA_DPA_DEV_BUF_H_

#include <stdint.h>

#include "doca_dpa_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A pointer to the address, which must lie in the memory map, for loads and stores. Imported memory needs
 * __dpa_thread_window_read_inv before loads and __dpa_thread_window_writeback after stores (dpaintrin.h).
 */
DOCA_STABLE
doca_dpa_dev_uintptr_t doca_dpa_dev_mmap_get_external_ptr(doca_dpa_dev_mmap_t mmap_handle, uint64_t addr);

/* The kit's own: what these two do, except for the fence. */
DOCA_STABLE
void doca_dpa_dev_kit_window_read_inv(void);

DOCA_STABLE
void doca_dpa_dev_kit_window_writeback(void);

/* ---- buffers of an array (doca_buf_array.h) ---- */

/* 0, with an error, if the array has no such index. */
DOCA_STABLE
doca_dpa_dev_buf_t doca_dpa_dev_buf_array_get_buf(doca_dpa_dev_buf_arr_t buf_arr, const uint64_t buf_idx);

/* As the process that owns the memory knows it. */
DOCA_STABLE
uintptr_t doca_dpa_dev_buf_get_addr(doca_dpa_dev_buf_t buf);

DOCA_STABLE
uint64_t doca_dpa_dev_buf_get_len(doca_dpa_dev_buf_t buf);

DOCA_STABLE
doca_dpa_dev_mmap_t doca_dpa_dev_buf_get_mmap(doca_dpa_dev_buf_t buf);

/* As doca_dpa_dev_mmap_get_external_ptr of its address. */
DOCA_STABLE
doca_dpa_dev_uintptr_t doca_dpa_dev_buf_get_external_ptr(doca_dpa_dev_buf_t buf);

#ifdef __cplusplus
}
#endif

#endif
