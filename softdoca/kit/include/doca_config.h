/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine and the release of DOCA that a program is built for. The release is 100 times its major version plus its
 * minor version: 210 is DOCA 2.10, 303 is 3.3. Functions of later releases are then not declared. The pkg-config
 * files in pkgconfig/RELEASE set it (docs/SDK.md).
 */
#ifndef DOCA_CONFIG_H_
#define DOCA_CONFIG_H_

#include "doca_build_config.h"

#ifndef DMA_COPY_KIT_VERSION
#define DMA_COPY_KIT_VERSION 303
#endif

#endif
