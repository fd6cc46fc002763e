/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is built for the release MAJOR.MINOR sees that release, and can include all headers. */
#include <doca_argp.h>
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_msgq.h>
#include <doca_comch_producer.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_dpa.h>
#include <doca_error.h>
#include <doca_log.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <doca_sync_event.h>
#include <doca_version.h>
#include <stdio.h>

#if DOCA_VERSION_MAJOR != MAJOR || DOCA_VERSION_MINOR != MINOR || !DOCA_VERSION_EQ_CURRENT(MAJOR, MINOR, 0) || \
	!DOCA_VERSION_LTE_CURRENT(MAJOR, MINOR, 0) || DOCA_VERSION_LTE_CURRENT(MAJOR, MINOR + 1, 0)
#error "the headers have another release"
#endif

/* What a later release brings, an earlier program may define itself. */
#if !DOCA_VERSION_LTE_CURRENT(3, 1, 0)
static int doca_devinfo_get_sf_index(void)
{
	return 1;
}
#endif

int main(void)
{
	(void)doca_devinfo_get_sf_index;
	printf("%s %s %s\n", doca_version(), DOCA_VER_STRING, doca_version_runtime());
	return 0;
}
