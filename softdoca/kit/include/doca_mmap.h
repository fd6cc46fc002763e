/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory maps: one range of memory, registered with devices, and its export to another process.
 *
 *   create -> set_memrange (once), add_dev, set_permissions -> start -> export, buffers, tasks -> destroy
 *
 * Settings are frozen while the map is started. An export descriptor is a secret: it gives access to the memory until
 * the map is stopped or destroyed. A map is for one thread at a time.
 */
#ifndef DOCA_MMAP_H_
#define DOCA_MMAP_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_compat.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

DOCA_STABLE
doca_error_t doca_mmap_create(struct doca_mmap **mmap);

/* Stops it too. NOT_PERMITTED while a buffer points into it. */
DOCA_STABLE
doca_error_t doca_mmap_destroy(struct doca_mmap *mmap);

/* NOT_PERMITTED for a map that was exported before, or that is an import. */
DOCA_STABLE
doca_error_t doca_mmap_start(struct doca_mmap *mmap);

/* Ends all exports. NOT_PERMITTED while a buffer points into it. */
DOCA_STABLE
doca_error_t doca_mmap_stop(struct doca_mmap *mmap);

/* ALREADY_EXIST; NO_MEMORY above the limit of devices; NOT_PERMITTED once started or for an import. */
DOCA_STABLE
doca_error_t doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/* NOT_FOUND; NOT_PERMITTED once started or for an import. */
DOCA_STABLE
doca_error_t doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/*
 * The descriptor is the map's, valid until stop or destroy. NOT_FOUND: dev was not added. NOT_PERMITTED: not started,
 * imported, or no PCI permission.
 */
DOCA_STABLE
doca_error_t doca_mmap_export_pci(struct doca_mmap *mmap, const struct doca_dev *dev, const void **export_desc,
				  size_t *export_desc_len);

/* As export_pci, for RDMA permissions. */
DOCA_STABLE
doca_error_t doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev, const void **export_desc,
				   size_t *export_desc_len);

/*
 * Creates a map of another process's memory: usable at once, never started, with the exporter's addresses. user_data
 * may be NULL.
 */
DOCA_STABLE
doca_error_t doca_mmap_create_from_export(const union doca_data *user_data, const void *export_desc,
					  size_t export_desc_len, struct doca_dev *dev, struct doca_mmap **mmap);

/* Once only: NOT_PERMITTED the second time. INVALID_VALUE for NULL, for 0, and for a range that wraps. */
DOCA_STABLE
doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *addr, size_t len);

DOCA_STABLE
doca_error_t doca_mmap_set_dmabuf_memrange(struct doca_mmap *mmap, int dmabuf_fd, void *addr, size_t dmabuf_offset,
					   size_t len);

/* BAD_STATE if it was never set. An import answers the exporter's range. */
DOCA_STABLE
doca_error_t doca_mmap_get_memrange(const struct doca_mmap *mmap, void **addr, size_t *len);

/* Called by destroy, if the map was started at least once. */
DOCA_STABLE
doca_error_t doca_mmap_set_free_cb(struct doca_mmap *mmap, doca_mmap_memrange_free_cb_t *free_cb, void *opaque);

/* Zero if it was never set. */
DOCA_STABLE
doca_error_t doca_mmap_get_user_data(const struct doca_mmap *mmap, union doca_data *user_data);

DOCA_STABLE
doca_error_t doca_mmap_get_max_num_devices(const struct doca_mmap *mmap, uint32_t *max_num_devices);

DOCA_STABLE
doca_error_t doca_mmap_get_num_bufs(const struct doca_mmap *mmap, uint32_t *num_bufs);

/* 0 or 1. */
DOCA_STABLE
doca_error_t doca_mmap_get_exported(const struct doca_mmap *mmap, uint8_t *exported);

/* 0 or 1. */
DOCA_STABLE
doca_error_t doca_mmap_get_from_export(const struct doca_mmap *mmap, uint8_t *from_export);

/* Before the first start. */
DOCA_STABLE
doca_error_t doca_mmap_set_max_num_devices(struct doca_mmap *mmap, uint32_t max_num_devices);

/*
 * Bits of enum doca_access_flag; a map on which this was not called has LOCAL_READ_WRITE. PCI_READ_ONLY and
 * PCI_READ_WRITE exclude each other.
 */
DOCA_STABLE
doca_error_t doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access_mask);

DOCA_STABLE
doca_error_t doca_mmap_set_user_data(struct doca_mmap *mmap, union doca_data user_data);

/* 0 or 1. */
DOCA_STABLE
doca_error_t doca_mmap_cap_is_export_pci_supported(const struct doca_devinfo *devinfo, uint8_t *mmap_export);

/* 0 or 1. */
DOCA_STABLE
doca_error_t doca_mmap_cap_is_create_from_export_pci_supported(const struct doca_devinfo *devinfo,
							       uint8_t *from_export);

/* Before the first start. Buffers are then no longer counted, and destroy no longer refuses because of them. */
DOCA_EXPERIMENTAL
doca_error_t doca_mmap_enable_thread_safety(struct doca_mmap *mmap);

/* The handle by which the DPA's code knows a started map, until it is stopped. NOT_FOUND: dev was not added. */
DOCA_EXPERIMENTAL
doca_error_t doca_mmap_dev_get_dpa_handle(struct doca_mmap *mmap, const struct doca_dev *dev,
					  doca_dpa_dev_mmap_t *dpa_mmap_handle);

/* Memory of a DPA instead of the program's; no device is added. */
DOCA_EXPERIMENTAL
doca_error_t doca_mmap_set_dpa_memrange(struct doca_mmap *mmap, struct doca_dpa *dpa, uint64_t dpa_addr, size_t len);

#ifdef __cplusplus
}
#endif

#endif
