/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings, from the texts that name them to what is in force (config.h). It asks each module to read its own, so none of
 * those may call it: only what begins to use the device does.
 */
#ifndef DMA_COPY_SOFT_CONFIGURE_H
#define DMA_COPY_SOFT_CONFIGURE_H

#include "doca_abi.h"

/* Applies the environment if nobody has configured yet. */
doca_error_t soft_ensure_configured(void);

#endif
