/* SPDX-License-Identifier: Apache-2.0 */
/* What was decided when the kit was built: nothing but the machine. */
#ifndef DOCA_CONFIG_H_
#define DOCA_CONFIG_H_

#include "doca_build_config.h"

#endif
