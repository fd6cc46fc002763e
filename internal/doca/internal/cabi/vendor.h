/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DOCA's own libraries, found and loaded at run time. Every symbol is looked up here, so the program links against none
 * of them and starts where none is installed.
 */
#ifndef DMA_COPY_VENDOR_H
#define DMA_COPY_VENDOR_H

#include <limits.h>
#include <stdbool.h>

#include "ops.h"

enum vendor_library_id { VENDOR_COMMON, VENDOR_DMA, VENDOR_COMCH, VENDOR_LIBRARIES };

struct vendor {
	struct doca_ops ops;
	void *handles[VENDOR_LIBRARIES];
	char directory[4096];                   /* where libdoca_common came from */
	char files[VENDOR_LIBRARIES][PATH_MAX]; /* the libraries behind all links; empty where unknown */
	bool stand_in;                          /* the development kit's, with the software device behind them */
};

/*
 * Loads libdoca_common, libdoca_dma and libdoca_comch, all of one release and from one directory: `directory` if given,
 * otherwise the loader's own path and then the places where DOCA's packages install. NULL on failure, with one sentence
 * in error and what was tried, one line each, in detail.
 */
struct vendor *vendor_open(const char *directory, char *error, size_t error_size, char *detail, size_t detail_size);
void vendor_close(struct vendor *vendor);

/* As soft_describe_model, of the device behind a stand-in. DOCA's own libraries have no model and move bytes. */
bool vendor_describe_model(const struct vendor *vendor, char *text, size_t size);

#endif
