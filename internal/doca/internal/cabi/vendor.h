/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DOCA's own libraries, found and loaded at run time. Every symbol is looked up here, so the program links against none
 * of them and starts where none is installed.
 */
#ifndef DMA_COPY_VENDOR_H
#define DMA_COPY_VENDOR_H

#include "ops.h"

enum vendor_library_id { VENDOR_COMMON, VENDOR_DMA, VENDOR_COMCH, VENDOR_LIBRARIES };

#define VENDOR_RELEASE 32

struct vendor {
	struct doca_ops ops;
	void *handles[VENDOR_LIBRARIES];
	char directory[4096]; /* where libdoca_common came from */
	char releases[VENDOR_LIBRARIES]
		     [VENDOR_RELEASE]; /* "2.10.0087", from the files' names; "" if they do not tell */
};

/*
 * Loads libdoca_common, libdoca_dma and libdoca_comch, all from one directory and of one release: `directory` if given, or
 * what DMA_COPY_DOCA_LIBDIR names, otherwise the loader's own path and then the places where DOCA's packages install. NULL on failure, with one sentence in error and
 * what was tried, one line each, in detail.
 */
struct vendor *vendor_open(const char *directory, char *error, size_t error_size, char *detail, size_t detail_size);
void vendor_close(struct vendor *vendor);

#endif
