/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DOCA's own libraries, loaded at run time. Every symbol is looked up here, so the program links against none of them
 * and starts without them.
 */
#ifndef DMA_COPY_VENDOR_H
#define DMA_COPY_VENDOR_H

#include <limits.h>
#include <stdbool.h>

#include "ops.h"

#define VENDOR_SUFFIX 8

enum vendor_library_id { VENDOR_COMMON, VENDOR_DMA, VENDOR_COMCH, VENDOR_LIBRARIES };

struct vendor {
	struct doca_ops ops;
	void *handles[VENDOR_LIBRARIES];
	char directory[4096];                   /* from which libdoca_common was loaded */
	char suffix[VENDOR_SUFFIX];             /* of the names under which all were loaded: ".so.2" */
	char files[VENDOR_LIBRARIES][PATH_MAX]; /* the libraries, with all links resolved; empty if unknown */
	bool stand_in;                          /* the development kit's libraries, over the software device */
};

/*
 * Loads libdoca_common, libdoca_dma and libdoca_comch, all of one release and from one directory: `directory` if given,
 * otherwise the loader's search path and then the directories of DOCA's packages. It takes the newest of several major
 * versions in one place. Returns NULL on failure, with one sentence in error.
 */
struct vendor *vendor_open(const char *directory, char *error, size_t error_size);
void vendor_close(struct vendor *vendor);

/* As soft_describe_model, for the development kit. DOCA's own libraries have no model and move bytes. */
bool vendor_describe_model(const struct vendor *vendor, char *text, size_t size);

#endif
