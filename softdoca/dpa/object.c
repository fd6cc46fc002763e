/* SPDX-License-Identifier: Apache-2.0 */
#include "object.h"

#include <stddef.h>
#include <time.h>

#define KIND_BITS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, soft_object) objects = LIST_HEAD_INITIALIZER(objects);
static uint32_t serial; /* of the last object */

void soft_dpa_lock(void)
{
	pthread_mutex_lock(&lock);
}

void soft_dpa_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

bool soft_dpa_wait(pthread_cond_t *condition, uint64_t deadline)
{
	if (deadline == UINT64_MAX)
		return pthread_cond_wait(condition, &lock) == 0;
	struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000U), .tv_nsec = (long)(deadline % 1000000000U)};
	return pthread_cond_timedwait(condition, &lock, &until) == 0;
}

/* A quarter of a billion objects of a process have different handles. */
void soft_object_add(struct soft_object *object, enum soft_object_kind kind, void *owner)
{
	object->kind = kind;
	object->handle = ++serial << KIND_BITS | kind;
	object->owner = owner;
	LIST_INSERT_HEAD(&objects, object, link);
}

void soft_object_remove(struct soft_object *object)
{
	LIST_REMOVE(object, link);
}

void *soft_object_find(enum soft_object_kind kind, uint64_t handle)
{
	const struct soft_object *object;
	LIST_FOREACH(object, &objects, link)
	{
		if (object->handle == handle && object->kind == kind)
			return object->owner;
	}
	return NULL;
}

bool soft_object_exists(enum soft_object_kind kind, const void *owner)
{
	const struct soft_object *object;
	LIST_FOREACH(object, &objects, link)
	{
		if (object->owner == owner && object->kind == kind)
			return true;
	}
	return false;
}
