/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides' devices in a fresh directory, for the tests of contexts and of the control channel. */
#ifndef DMA_COPY_CTEST_FIXTURE_H
#define DMA_COPY_CTEST_FIXTURE_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../device/dev.h"
#include "check.h"

struct fixture {
	char dir[300];
	struct doca_dev *host, *dpu;
	struct doca_dev_rep *rep, *other_rep; /* of the dpu: rep stands for host */
};

static inline struct doca_dev *fixture_open_dev(enum soft_side side)
{
	struct doca_devinfo **list;
	struct doca_dev *dev = NULL;
	uint32_t n;
	CHECK_OK(soft_doca_devinfo_create_list(&list, &n));
	for (uint32_t i = 0; i < n && dev == NULL; i++) {
		if (list[i]->side == side)
			CHECK_OK(soft_doca_dev_open(list[i], &dev));
	}
	CHECK(dev != NULL);
	CHECK_OK(soft_doca_devinfo_destroy_list(list));
	return dev;
}

static inline void fixture_open_reps(struct fixture *fixture)
{
	struct doca_devinfo_rep **list;
	uint32_t n;
	CHECK_OK(soft_doca_devinfo_rep_create_list(fixture->dpu, DOCA_DEVINFO_REP_FILTER_NET, &list, &n));
	for (uint32_t i = 0; i < n; i++) {
		bool mine = strcmp(list[i]->function->pci_addr, fixture->host->info->pci_addr) == 0;
		CHECK_OK(soft_doca_dev_rep_open(list[i], mine ? &fixture->rep : &fixture->other_rep));
	}
	CHECK(fixture->rep != NULL && fixture->other_rep != NULL);
	CHECK_OK(soft_doca_devinfo_rep_destroy_list(list));
}

/* The directory's path is too long for the address of a socket. */
static inline void fixture_open(struct fixture *fixture, const char *limits)
{
	char error[256];
	*fixture = (struct fixture){.host = NULL};
	snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/%0120d-XXXXXX", 0);
	CHECK(mkdtemp(fixture->dir) != NULL);
	CHECK_OK(soft_configure(fixture->dir, limits, error, sizeof(error)));
	fixture->host = fixture_open_dev(SOFT_HOST);
	fixture->dpu = fixture_open_dev(SOFT_DPU);
	fixture_open_reps(fixture);
}

/* No device may be in use, and no socket may be left. */
static inline void fixture_close(struct fixture *fixture)
{
	char lock[400];
	CHECK_OK(soft_doca_dev_rep_close(fixture->rep));
	CHECK_OK(soft_doca_dev_rep_close(fixture->other_rep));
	CHECK_OK(soft_doca_dev_close(fixture->dpu));
	CHECK_OK(soft_doca_dev_close(fixture->host));
	snprintf(lock, sizeof(lock), "%s/lock", fixture->dir);
	unlink(lock);
	CHECK(rmdir(fixture->dir) == 0);
}

static inline bool fixture_readable(struct doca_pe *pe, int timeout_ms)
{
	struct pollfd fd = {.events = POLLIN};
	CHECK_OK(soft_doca_pe_get_notification_handle(pe, &fd.fd));
	return poll(&fd, 1, timeout_ms) == 1;
}

/* Progresses the engine until done(arg), and sleeps while there is nothing to do. */
static inline void fixture_wait(struct doca_pe *pe, bool (*done)(const void *arg), const void *arg)
{
	while (!done(arg)) {
		CHECK_OK(soft_doca_pe_request_notification(pe));
		if (soft_doca_pe_progress(pe))
			continue;
		CHECK(fixture_readable(pe, 30000));
		CHECK_OK(soft_doca_pe_clear_notification(pe, 0));
	}
}

#endif
