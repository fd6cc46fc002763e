/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "doca_clock.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "dev.h"
#include "soft_dpa.h"

struct doca_clock {
	struct doca_dev *dev;
};

#define NIC_CLOCKS (DOCA_CLOCK_NIC_FREE_RUNNING | DOCA_CLOCK_NIC_REAL_TIME | DOCA_CLOCK_NIC_DPA_TIMER)

doca_error_t doca_clock_cap_nic_free_running_is_supported(const struct doca_devinfo *devinfo)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

doca_error_t doca_clock_cap_nic_real_time_is_supported(const struct doca_devinfo *devinfo)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

doca_error_t doca_clock_cap_nic_dpa_timer_is_supported(const struct doca_devinfo *devinfo)
{
	return soft_doca_dpa_cap_is_supported(devinfo);
}

doca_error_t doca_clock_create(const struct doca_dev *dev, struct doca_clock **clock)
{
	if (dev == NULL || clock == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_clock *created = malloc(sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	created->dev = (struct doca_dev *)dev; /* only its users change */
	atomic_fetch_add(&created->dev->users, 1);
	*clock = created;
	return DOCA_SUCCESS;
}

doca_error_t doca_clock_destroy(struct doca_clock *clock)
{
	if (clock == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	atomic_fetch_sub(&clock->dev->users, 1);
	free(clock);
	return DOCA_SUCCESS;
}

static uint64_t read_counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t count;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count;
#else
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
#endif
}

static doca_error_t read_time(clockid_t id, union doca_clock_timespec_t *time)
{
	return clock_gettime(id, &time->ts) == 0 ? DOCA_SUCCESS : DOCA_ERROR_OPERATING_SYSTEM;
}

static doca_error_t read_dpa_timer(const struct doca_clock *clock, union doca_clock_timespec_t *time)
{
	doca_error_t result = doca_clock_cap_nic_dpa_timer_is_supported(clock->dev->info);
	return result == DOCA_SUCCESS ? read_time(CLOCK_REALTIME, time) : result; /* as dpaintrin.h */
}

doca_error_t doca_clock_get_timestamp(const struct doca_clock *clock, uint64_t clock_type,
				      union doca_clock_timespec_t *clock_ts)
{
	if (clock == NULL || clock_ts == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	switch (clock_type) {
	case DOCA_CLOCK_NIC_FREE_RUNNING:
	case DOCA_CLOCK_HOST_MONOTONIC_RAW:
		return read_time(CLOCK_MONOTONIC_RAW, clock_ts);
	case DOCA_CLOCK_NIC_REAL_TIME:
	case DOCA_CLOCK_HOST_REAL_TIME:
		return read_time(CLOCK_REALTIME, clock_ts);
	case DOCA_CLOCK_HOST_MONOTONIC:
		return read_time(CLOCK_MONOTONIC, clock_ts);
	case DOCA_CLOCK_NIC_DPA_TIMER:
		return read_dpa_timer(clock, clock_ts);
	case DOCA_CLOCK_HOST_COUNTER_CYCLES:
		clock_ts->counter = read_counter();
		return DOCA_SUCCESS;
	default:
		return DOCA_ERROR_NOT_SUPPORTED;
	}
}

static uint64_t elapsed_ns(const struct timespec *from, const struct timespec *to)
{
	return (uint64_t)((to->tv_sec - from->tv_sec) * 1000000000 + to->tv_nsec - from->tv_nsec);
}

doca_error_t doca_clock_get_crosstimestamp(const struct doca_clock *clock, uint64_t primary_clock_type,
					   uint64_t nic_clock_type, union doca_clock_timespec_t *primary_clock_ts,
					   union doca_clock_timespec_t *nic_clock_ts, uint64_t *error_margin_nsecs)
{
	struct timespec begin, end;
	if (error_margin_nsecs == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if ((nic_clock_type & NIC_CLOCKS) == 0)
		return DOCA_ERROR_NOT_SUPPORTED;
	clock_gettime(CLOCK_MONOTONIC_RAW, &begin);
	doca_error_t result = doca_clock_get_timestamp(clock, primary_clock_type, primary_clock_ts);
	if (result == DOCA_SUCCESS)
		result = doca_clock_get_timestamp(clock, nic_clock_type, nic_clock_ts);
	clock_gettime(CLOCK_MONOTONIC_RAW, &end);
	if (result == DOCA_SUCCESS)
		*error_margin_nsecs = elapsed_ns(&begin, &end);
	return result;
}
