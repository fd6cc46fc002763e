/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

static uint32_t place_of(const struct soft_ring *ring, uint32_t number)
{
	return number & (ring->size - 1);
}

static void fire(struct soft_ring *ring)
{
	ring->armed = false;
	if (ring->thread != NULL)
		soft_thread_activate(ring->thread);
}

void soft_ring_start(struct soft_ring *ring, uint32_t size, struct doca_dpa_thread *thread)
{
	*ring = (struct soft_ring){.thread = thread, .size = size, .armed = true};
}

bool soft_ring_is_full(const struct soft_ring *ring)
{
	return ring->arrived - ring->acked == ring->size;
}

uint32_t soft_ring_arrive(struct soft_ring *ring)
{
	uint32_t place = place_of(ring, ring->arrived++);
	if (ring->armed)
		fire(ring);
	return place;
}

uint64_t soft_ring_poll(struct soft_ring *ring, uint32_t context)
{
	if (ring->polled == ring->arrived)
		return 0;
	return (uint64_t)context << 32 | ring->polled++;
}

uint32_t soft_ring_context(uint64_t element)
{
	return (uint32_t)(element >> 32);
}

bool soft_ring_place(const struct soft_ring *ring, uint64_t element, uint32_t *place)
{
	uint32_t number = (uint32_t)element;
	*place = place_of(ring, number);
	return number - ring->acked < ring->polled - ring->acked;
}

uint32_t soft_ring_ack(struct soft_ring *ring)
{
	return place_of(ring, ring->acked++);
}

uint32_t soft_ring_unacked(const struct soft_ring *ring)
{
	return ring->polled - ring->acked;
}

void soft_ring_arm(struct soft_ring *ring)
{
	ring->armed = true;
	if (ring->polled != ring->arrived)
		fire(ring);
}
