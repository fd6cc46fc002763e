/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_MEMORY_H
#define EXAMPLES_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <doca_dev.h>
#include <doca_mmap.h>

/* Memory of this process, registered with dev. permissions are of enum doca_access_flag. */
doca_error_t map_memory(struct doca_dev *dev, void *addr, size_t len, uint32_t permissions, struct doca_mmap **mmap);

#endif
