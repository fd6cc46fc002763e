/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The release of the software device inside the program. The development kit, which stands for a release of DOCA, puts
 * its own in the place of this file.
 */
#include "soft.h"

const char *soft_doca_version_runtime(void)
{
	return "soft 1";
}
