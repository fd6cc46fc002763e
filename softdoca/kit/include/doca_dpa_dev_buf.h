/* SPDX-License-Identifier: Apache-2.0 */
/* What code of a DPA calls to reach memory of the CPU. */
#ifndef DOCA_DPA_DEV_BUF_H_
#define DOCA_DPA_DEV_BUF_H_

#include <stdint.h>

#include "doca_dpa_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pointer to the address, which must lie in the memory map, for loads and stores. 0 for imported memory. */
DOCA_STABLE
doca_dpa_dev_uintptr_t doca_dpa_dev_mmap_get_external_ptr(doca_dpa_dev_mmap_t mmap_handle, uint64_t addr);

#ifdef __cplusplus
}
#endif

#endif
