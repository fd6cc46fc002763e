/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is built for the release MAJOR.MINOR sees that release, and can include all headers. */
#include <doca_argp.h>
#include <doca_buf.h>
#include <doca_buf_array.h>
#include <doca_buf_inventory.h>
#include <doca_clock.h>
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
#include <doca_mmap_advise.h>
#include <doca_pe.h>
#include <doca_sync_event.h>
#include <doca_version.h>
#include <stdio.h>

#if DOCA_VERSION_MAJOR != MAJOR || DOCA_VERSION_MINOR != MINOR || !DOCA_VERSION_EQ_CURRENT(MAJOR, MINOR, 0) || \
	!DOCA_VERSION_LTE_CURRENT(MAJOR, MINOR, 0) || DOCA_VERSION_LTE_CURRENT(MAJOR, MINOR + 1, 0)
#error "the headers have another release"
#endif

/* An earlier program may define functions of later releases itself. */
#if !DOCA_VERSION_LTE_CURRENT(3, 1, 0)
static int doca_devinfo_get_sf_index(void)
{
	return 1;
}
#endif

/* With the parameters of the release. */
static doca_error_t make_array(struct doca_mmap *mmap, struct doca_buf_arr **array)
{
#if DOCA_VERSION_LTE_CURRENT(2, 6, 0)
	doca_error_t result = doca_buf_arr_create(10, array);
	return result != DOCA_SUCCESS ? result : doca_buf_arr_set_params(*array, mmap, 64, 0);
#else
	doca_error_t result = doca_buf_arr_create(mmap, array);
	return result != DOCA_SUCCESS ? result : doca_buf_arr_set_params(*array, 64, 10, 0);
#endif
}

int main(void)
{
	struct doca_mmap *mmap;
	struct doca_buf_arr *array;
	(void)doca_devinfo_get_sf_index;
	if (doca_mmap_create(&mmap) != DOCA_SUCCESS || make_array(mmap, &array) != DOCA_SUCCESS ||
	    doca_buf_arr_start(array) != DOCA_ERROR_BAD_STATE || doca_buf_arr_destroy(array) != DOCA_SUCCESS ||
	    doca_mmap_destroy(mmap) != DOCA_SUCCESS)
		return 1;
	printf("%s %s %s\n", doca_version(), DOCA_VER_STRING, doca_version_runtime());
	return 0;
}
