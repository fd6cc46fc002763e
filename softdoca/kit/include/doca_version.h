/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The release of DOCA whose interface the kit has: 3.0.0. The last three digits of the patch are a build number; DOCA
 * does not use 999, which identifies the kit.
 */
#ifndef DOCA_VERSION_H_
#define DOCA_VERSION_H_

#include "doca_compat.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DOCA_VERSION_MAJOR 3
#define DOCA_VERSION_MINOR 0
#define DOCA_VERSION_PATCH 999
#define DOCA_VERSION_STRING "3.0.0999"

/* Releases as numbers that compare: of an official release (3.0.0), and of a build of one (3.0.0999). */
#define DOCA_VERSION_CALC(major, minor, patch) (((major) << 24) | ((minor) << 16) | ((patch)*1000))
#define DOCA_VERSION_CALC_EXACT(major, minor, patch) (((major) << 24) | ((minor) << 16) | (patch))

#define DOCA_VERSION_EXACT DOCA_VERSION_CALC_EXACT(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH)
#define DOCA_VERSION_OFFICIAL DOCA_VERSION_CALC(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH / 1000)

/* The named official release is the current one; is the current one or an earlier one. */
#define DOCA_VERSION_EQ_CURRENT(major, minor, patch) (DOCA_VERSION_CALC(major, minor, patch) == DOCA_VERSION_OFFICIAL)
#define DOCA_VERSION_LTE_CURRENT(major, minor, patch) (DOCA_VERSION_CALC(major, minor, patch) <= DOCA_VERSION_OFFICIAL)

/* What the program was compiled with. */
static inline const char *doca_version(void)
{
	return DOCA_VERSION_STRING;
}

/* What the program runs with: that of the loaded libdoca_common. */
DOCA_EXPERIMENTAL
const char *doca_version_runtime(void);

#ifdef __cplusplus
}
#endif

#endif
