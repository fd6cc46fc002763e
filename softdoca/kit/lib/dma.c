/* SPDX-License-Identifier: Apache-2.0 */
/* What libdoca_dma exports: all of it is in the list. */
#include "doca_dma.h"

#define EXPORT_COMMON(...)
#define EXPORT_DMA(...) __VA_ARGS__
#define EXPORT_COMCH(...)
#include "exports.h"
