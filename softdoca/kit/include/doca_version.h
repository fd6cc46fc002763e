/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The release of DOCA whose interface a program has, as doca_config.h says: 3.3.0, or another. The last three digits of
 * the patch are a build number; DOCA does not use 999, which identifies the kit.
 */
#ifndef DOCA_VERSION_H_
#define DOCA_VERSION_H_

#include "doca_compat.h"

#ifdef __cplusplus
extern "C" {
#endif

#if DMA_COPY_KIT_VERSION == 205
#define DOCA_VERSION_MAJOR 2
#define DOCA_VERSION_MINOR 5
#elif DMA_COPY_KIT_VERSION == 206
#define DOCA_VERSION_MAJOR 2
#define DOCA_VERSION_MINOR 6
#elif DMA_COPY_KIT_VERSION == 207
#define DOCA_VERSION_MAJOR 2
#define DOCA_VERSION_MINOR 7
#elif DMA_COPY_KIT_VERSION == 208
#define DOCA_VERSION_MAJOR 2
#define DOCA_VERSION_MINOR 8
#elif DMA_COPY_KIT_VERSION == 209
#define DOCA_VERSION_MAJOR 2
#define DOCA_VERSION_MINOR 9
#elif DMA_COPY_KIT_VERSION == 210
#define DOCA_VERSION_MAJOR 2
#define DOCA_VERSION_MINOR 10
#elif DMA_COPY_KIT_VERSION == 300
#define DOCA_VERSION_MAJOR 3
#define DOCA_VERSION_MINOR 0
#elif DMA_COPY_KIT_VERSION == 301
#define DOCA_VERSION_MAJOR 3
#define DOCA_VERSION_MINOR 1
#elif DMA_COPY_KIT_VERSION == 302
#define DOCA_VERSION_MAJOR 3
#define DOCA_VERSION_MINOR 2
#elif DMA_COPY_KIT_VERSION == 303
#define DOCA_VERSION_MAJOR 3
#define DOCA_VERSION_MINOR 3
#elif DMA_COPY_KIT_VERSION == 304
#define DOCA_VERSION_MAJOR 3
#define DOCA_VERSION_MINOR 4
#elif DMA_COPY_KIT_VERSION == 305
#define DOCA_VERSION_MAJOR 3
#define DOCA_VERSION_MINOR 5
#else
#error "DMA_COPY_KIT_VERSION is no release that the kit has: 205 to 210, or 300 to 305"
#endif
#define DOCA_VERSION_PATCH 999

/* "3.3.0999" */
#define DOCA_VERSION_TEXT(major, minor, patch) #major "." #minor ".0" #patch
#define DOCA_VERSION_TEXT_OF(major, minor, patch) DOCA_VERSION_TEXT(major, minor, patch)
#define DOCA_VERSION_STRING DOCA_VERSION_TEXT_OF(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH)
#define DOCA_VER_STRING DOCA_VERSION_STRING

/* Releases as numbers that compare: of an official release (3.3.0), and of a build of one (3.3.0999). */
#define DOCA_VERSION_CALC(major, minor, patch) (((major) << 24) | ((minor) << 16) | ((patch)*1000))
#define DOCA_VERSION_CALC_EXACT(major, minor, patch) (((major) << 24) | ((minor) << 16) | (patch))

#define DOCA_VERSION_EXACT DOCA_VERSION_CALC_EXACT(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH)
#define DOCA_VERSION_OFFICIAL DOCA_VERSION_CALC(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH / 1000)

/* The named official release is the current one; is the current one or an earlier one. */
#define DOCA_VERSION_EQ_CURRENT(major, minor, patch) (DOCA_VERSION_CALC(major, minor, patch) == DOCA_VERSION_OFFICIAL)
#define DOCA_VERSION_LTE_CURRENT(major, minor, patch) (DOCA_VERSION_CALC(major, minor, patch) <= DOCA_VERSION_OFFICIAL)

/* The version that the program was compiled with. */
static inline const char *doca_version(void)
{
	return DOCA_VERSION_STRING;
}

/*
 * The release that the program runs with, of the loaded libdoca_common. The variable DMA_COPY_KIT_VERSION names another
 * ("3.5").
 */
DOCA_EXPERIMENTAL
const char *doca_version_runtime(void);

#ifdef __cplusplus
}
#endif

#endif
