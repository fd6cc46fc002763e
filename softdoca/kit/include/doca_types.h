/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types that belong to no one library. The types that the device shares are in doca_abi.h.
 *
 * All headers with functions include this one, and programs rely on what DOCA's headers bring along: PRIu64, malloc,
 * memset, assert and the like are declared wherever one of them is included.
 */
#ifndef DOCA_TYPES_H_
#define DOCA_TYPES_H_

#include <assert.h>
#include <inttypes.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "doca_abi.h"

/* Big-endian numbers. */
typedef __be16 doca_be16_t;
typedef __be32 doca_be32_t;
typedef __be64 doca_be64_t;

/*
 * A file descriptor, and what it is before there is one. The progress engine's doca_notification_handle_t is its like.
 */
typedef int doca_event_handle_t;
#define doca_event_invalid_handle (-1)

/* Pieces of memory, in order; the last has next NULL. */
struct doca_gather_list {
	void *addr;
	uint64_t len;
	struct doca_gather_list *next;
};

/* Sizes of buffers that the caller provides; strings with their terminating zero. */
#define DOCA_DEVINFO_VUID_SIZE 128
#define DOCA_DEVINFO_IPV4_ADDR_SIZE 4
#define DOCA_DEVINFO_IPV6_ADDR_SIZE 16
#define DOCA_DEVINFO_MAC_ADDR_SIZE 6
#define DOCA_DEVINFO_PCI_BDF_SIZE 8
#define DOCA_DEVINFO_REP_PCI_BDF_SIZE 8
#define DOCA_GID_BYTE_LENGTH 16

#endif
