/* SPDX-License-Identifier: Apache-2.0 */
/* The host's offer to the DPU in one message: memory to write to, and an event to signal that it is written. */
#ifndef EXAMPLES_OFFER_H
#define EXAMPLES_OFFER_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>

/* Bytes of a message, which must fit into one of the control channel. */
#define OFFER_SIZE 4000

struct offer {
	uint64_t addr, len; /* of the memory, in the host's address space */
	const void *memory; /* its export descriptor */
	size_t memory_len;
	const uint8_t *event; /* the sync event's */
	size_t event_len;
};

/* Writes the message and its length. TOO_BIG: the descriptors do not fit. */
doca_error_t offer_encode(const struct offer *offer, uint8_t message[OFFER_SIZE], size_t *len);

/* Reads a message, into which the offer then points. INVALID_VALUE: it is not what offer_encode writes. */
doca_error_t offer_decode(struct offer *offer, const uint8_t *message, size_t len);

#endif
