/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of contexts and of the control channel play on: both sides' devices in a fresh directory. */
#ifndef DMA_COPY_STAGE_H
#define DMA_COPY_STAGE_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../dev.h"
#include "check.h"

struct stage {
	char dir[300];
	struct doca_dev *host, *dpu;
	struct doca_dev_rep *rep, *other_rep; /* of the dpu: rep stands for host */
};

static inline struct doca_dev *stage_open_dev(enum soft_side side)
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

static inline void stage_open_reps(struct stage *stage)
{
	struct doca_devinfo_rep **list;
	uint32_t n;
	CHECK_OK(soft_doca_devinfo_rep_create_list(stage->dpu, DOCA_DEVINFO_REP_FILTER_NET, &list, &n));
	for (uint32_t i = 0; i < n; i++) {
		bool mine = strcmp(list[i]->function->pci_addr, stage->host->info->pci_addr) == 0;
		CHECK_OK(soft_doca_dev_rep_open(list[i], mine ? &stage->rep : &stage->other_rep));
	}
	CHECK(stage->rep != NULL && stage->other_rep != NULL);
	CHECK_OK(soft_doca_devinfo_rep_destroy_list(list));
}

/* The directory's path is too long for the address of a socket. */
static inline void stage_open(struct stage *stage, const char *limits)
{
	char error[256];
	*stage = (struct stage){.host = NULL};
	snprintf(stage->dir, sizeof(stage->dir), "/tmp/%0120d-XXXXXX", 0);
	CHECK(mkdtemp(stage->dir) != NULL);
	CHECK_OK(soft_configure(stage->dir, limits, error, sizeof(error)));
	stage->host = stage_open_dev(SOFT_HOST);
	stage->dpu = stage_open_dev(SOFT_DPU);
	stage_open_reps(stage);
}

/* Nobody may still use a device, nor have left a socket behind. */
static inline void stage_close(struct stage *stage)
{
	char lock[400];
	CHECK_OK(soft_doca_dev_rep_close(stage->rep));
	CHECK_OK(soft_doca_dev_rep_close(stage->other_rep));
	CHECK_OK(soft_doca_dev_close(stage->dpu));
	CHECK_OK(soft_doca_dev_close(stage->host));
	snprintf(lock, sizeof(lock), "%s/lock", stage->dir);
	unlink(lock);
	CHECK(rmdir(stage->dir) == 0);
}

static inline bool stage_readable(struct doca_pe *pe, int timeout_ms)
{
	struct pollfd fd = {.events = POLLIN};
	CHECK_OK(soft_doca_pe_get_notification_handle(pe, &fd.fd));
	return poll(&fd, 1, timeout_ms) == 1;
}

/* Progresses the engine until done(arg), asleep where there is nothing to do. */
static inline void stage_wait(struct doca_pe *pe, bool (*done)(const void *arg), const void *arg)
{
	while (!done(arg)) {
		CHECK_OK(soft_doca_pe_request_notification(pe));
		if (soft_doca_pe_progress(pe))
			continue;
		CHECK(stage_readable(pe, 30000));
		CHECK_OK(soft_doca_pe_clear_notification(pe, 0));
	}
}

#endif
