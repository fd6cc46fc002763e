/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of buffers, for code of a DPA: equal pieces of a memory map, which may be imported.
 *
 *   create -> set_target_dpa, set_params -> start -> get_dpa_handle -> stop or destroy
 */
#ifndef DOCA_BUF_ARRAY_H_
#define DOCA_BUF_ARRAY_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_compat.h"
#include "doca_dpa_abi.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_create(size_t num_elem, struct doca_buf_arr **buf_arr);

/* The piece with index 0 begins start_offset bytes behind the beginning of the map. BAD_STATE once started. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_set_params(struct doca_buf_arr *buf_arr, struct doca_mmap *mmap, size_t elem_size,
				     uint64_t start_offset);

/* BAD_STATE once started. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_set_target_dpa(struct doca_buf_arr *buf_arr, struct doca_dpa *dpa_handler);

/* NOT_SUPPORTED here: there is no GPU. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_set_target_gpu(struct doca_buf_arr *buf_arr, struct doca_gpu *gpu_handler);

/* BAD_STATE: started, without a target, or the map is not started. NO_MEMORY: the map is too small. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_start(struct doca_buf_arr *buf_arr);

DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_stop(struct doca_buf_arr *buf_arr);

/* Stops it too. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_destroy(struct doca_buf_arr *buf_arr);

/* The handle that the DPA's code gives to doca_dpa_dev_buf_array_get_buf. BAD_STATE: not started. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_get_dpa_handle(const struct doca_buf_arr *buf_arr, doca_dpa_dev_buf_arr_t *dpa_buf_arr);

/* NOT_SUPPORTED here. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_get_gpu_handle(const struct doca_buf_arr *buf_arr, struct doca_gpu_buf_arr **gpu_buf_arr);

/* The first two up to DOCA 2.5: the map comes first, the number of pieces later. */
DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_create_2_5(struct doca_mmap *mmap, struct doca_buf_arr **buf_arr);

DOCA_EXPERIMENTAL
doca_error_t doca_buf_arr_set_params_2_5(struct doca_buf_arr *buf_arr, size_t elem_size, uint32_t num_elem,
					 uint64_t start_offset);

#if DMA_COPY_KIT_VERSION <= 205
#define doca_buf_arr_create doca_buf_arr_create_2_5
#define doca_buf_arr_set_params doca_buf_arr_set_params_2_5
#endif

#ifdef __cplusplus
}
#endif

#endif
