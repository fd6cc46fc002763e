/* SPDX-License-Identifier: Apache-2.0 */
/* Message queues between the CPU and a DPA: one to the DPA, one from it, each with one consumer and one producer. */
#ifndef EXAMPLES_MSGQ_H
#define EXAMPLES_MSGQ_H

#include <stdbool.h>

#include <doca_comch_consumer.h>
#include <doca_comch_msgq.h>
#include <doca_comch_producer.h>
#include <doca_dpa.h>
#include <doca_pe.h>

#include "msgq_dev.h"

/* ---- to the DPA (msgq_to_dpa.c) ---- */

struct msgq_to_dpa {
	struct doca_dev *dev;
	struct doca_dpa *dpa;
	struct doca_dpa_thread *thread; /* which messages activate */
	struct doca_pe *pe;
	struct doca_comch_consumer_completion *arrivals;
	struct doca_comch_msgq *msgq;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	doca_error_t result; /* of the sends */
};

/* The first four members are set. Fills the handles that the DPA's code needs. */
doca_error_t msgq_to_dpa_open(struct msgq_to_dpa *queue, struct msgq_handles *handles);
void msgq_to_dpa_close(struct msgq_to_dpa *queue);

/* Sends one message. AGAIN: the DPA has no receive for it yet. */
doca_error_t msgq_to_dpa_send(struct msgq_to_dpa *queue, const void *message, uint32_t len);

/* ---- from the DPA (msgq_from_dpa.c) ---- */

struct msgq_from_dpa {
	struct doca_dev *dev;
	struct doca_dpa *dpa;
	struct doca_pe *pe;
	void (*received)(void *user, const uint8_t *message, uint32_t len);
	void *user;
	struct doca_dpa_completion *completions;
	struct doca_comch_msgq *msgq;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	bool closing;
	doca_error_t result; /* of the receives */
};

/* The first five members are set. Posts MSGQ_SIZE receives, each again when a message has arrived. */
doca_error_t msgq_from_dpa_open(struct msgq_from_dpa *queue, struct msgq_handles *handles);
void msgq_from_dpa_close(struct msgq_from_dpa *queue);

#endif
