/* SPDX-License-Identifier: Apache-2.0 */
/* DOCA has a header of this name, and programs include it. Here its macros are in doca_compat.h. */
#ifndef DOCA_COMMON_DEFINES_H_
#define DOCA_COMMON_DEFINES_H_

#include "doca_compat.h"

#endif
