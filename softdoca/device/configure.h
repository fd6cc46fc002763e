/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies settings: from their texts to the values in force (config.h). Each module parses its own settings, so only
 * functions by which a program begins to use the device may call this module.
 */
#ifndef DMA_COPY_SOFT_CONFIGURE_H
#define DMA_COPY_SOFT_CONFIGURE_H

#include "doca_abi.h"

/* Applies the environment unless the device is configured already. Any thread may call. */
doca_error_t soft_ensure_configured(void);

#endif
