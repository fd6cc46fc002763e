/* SPDX-License-Identifier: Apache-2.0 */
/* Results. */
#ifndef DOCA_ERROR_H_
#define DOCA_ERROR_H_

#include "doca_compat.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DOCA_IS_ERROR(result) ((result) != DOCA_SUCCESS)

/* Keeps the first error of several calls in result. */
#define DOCA_ERROR_PROPAGATE(result, latest)  \
	do {                                  \
		if ((result) == DOCA_SUCCESS) \
			(result) = (latest);  \
	} while (0)

/* "DOCA_ERROR_AGAIN" and the like; always a string. */
DOCA_STABLE
const char *doca_error_get_name(doca_error_t error);

/* A few words about it; always a string. */
DOCA_STABLE
const char *doca_error_get_descr(doca_error_t error);

#ifdef __cplusplus
}
#endif

#endif
