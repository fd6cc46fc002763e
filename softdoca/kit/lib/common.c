/* SPDX-License-Identifier: Apache-2.0 */
/* The exports of libdoca_common that are in the lists, but for sync events. */
#include <stdio.h>
#include <stdlib.h>

#include "doca_buf.h"
#include "doca_buf_array.h"
#include "doca_buf_inventory.h"
#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_error.h"
#include "doca_log.h"
#include "doca_mmap.h"
#include "doca_pe.h"
#include "doca_version.h"
#include "soft.h"
#include "soft_dpa.h"

static char release[16] = DOCA_VERSION_STRING;

/* Once, because other threads may read what it writes. A release that is none is ignored. */
__attribute__((constructor)) static void choose_release(void)
{
	const char *named = getenv("DMA_COPY_KIT_VERSION");
	unsigned major, minor;
	char rest;
	if (named != NULL && sscanf(named, "%2u.%2u%c", &major, &minor, &rest) == 2)
		snprintf(release, sizeof(release), "%u.%u.0%d", major % 100, minor % 100, DOCA_VERSION_PATCH);
}

const char *soft_doca_version_runtime(void)
{
	return release;
}

#define EXPORT_COMMON(...) __VA_ARGS__
#define EXPORT_DMA(...)
#define EXPORT_COMCH(...)
#include "exports.h"

#define EXPORT_DPA(...)
#include "dpa_exports.h"

const struct doca_ops *priv_doca_ops(void)
{
	return soft_ops();
}

const struct doca_dpa_ops *priv_doca_dpa_ops(void)
{
	return soft_dpa_ops();
}

bool priv_doca_describe_model(char *text, size_t size)
{
	return soft_describe_model(text, size);
}

__attribute__((destructor)) static void unload(void)
{
	soft_unconfigure();
}
