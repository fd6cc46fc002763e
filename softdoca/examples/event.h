/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sync event by which the DPU tells the host something: the host waits with a task, so that it can serve other
 * contexts meanwhile, and the DPU updates it with a direct call.
 */
#ifndef EXAMPLES_EVENT_H
#define EXAMPLES_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <doca_dev.h>
#include <doca_sync_event.h>

#include "engines.h"

/* The host's end. */
struct event {
	const struct engines *engines;
	struct doca_sync_event *sync_event;
	const uint8_t *descriptor; /* for the DPU; valid until the event is destroyed */
	size_t descriptor_len;
	bool signalled;
	doca_error_t result; /* of the wait */
};

/* Creates, starts and exports an event whose value is 0, on the data engine. */
doca_error_t event_create(struct event *event, struct doca_dev *dev, const struct engines *engines);
void event_destroy(struct event *event);

/* Submits a wait for the value; event->signalled is set when the event has it. */
doca_error_t event_expect(struct event *event, uint64_t value);

/* The DPU's end: sets the host's event to the value. */
doca_error_t event_signal(struct doca_dev *dev, const uint8_t *descriptor, size_t descriptor_len, uint64_t value);

#endif
