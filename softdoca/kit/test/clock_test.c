/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: which there are, and that two of them are read together. */
#include <doca_clock.h>
#include <doca_dev.h>

#include "capture.h"
#include "check.h"

static const uint64_t times[] = {
	DOCA_CLOCK_NIC_FREE_RUNNING, DOCA_CLOCK_NIC_REAL_TIME,  DOCA_CLOCK_NIC_DPA_TIMER,
	DOCA_CLOCK_HOST_REAL_TIME,   DOCA_CLOCK_HOST_MONOTONIC, DOCA_CLOCK_HOST_MONOTONIC_RAW,
};

/* Opens the device with that index of the list. */
static struct doca_dev *open_dev(uint32_t index, doca_error_t has_dpa_timer)
{
	struct doca_devinfo **list;
	struct doca_dev *dev;
	uint32_t count;
	EXPECT(DOCA_SUCCESS, doca_devinfo_create_list(&list, &count));
	CHECK(index < count);
	EXPECT(DOCA_SUCCESS, doca_clock_cap_nic_free_running_is_supported(list[index]));
	EXPECT(DOCA_SUCCESS, doca_clock_cap_nic_real_time_is_supported(list[index]));
	EXPECT(has_dpa_timer, doca_clock_cap_nic_dpa_timer_is_supported(list[index]));
	EXPECT(DOCA_SUCCESS, doca_dev_open(list[index], &dev));
	EXPECT(DOCA_SUCCESS, doca_devinfo_destroy_list(list));
	return dev;
}

static int64_t ns_of(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static int are_read(const void *argument)
{
	struct doca_dev *dev = open_dev(0, DOCA_SUCCESS);
	struct doca_clock *clock;
	union doca_clock_timespec_t first, second;
	(void)argument;
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_clock_create(NULL, &clock));
	EXPECT(DOCA_SUCCESS, doca_clock_create(dev, &clock));
	EXPECT(DOCA_ERROR_IN_USE, doca_dev_close(dev));
	for (size_t i = 0; i < COUNT(times); i++) {
		EXPECT(DOCA_SUCCESS, doca_clock_get_timestamp(clock, times[i], &first));
		EXPECT(DOCA_SUCCESS, doca_clock_get_timestamp(clock, times[i], &second));
		CHECK(first.ts.tv_nsec < 1000000000 && ns_of(&first.ts) > 0);
		CHECK(times[i] == DOCA_CLOCK_HOST_REAL_TIME || times[i] == DOCA_CLOCK_NIC_REAL_TIME ||
		      times[i] == DOCA_CLOCK_NIC_DPA_TIMER || ns_of(&second.ts) >= ns_of(&first.ts));
	}
	EXPECT(DOCA_SUCCESS, doca_clock_get_timestamp(clock, DOCA_CLOCK_HOST_COUNTER_CYCLES, &first));
	CHECK(first.counter > 0);
	EXPECT(DOCA_ERROR_NOT_SUPPORTED, doca_clock_get_timestamp(clock, 0, &first));
	EXPECT(DOCA_ERROR_NOT_SUPPORTED, doca_clock_get_timestamp(clock, 3, &first));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_clock_get_timestamp(clock, 1, NULL));
	EXPECT(DOCA_SUCCESS, doca_clock_destroy(clock));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_clock_destroy(NULL));
	EXPECT(DOCA_SUCCESS, doca_dev_close(dev));
	return 0;
}

/* Two clocks with the same time differ by no more than the margin. */
static int are_read_together(const void *argument)
{
	struct doca_dev *dev = open_dev(0, DOCA_SUCCESS);
	struct doca_clock *clock;
	union doca_clock_timespec_t host, nic;
	uint64_t margin;
	(void)argument;
	EXPECT(DOCA_SUCCESS, doca_clock_create(dev, &clock));
	EXPECT(DOCA_SUCCESS, doca_clock_get_crosstimestamp(clock, DOCA_CLOCK_HOST_MONOTONIC_RAW,
							   DOCA_CLOCK_NIC_FREE_RUNNING, &host, &nic, &margin));
	CHECK(ns_of(&nic.ts) >= ns_of(&host.ts) && ns_of(&nic.ts) - ns_of(&host.ts) <= (int64_t)margin);
	EXPECT(DOCA_ERROR_NOT_SUPPORTED,
	       doca_clock_get_crosstimestamp(clock, DOCA_CLOCK_NIC_REAL_TIME, DOCA_CLOCK_HOST_REAL_TIME, &host, &nic,
					     &margin));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_clock_get_crosstimestamp(clock, DOCA_CLOCK_NIC_REAL_TIME,
								       DOCA_CLOCK_NIC_DPA_TIMER, &host, &nic, NULL));
	EXPECT(DOCA_SUCCESS, doca_clock_destroy(clock));
	EXPECT(DOCA_SUCCESS, doca_dev_close(dev));
	return 0;
}

/* A virtual function has none. */
static int of_a_dpa_needs_one(const void *argument)
{
	struct doca_clock *clock;
	union doca_clock_timespec_t time;
	(void)argument;
	CHECK(setenv("DMA_COPY_SOFT_FUNCTIONS", "vf", 1) == 0);
	struct doca_dev *dev = open_dev(2, DOCA_ERROR_NOT_SUPPORTED);
	EXPECT(DOCA_SUCCESS, doca_clock_create(dev, &clock));
	EXPECT(DOCA_ERROR_NOT_SUPPORTED, doca_clock_get_timestamp(clock, DOCA_CLOCK_NIC_DPA_TIMER, &time));
	EXPECT(DOCA_SUCCESS, doca_clock_destroy(clock));
	EXPECT(DOCA_SUCCESS, doca_dev_close(dev));
	return 0;
}

static const struct capture_case cases[] = {
	{"are read", are_read},
	{"are read together", are_read_together},
	{"of a DPA needs one", of_a_dpa_needs_one},
};

int main(void)
{
	return report("clock", COUNT(cases), check_cases(cases, COUNT(cases)));
}
