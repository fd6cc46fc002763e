/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of all DPAs of this process, and handles. Threads of a DPA know objects by their handles only, and a handle
 * is never used again, so that a kernel that uses an object after its end is found out.
 *
 * The lock guards what threads of a DPA share with threads of the CPU. No callback is called with it held, except a log
 * backend of the SDK, which must not use a DPA.
 */
#ifndef DMA_COPY_SOFT_DPA_OBJECT_H
#define DMA_COPY_SOFT_DPA_OBJECT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

void soft_dpa_lock(void);
void soft_dpa_unlock(void);

/*
 * Waits for the condition, whose clock is CLOCK_MONOTONIC, with the lock held. False: the deadline is over, in
 * nanoseconds; UINT64_MAX: none.
 */
bool soft_dpa_wait(pthread_cond_t *condition, uint64_t deadline);

enum soft_object_kind {
	SOFT_OBJECT_DPA = 1,
	SOFT_OBJECT_MMAP,
	SOFT_OBJECT_CONSUMER,
	SOFT_OBJECT_PRODUCER,
	SOFT_OBJECT_CONSUMER_COMPLETION,
	SOFT_OBJECT_COMPLETION,
	SOFT_OBJECT_NOTIFICATION,
	SOFT_OBJECT_BUF_ARRAY,
};

/* A part of everything that has a handle. */
struct soft_object {
	LIST_ENTRY(soft_object) link;
	enum soft_object_kind kind;
	uint32_t handle; /* never 0; as wide as the narrowest handle, a memory map's */
	void *owner;
};

/* All are called with the lock held. */
void soft_object_add(struct soft_object *object, enum soft_object_kind kind, void *owner);
void soft_object_remove(struct soft_object *object);

/* Returns the owner; NULL: there is none of that kind with that handle. */
void *soft_object_find(enum soft_object_kind kind, uint64_t handle);

/* Reports whether there is an owner of that kind at that address, which may be the address of something freed. */
bool soft_object_exists(enum soft_object_kind kind, const void *owner);

#endif
