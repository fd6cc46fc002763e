/* SPDX-License-Identifier: Apache-2.0 */
/* The exports of libdoca_dma: all of them are in the list. */
#include "doca_dma.h"

#define EXPORT_COMMON(...)
#define EXPORT_DMA(...) __VA_ARGS__
#define EXPORT_COMCH(...)
#include "exports.h"
