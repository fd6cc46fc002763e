/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks of a device and of the machine. The device reads the clocks of the machine here: its real time, its raw
 * monotonic time for the free-running clock, and for a DPA's timer the time that code of a DPA reads.
 */
#ifndef DOCA_CLOCK_H_
#define DOCA_CLOCK_H_

#include <stdint.h>
#include <time.h>

#include "doca_compat.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_clock;

#define DOCA_CLOCK_NIC_FREE_RUNNING (1 << 0)
#define DOCA_CLOCK_NIC_REAL_TIME (1 << 1)
#define DOCA_CLOCK_NIC_DPA_TIMER (1 << 8)
#define DOCA_CLOCK_HOST_COUNTER_CYCLES (1 << 16)
#define DOCA_CLOCK_HOST_REAL_TIME (1 << 17)
#define DOCA_CLOCK_HOST_MONOTONIC (1 << 18)
#define DOCA_CLOCK_HOST_MONOTONIC_RAW (1 << 19)

/* counter is the value of DOCA_CLOCK_HOST_COUNTER_CYCLES, ts of all others. */
union doca_clock_timespec_t {
	struct timespec ts;
	uint64_t counter;
};

DOCA_EXPERIMENTAL
doca_error_t doca_clock_cap_nic_free_running_is_supported(const struct doca_devinfo *devinfo);

DOCA_EXPERIMENTAL
doca_error_t doca_clock_cap_nic_real_time_is_supported(const struct doca_devinfo *devinfo);

/* NOT_SUPPORTED for a function without a DPA. */
DOCA_EXPERIMENTAL
doca_error_t doca_clock_cap_nic_dpa_timer_is_supported(const struct doca_devinfo *devinfo);

/* The device stays in use until the clock is destroyed. */
DOCA_EXPERIMENTAL
doca_error_t doca_clock_create(const struct doca_dev *dev, struct doca_clock **clock);

DOCA_EXPERIMENTAL
doca_error_t doca_clock_destroy(struct doca_clock *clock);

/* clock_type is one of DOCA_CLOCK_*. NOT_SUPPORTED: it is none, or the device does not have it. */
DOCA_EXPERIMENTAL
doca_error_t doca_clock_get_timestamp(const struct doca_clock *clock, uint64_t clock_type,
				      union doca_clock_timespec_t *clock_ts);

/* Reads two clocks at one time: any, and one of the device. The times differ by at most the error margin. */
DOCA_EXPERIMENTAL
doca_error_t doca_clock_get_crosstimestamp(const struct doca_clock *clock, uint64_t primary_clock_type,
					   uint64_t nic_clock_type, union doca_clock_timespec_t *primary_clock_ts,
					   union doca_clock_timespec_t *nic_clock_ts, uint64_t *error_margin_nsecs);

#ifdef __cplusplus
}
#endif

#endif
