/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DMA_COPY_SOFT_OPS_H
#define DMA_COPY_SOFT_OPS_H

#include "soft.h"

/* The table whose functions ask soft_fault_call first. */
const struct doca_ops *soft_refusing_ops(void);

#endif
