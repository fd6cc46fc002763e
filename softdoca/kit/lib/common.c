/* SPDX-License-Identifier: Apache-2.0 */
/* What libdoca_common exports of the lists, but for sync events. */
#include "doca_buf.h"
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

const char *soft_doca_version_runtime(void)
{
	return DOCA_VERSION_STRING;
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
